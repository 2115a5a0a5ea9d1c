// SPDX-License-Identifier: Apache-2.0
// Models whose shapes depend on what they compute: they run in segments, each compiled for the values of those before.
#include <algorithm>
#include <cmath>

#include "onnx/importer.h"
#include "onnx_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// n numbers of which every `step`-th is positive.
Tensor sparse(std::int64_t n, std::int64_t step, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(n), -1.0F);
  for (std::int64_t i = 0; i < n; i += step) values[static_cast<std::size_t>(i)] = static_cast<float>(i + 1);
  return Tensor::of(values, shape);
}

/// selected = the rows of 10 relu(x) whose first column is not 0, squared; count = how many there are.
onnx::ModelRecord selected_rows() {
  return model(onnx_graph(
      {node("Relu", {"x"}, {"r"}), node("Mul", {"r", "ten"}, {"h"}), node("Gather", {"h", "zero"}, {"column"}, {integer("axis", 1)}),
       node("NonZero", {"column"}, {"index"}), node("Squeeze", {"index", "zeros"}, {"rows"}), node("Gather", {"h", "rows"}, {"g"}),
       node("Mul", {"g", "g"}, {"selected"}), node("Shape", {"rows"}, {"count"})},
      {f32("x", {-1, 2})}, {f32("selected", {-1, 2}), i64("count", {1}), f32("h", {-1, 2})},
      {floats("ten", {10, 10}, {2}),
       [] {
         onnx::TensorRecord zero = indices("zero", {0});
         zero.dims = {};
         return zero;
       }(),
       indices("zeros", {0})}));
}

}  // namespace

TEST_CASE("onnx segments: NonZero of computed values, for any count") {
  const OnnxFiles files;
  onnx::Model model = files.load(selected_rows());
  for (const std::int64_t step : {2, 10, 4, 2, 400}) {
    CAPTURE(step);
    const std::vector<Tensor> results = model.run({{"x", sparse(400, step, {200, 2})}});
    const std::int64_t count = (400 + step - 1) / step;  // steps are even, so that every positive number is in column 0
    REQUIRE(results[0].shape() == Shape{count, 2});
    CHECK(results[1].to_vector<std::int64_t>() == std::vector<std::int64_t>{count});
    CHECK(results[2].shape() == Shape{200, 2});
    for (std::int64_t i = 0; i < count; ++i) {
      const auto expected = static_cast<float>(10 * (i * step + 1));
      CHECK(results[0].to_vector<float>()[static_cast<std::size_t>(2 * i)] == expected * expected);
      CHECK(results[2].to_vector<float>()[static_cast<std::size_t>(i * step)] == expected);
    }
  }
  CHECK(model.counts().programs == 5);  // of the first segment, and for 200, 40, 100 and 1 rows
  CHECK(model.counts().hits == 5);
  CHECK(model.run({{"x", Tensor::full(DType::f32, {200, 2}, -1)}})[0].shape() == Shape{0, 2});
}

TEST_CASE("onnx segments: results of any count go to tensors of the caller, and to new ones that stay") {
  const OnnxFiles files;
  onnx::Model model = files.load(selected_rows());
  const Tensor x = sparse(400, 100, {200, 2}), other = sparse(400, 200, {200, 2});
  const std::vector<Tensor> results = model.run({{"x", x}});
  const std::vector<float> selected = results[0].to_vector<float>(), all = results[2].to_vector<float>();
  Tensor count = Tensor::zeros(DType::i64, {1}), h = Tensor::zeros(DType::f32, {2, 200});
  std::vector<Tensor> outputs = {Tensor(), count, h.permute({1, 0})};  // new, in place, and by a copy
  model.run({{"x", x}}, outputs);
  model.run({{"x", other}});
  CHECK(outputs[0].to_vector<float>() == selected);
  CHECK(count.to_vector<std::int64_t>() == std::vector<std::int64_t>{4});
  CHECK(h.permute({1, 0}).contiguous().to_vector<float>() == all);
  outputs[0] = Tensor::zeros(DType::f32, {3, 2});
  CHECK_THROWS_WITH_AS(model.run({{"x", x}}, outputs),
                       doctest::Contains("output 'selected': expected a tensor f32(4,2) for the result, got f32(3,2)"), Error);
  outputs.pop_back();
  CHECK_THROWS_WITH_AS(model.run({{"x", x}}, outputs), doctest::Contains("expected 3 outputs, got 2"), Error);
}

TEST_CASE("onnx segments: NonZero of a large input, its result an output") {
  const OnnxFiles files;
  onnx::Model model = files.load(test::model(onnx_graph({node("NonZero", {"x"}, {"y"})}, {f32("x", {-1})}, {i64("y", {1, -1})})));
  Tensor x = Tensor::zeros(DType::f32, {100});
  x.data<float>()[7] = x.data<float>()[93] = 1;
  CHECK(model.run({{"x", x}})[0].to_vector<std::int64_t>() == std::vector<std::int64_t>{7, 93});
  x.data<float>()[7] = 0;
  CHECK(model.run({{"x", x}})[0].to_vector<std::int64_t>() == std::vector<std::int64_t>{93});
}

TEST_CASE("onnx segments: one after the other, and a result that two of them read") {
  const OnnxFiles files;
  // the positive elements of x, of these the ones above their mean, by Compress and by NonZero
  onnx::Model model = files.load(test::model(onnx_graph(
      {node("Greater", {"x", "zero"}, {"positive"}), node("Compress", {"x", "positive"}, {"p"}),
       node("ReduceMean", {"p"}, {"mean"}, {integer("keepdims", 0)}), node("Greater", {"p", "mean"}, {"above"}),
       node("NonZero", {"above"}, {"index"}), node("Squeeze", {"index", "zeros"}, {"flat"}), node("Gather", {"p", "flat"}, {"y"})},
      {f32("x", {-1})}, {f32("y", {-1}), f32("p", {-1})}, {floats("zero", {0}, {}), indices("zeros", {0})})));
  std::vector<float> x(90, -2);
  x[3] = 1, x[50] = 5, x[70] = 9, x[88] = 2;
  const std::vector<Tensor> results = model.run({{"x", Tensor::of(x, {90})}});
  CHECK(results[0].to_vector<float>() == std::vector<float>{5, 9});
  CHECK(results[1].to_vector<float>() == std::vector<float>{1, 5, 9, 2});
  x[3] = 10;
  CHECK(model.run({{"x", Tensor::of(x, {90})}})[0].to_vector<float>() == std::vector<float>{10, 9});
}

TEST_CASE("onnx segments: a computed number of iterations, a computed branch with results of its own shape") {
  const OnnxFiles files;
  onnx::GraphRecord body = onnx_graph({node("Identity", {"c"}, {"goes_on"}), node("Add", {"a", "one"}, {"b"})},
                                      {i64("i", {}), value("c", onnx::ElementType::boolean, {}), f32("a", {100})},
                                      {value("goes_on", onnx::ElementType::boolean, {}), f32("b", {100})});
  onnx::Model loop = files.load(
      test::model(onnx_graph({node("ReduceMax", {"x"}, {"m"}, {integer("keepdims", 0)}), node("Cast", {"m"}, {"trips"}, {integer("to", 7)}),
                              node("Loop", {"trips", "", "x"}, {"y"}, {subgraph("body", std::move(body))})},
                             {f32("x", {100})}, {f32("y", {100})}, {floats("one", {1}, {})})));
  for (const int trips : {3, 0, 5}) CHECK(loop.run({{"x", Tensor::full(DType::f32, {100}, trips)}})[0].to_vector<float>()[99] == 2 * trips);
  CHECK(loop.specialised_inputs().empty());
  CHECK(loop.counts().programs == 3);  // of the trip count, the body, and what follows

  const auto branch = [](std::string_view from, std::string_view to) {
    return onnx_graph({node("Slice", {"x", from, to}, {"r"})}, {}, {f32("r", {-1})});
  };
  onnx::Model choice = files.load(test::model(onnx_graph(
      {node("ReduceSum", {"x"}, {"s"}, {integer("keepdims", 0)}), node("Greater", {"s", "zero"}, {"c"}),
       node("If", {"c"}, {"y"}, {subgraph("then_branch", branch("n0", "n1")), subgraph("else_branch", branch("n0", "n3"))})},
      {f32("x", {100})}, {f32("y", {-1})}, {floats("zero", {0}, {}), indices("n0", {0}), indices("n1", {1}), indices("n3", {3})})));
  CHECK(choice.run({{"x", Tensor::full(DType::f32, {100}, 1)}})[0].shape() == Shape{1});
  CHECK(choice.run({{"x", Tensor::full(DType::f32, {100}, -1)}})[0].shape() == Shape{3});
}

TEST_CASE("onnx segments: NonMaxSuppression of computed boxes") {
  const OnnxFiles files;
  onnx::Model model = files.load(test::model(onnx_graph({node("Mul", {"x", "two"}, {"boxes"}), node("Sigmoid", {"s"}, {"scores"}),
                                                         node("NonMaxSuppression", {"boxes", "scores", "most", "overlap"}, {"y"})},
                                                        {f32("x", {1, -1, 4}), f32("s", {1, 1, -1})}, {i64("y", {-1, 3})},
                                                        {floats("two", {2}, {}), indices("most", {10}), floats("overlap", {0.5}, {1})})));
  // boxes of side 1 in pairs that overlap by 0.8 / 1.2; the second of each pair has the better score
  std::vector<float> boxes, scores;
  for (int i = 0; i < 30; ++i) {
    const float left = static_cast<float>(i / 2 * 3) + (i % 2 == 0 ? 0.0F : 0.2F);
    boxes.insert(boxes.end(), {0, left, 1, left + 1});
    scores.push_back(0.1F * static_cast<float>(i));
  }
  const Tensor y = model.run({{"x", Tensor::of(boxes, {1, 30, 4})}, {"s", Tensor::of(scores, {1, 1, 30})}})[0];
  REQUIRE(y.shape() == Shape{10, 3});
  for (std::int64_t i = 0; i < 10; ++i) CHECK(y.to_vector<std::int64_t>()[static_cast<std::size_t>(3 * i + 2)] == 29 - 2 * i);
}

TEST_CASE("onnx segments: what follows does not compute again what came before") {
  const OnnxFiles files;
  const auto file = onnx::ModelFile::open(files.write(selected_rows()));
  onnx::Weights weights(file);
  const onnx::Evaluate evaluate = onnx::evaluate_on_host(files.context, files.context.default_device());
  Graph first, last;
  const onnx::InputTypes inputs{{"x", {DType::f32, {200, 2}}}};
  onnx::Importer(*file, weights, evaluate, inputs, {.outputs = {"column"}, .segments = true, .output_boundary = true}, first).run();
  REQUIRE(first.outputs().size() == 2);
  CHECK(first.outputs()[0].name == "column");
  CHECK(first.outputs()[1].name == "h");
  const onnx::InputTypes values{
      {"x", {DType::f32, {200, 2}}}, {"column", {DType::f32, {200}}}, {"h", {DType::f32, {200, 2}}}, {"index", {DType::i64, {1, 90}}}};
  onnx::Importer(*file, weights, evaluate, values, {.segments = true}, last).run();
  CHECK(std::ranges::find(last.nodes(), tenon_op{TENON_OP_Relu}, &NodeInfo::op) == last.nodes().end());
  CHECK(std::ranges::count(last.nodes(), tenon_op{TENON_OP_Mul}, &NodeInfo::op) == 1);
}

TEST_CASE("onnx segments: a loop whose body computes its condition") {
  const OnnxFiles files;
  // a is multiplied by the weight w until its sum is below the limit, an input of the model; rows has it after each iteration
  const auto boolean = [](std::string_view name) { return value(name, onnx::ElementType::boolean, {}); };
  onnx::GraphRecord body =
      onnx_graph({node("Mul", {"a", "w"}, {"b"}), node("ReduceSum", {"b"}, {"s"}, {integer("keepdims", 0)}),
                  node("Greater", {"s", "limit"}, {"goes_on"}), node("Identity", {"b"}, {"row"})},
                 {i64("i", {}), boolean("c"), f32("a", {-1})}, {boolean("goes_on"), f32("b", {-1}), f32("row", {100})});
  const onnx::ModelRecord record = test::model(onnx_graph(
      {node("Relu", {"x"}, {"r"}), node("Loop", {"", "", "r"}, {"y", "rows"}, {subgraph("body", std::move(body))}),
       node("Add", {"y", "r"}, {"sum"})},
      {f32("x", {-1}), f32("limit", {})}, {f32("sum", {-1}), f32("rows", {-1, -1})}, {floats("w", std::vector<float>(100, 0.5F), {100})}));
  onnx::Model model = files.load(record);
  const Tensor x = Tensor::full(DType::f32, {100}, 8);
  for (const int iterations : {3, 1, 6, 3}) {
    const auto limit = static_cast<float>(std::ldexp(801.0, -iterations));  // the sum is 800 before, and then halved
    const std::vector<Tensor> results = model.run({{"x", x}, {"limit", Tensor::scalar(limit)}});
    CHECK(results[0].to_vector<float>()[99] == 8 + static_cast<float>(std::ldexp(8.0, -iterations)));
    REQUIRE(results[1].shape() == Shape{iterations, 100});
    for (int i = 0; i < iterations; ++i) {
      CHECK(results[1].to_vector<float>()[static_cast<std::size_t>(100 * i)] == static_cast<float>(std::ldexp(8.0, -1 - i)));
    }
  }
  CHECK(model.parameters()->has("w"));
  const std::string one_program = message_of([&] { model.to_graph({{"x", {DType::f32, {100}}}, {"limit", {DType::f32, {}}}}); });
  CHECK(contains(one_program, "(Loop-17): the condition of the loop is computed from inputs"));
}

TEST_CASE("onnx segments: a loop whose carried value grows, in a loop") {
  const OnnxFiles files;
  const auto boolean = [](std::string_view name) { return value(name, onnx::ElementType::boolean, {}); };
  // The inner loop appends a copy of the last element, plus one, while it is less than `end`; the outer one doubles `end` while it is less
  // than the largest element of x.
  onnx::GraphRecord inner = onnx_graph({node("Gather", {"list", "last"}, {"t"}), node("Add", {"t", "one"}, {"u"}),
                                        node("Concat", {"list", "u"}, {"longer"}, {integer("axis", 0)}),
                                        node("Squeeze", {"u", "zeros"}, {"v"}), node("Less", {"v", "end"}, {"inner_on"})},
                                       {i64("j", {}), boolean("d"), f32("list", {-1})}, {boolean("inner_on"), f32("longer", {-1})});
  onnx::GraphRecord outer =
      onnx_graph({node("Loop", {"", "", "l"}, {"m"}, {subgraph("body", std::move(inner))}), node("Add", {"end", "end"}, {"next_end"}),
                  node("Less", {"next_end", "largest"}, {"outer_on"}), node("Identity", {"m"}, {"k"})},
                 {i64("i", {}), boolean("c"), f32("l", {-1}), f32("end", {})}, {boolean("outer_on"), f32("k", {-1}), f32("next_end", {})});
  onnx::Model model = files.load(test::model(
      onnx_graph({node("ReduceMax", {"x"}, {"largest"}, {integer("keepdims", 0)}), node("Slice", {"x", "zeros", "ones"}, {"first"}),
                  node("Loop", {"", "", "first", "two"}, {"y", ""}, {subgraph("body", std::move(outer))})},
                 {f32("x", {-1})}, {f32("y", {-1})},
                 {floats("one", {1}, {1}), floats("two", {2}, {}), indices("zeros", {0}), indices("ones", {1}), indices("last", {-1})})));
  std::vector<float> x(100, 0);
  for (const float largest : {1.0F, 8.0F, 9.0F}) {
    x[50] = largest;
    std::vector<float> expected = {0};
    for (float end = 2; end == 2 || end < largest; end *= 2) {
      do expected.push_back(expected.back() + 1);
      while (expected.back() < end);
    }
    CHECK(model.run({{"x", Tensor::of(x, {100})}})[0].to_vector<float>() == expected);
  }
}

TEST_CASE("onnx segments: bodies that need computed elements") {
  const OnnxFiles files;
  const auto boolean = [](std::string_view name) { return value(name, onnx::ElementType::boolean, {}); };
  const auto body = [&] {
    return onnx_graph({node("Identity", {"c"}, {"goes_on"}), node("NonZero", {"a"}, {"z"}), node("Mul", {"a", "mask"}, {"b"})},
                      {i64("i", {}), boolean("c"), f32("a", {100})}, {boolean("goes_on"), f32("b", {100}), i64("z", {1, -1})});
  };
  const auto loop = [&](std::vector<float> mask) {
    return test::model(onnx_graph({node("Loop", {"trips", "", "x"}, {"y", "s"}, {subgraph("body", body())})},
                                  {f32("x", {100}), i64("trips", {})}, {f32("y", {100}), i64("s", {-1, 1, -1})},
                                  {floats("mask", std::move(mask), {100})}));
  };
  const auto trips = [](std::int64_t n) { return Tensor::scalar(n); };
  const Tensor x = sparse(100, 50, {100});
  SUBCASE("NonZero in a loop, with rows of one shape") {
    onnx::Model model = files.load(loop(std::vector<float>(100, 2)));
    const std::vector<Tensor> results = model.run({{"x", x}, {"trips", trips(2)}});
    CHECK(results[0].to_vector<float>()[50] == 51 * 4);
    CHECK(results[1].shape() == Shape{2, 1, 100});
    CHECK(model.run({{"x", x}, {"trips", trips(0)}})[1].shape() == Shape{0, 1, 0});
  }
  SUBCASE("rows of different shapes are an error") {
    std::vector<float> mask(100, 2);
    mask[99] = 0;
    onnx::Model model = files.load(loop(std::move(mask)));
    const std::string text = message_of([&] { model.run({{"x", x}, {"trips", trips(2)}}); });
    CHECK(contains(text, "(Loop): scan output 0: expected rows of one shape, got (1,99) after (1,100)"));
  }
  SUBCASE("NonZero in a branch") {
    const auto branch = [](std::string_view from) {
      return onnx_graph({node("Mul", {from, "mask"}, {"masked"}), node("NonZero", {"masked"}, {"z"})}, {}, {i64("z", {1, -1})});
    };
    onnx::Model model = files.load(test::model(onnx_graph(
        {node("Relu", {"x"}, {"r"}), node("ReduceSum", {"x"}, {"sum"}, {integer("keepdims", 0)}), node("Greater", {"sum", "zero"}, {"c"}),
         node("If", {"c"}, {"y"}, {subgraph("then_branch", branch("r")), subgraph("else_branch", branch("x"))})},
        {f32("x", {100})}, {i64("y", {1, -1})}, {floats("zero", {0}, {}), floats("mask", std::vector<float>(100, 1), {100})})));
    CHECK(model.run({{"x", x}})[0].shape() == Shape{1, 100});  // the sum is negative
    CHECK(model.run({{"x", sparse(100, 2, {100})}})[0].shape() == Shape{1, 50});
  }
  SUBCASE("functions cannot be cut") {
    onnx::ModelRecord record = test::model(onnx_graph({node("F", {"x"}, {"y"})}, {f32("x", {100})}, {i64("y", {1, -1})}));
    record.opsets.push_back({.domain = "local", .version = 1});
    record.graph.nodes[0].domain = "local";
    onnx::FunctionRecord function;
    function.name = "F", function.domain = "local";
    function.inputs = {"a"}, function.outputs = {"z"};
    function.nodes = {node("NonZero", {"a"}, {"z"})};
    function.opsets = {{.domain = "", .version = 17}};
    record.functions.push_back(std::move(function));
    CHECK(contains(message_of_import(record, {{"x", x}}), "(NonZero-17): operand 0 'a' determines the sizes of results"));
  }
}

TEST_CASE("onnx segments: one program cannot be cut") {
  const OnnxFiles files;
  onnx::Model model = files.load(selected_rows());
  const std::string text = message_of([&] { model.to_graph({{"x", {DType::f32, {200, 2}}}}); });
  CHECK(contains(text, "(NonZero-17): operand 0 'column' determines the sizes of results and has to be known when the program is made"));
}
