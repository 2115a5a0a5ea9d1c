// SPDX-License-Identifier: Apache-2.0
// Importing ONNX models: shapes, elements that are known, functions, control flow, weights.
#include <algorithm>
#include <numeric>

#include "extra_device.h"
#include "log_file.h"
#include "onnx_testing.h"
#include "platform/conventions.h"

using namespace tenon;
using namespace tenon::test;
using Type = onnx::AttributeRecord::Type;

namespace {

Tensor range(std::int64_t n, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0.0F);
  return Tensor::of(values, shape);
}

std::vector<float> run(onnx::Model& model, const onnx::NamedTensors& inputs) {
  return model.run(inputs)[0].to_vector<float>();
}

/// y = x reshaped to (0, product of the others), with the shape computed by nodes.
onnx::ModelRecord flatten_by_shape() {
  return model(onnx_graph({node("Shape", {"x"}, {"shape"}), node("Gather", {"shape", "zero"}, {"rows"}),
                           node("Concat", {"rows", "rest"}, {"target"}, {integer("axis", 0)}), node("Reshape", {"x", "target"}, {"y"})},
                          {f32("x", {-1, -1, 2})}, {f32("y", {-1, -1})}, {indices("zero", {0}), indices("rest", {-1})}));
}

const std::vector<std::string> factors = {"a", "ab", "abc", "abcd"};

/// y4 = x * a * ab * abc * abcd, where each weight is (1, 2, 3, 4). Names of several lengths put the bytes of some at odd addresses of the
/// file.
onnx::ModelRecord product_of_weights() {
  static const std::vector<std::string> results = {"y1", "y2", "y3", "y4"};
  onnx::GraphRecord graph = onnx_graph({}, {f32("x", {4})}, {f32("y4", {4})});
  for (std::size_t i = 0; i < factors.size(); ++i) {
    graph.initializers.push_back(floats(factors[i], {1, 2, 3, 4}, {4}));
    graph.nodes.push_back(node("Mul", {i == 0 ? std::string_view("x") : results[i - 1], factors[i]}, {results[i]}));
  }
  return model(std::move(graph));
}

}  // namespace

TEST_CASE("onnx import: shape code leaves one node, at any shape") {
  const OnnxFiles files;
  onnx::Model model = files.load(flatten_by_shape());
  for (const Shape& shape : {Shape{3, 4, 2}, Shape{1, 5, 2}, Shape{2, 1, 2}}) {
    const Tensor& y = model.run({{"x", range(shape.count(), shape)}})[0];
    CHECK(y.shape() == Shape{shape[0], shape[1] * 2});
    CHECK(y.to_vector<float>().back() == static_cast<float>(shape.count() - 1));
  }
  CHECK(model.counts().programs == 3);
  CHECK(model.to_graph({{"x", {DType::f32, {3, 4, 2}}}}).nodes().size() == 1);
  CHECK(model.specialised_inputs().empty());
}

TEST_CASE("onnx import: a small integer input that gives a shape is specialised") {
  const OnnxFiles files;
  onnx::Model model = files.load(
      test::model(onnx_graph({node("Reshape", {"x", "shape"}, {"y"})}, {f32("x", {6}), i64("shape", {2})}, {f32("y", {-1, -1})})));
  const Tensor x = range(6, {6});
  CHECK(model.run({{"x", x}, {"shape", Tensor::of<std::int64_t>({2, 3}, {2})}})[0].shape() == Shape{2, 3});
  CHECK(model.run({{"x", x}, {"shape", Tensor::of<std::int64_t>({3, -1}, {2})}})[0].shape() == Shape{3, 2});
  CHECK(model.run({{"x", x}, {"shape", Tensor::of<std::int64_t>({2, 3}, {2})}})[0].shape() == Shape{2, 3});
  CHECK(model.specialised_inputs() == std::vector<std::string>{"shape"});
  CHECK(model.counts().programs == 2);
  CHECK(model.counts().hits == 1);
  const std::string text = message_of([&] { model.bind({{"x", {DType::f32, {6}}}, {"shape", {DType::i64, {2}}}}); });
  CHECK(text.find("input 'shape' determines shapes, axes, counts or branches: expected its elements, got its type alone") !=
        std::string::npos);
}

TEST_CASE("onnx import: weights are parameters, what is computed from them alone too is known where a rule asks for it") {
  const OnnxFiles files;
  // The sizes of Resize are a product of two floating initializers.
  onnx::Model model = files.load(test::model(onnx_graph(
      {node("MatMul", {"x", "w"}, {"h"}), node("Mul", {"a", "b"}, {"scales"}), node("Unsqueeze", {"h", "axes"}, {"h4"}),
       node("Resize", {"h4", "", "scales"}, {"y"})},
      {f32("x", {-1, 2})}, {f32("y", {1, 1, -1, -1})},
      {floats("w", {1, 2, 3, 4}, {2, 2}), floats("a", {1, 1, 1, 2}, {4}), floats("b", {1, 1, 2, 1}, {4}), indices("axes", {0, 1})})));
  const Tensor& y = model.run({{"x", Tensor::of<float>({1, 0}, {1, 2})}})[0];
  CHECK(y.shape() == Shape{1, 1, 2, 4});
  CHECK(y.to_vector<float>() == std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2});
  CHECK(model.parameters()->has("w"));
  model.parameters()->set("w", Tensor::of<float>({5, 6, 7, 8}, {2, 2}));
  CHECK(run(model, {{"x", Tensor::of<float>({1, 0}, {1, 2})}})[0] == 5);
}

TEST_CASE("onnx import: the copy of a weight that is not aligned in its file is the parameter, which initializers() reads") {
  const OnnxFiles files;
  onnx::Model model = files.load(product_of_weights());
  const Tensor x = Tensor::full(DType::f32, {4}, 1);
  CHECK(model.run({{"x", x}})[0].to_vector<float>() == std::vector<float>{1, 16, 81, 256});
  for (const std::string& name : factors) model.parameters()->set(name, Tensor::full(DType::f32, {4}, 2));
  CHECK(model.run({{"x", x}})[0].to_vector<float>() == std::vector<float>{16, 16, 16, 16});
  for (const NamedTensor& weight : model.initializers()) CHECK(weight.tensor.to_vector<float>() == std::vector<float>{2, 2, 2, 2});
}

/// A device with memory of its own that would also use memory of the host.
struct Borrowing : WrappedBackend<Borrowing> {
  static constexpr const char* name = "borrowing";
  static inline int imports = 0;

  static tenon_status import(tenon_device* device, const tenon_memory_import* request, tenon_memory_result* out_result,
                             tenon_error* error) {
    ++imports;
    return real->table().memory_import(device, request, out_result, error);
  }
  static void alter(tenon_backend_table& table) { table.memory_import = import; }
};

TEST_CASE("onnx import: a device with memory of its own has the weights there, also those that are not aligned in their file") {
  const OnnxFiles files;
  Borrowing::add_to(files.context);
  Borrowing::imports = 0;
  onnx::Model model = files.load(product_of_weights(), {.device = "borrowing:0"});
  CHECK(model.run({{"x", Tensor::full(DType::f32, {4}, 1)}})[0].to_vector<float>() == std::vector<float>{1, 16, 81, 256});
  CHECK(Borrowing::imports == 0);
}

TEST_CASE("onnx import: weights count against the memory limit of their device") {
  const OnnxFiles files;
  const std::string path = files.write(test::model(onnx_graph({node("Gather", {"w", "i"}, {"y"})}, {i64("i", {1})}, {f32("y", {1})},
                                                              {floats("w", std::vector<float>(1 << 20, 2), {1 << 20})})));
  const auto run = [&](std::uint64_t limit_mb) {
    Config config = test_config("openblas:0");
    config.memory.limit_mb = limit_mb;
    onnx::Model model = onnx::Model::load(path, Context(config));
    return model.run({{"i", Tensor::of<std::int64_t>({1000}, {1})}})[0].to_vector<float>()[0];
  };
  CHECK(run(64) == 2);
  CHECK_ERROR_CONTAINS("out of memory: requested 4194304 bytes", run(3));
}

TEST_CASE("onnx import: functions are inlined with their attributes and defaults") {
  onnx::ModelRecord record = test::model(
      onnx_graph({node("Scaled", {"x"}, {"h"}, {number("alpha", 3)}), node("Scaled", {"h"}, {"y"})}, {f32("x", {2})}, {f32("y", {2})}));
  record.graph.nodes[0].domain = record.graph.nodes[1].domain = "local";
  record.opsets.push_back({.domain = "local", .version = 1});
  onnx::FunctionRecord function;
  function.name = "Scaled";
  function.domain = "local";
  function.inputs = {"a"};
  function.outputs = {"b"};
  function.attributes_defaults = {number("alpha", 10)};
  function.opsets = {{.domain = "", .version = 17}};
  function.nodes = {node("Constant", {}, {"c"}, {reference("value_float", "alpha", Type::f)}), node("Mul", {"a", "c"}, {"b"})};
  record.functions.push_back(function);
  const OnnxFiles files;
  onnx::Model model = files.load(record);
  CHECK(run(model, {{"x", Tensor::of<float>({1, 2}, {2})}}) == std::vector<float>{30, 60});
}

TEST_CASE("onnx import: functions of one name differ in their overload, and those of ai.onnx are found by either name of the domain") {
  const auto function = [](std::string_view domain, std::string_view name, std::string_view overload, std::string_view op) {
    onnx::FunctionRecord made;
    made.domain = domain;
    made.name = name;
    made.overload = overload;
    made.inputs = {"a"};
    made.outputs = {"b"};
    made.opsets = {{.domain = "", .version = 17}};
    made.nodes = {node(op, {"a"}, {"b"})};
    return made;
  };
  onnx::ModelRecord record = test::model(onnx_graph({node("f", {"x"}, {"p"}), node("f", {"x"}, {"q"}), node("Twice", {"x"}, {"r"})},
                                                    {f32("x", {2})}, {f32("p", {2}), f32("q", {2}), f32("r", {2})}));
  record.ir_version = 10;
  record.opsets.push_back({.domain = "d", .version = 1});
  record.graph.nodes[0].domain = record.graph.nodes[1].domain = "d";
  record.graph.nodes[1].overload = "1";
  record.functions = {function("d", "f", "", "Neg"), function("d", "f", "1", "Abs"), function("ai.onnx", "Twice", "", "Sign")};
  const OnnxFiles files;
  onnx::Model model = files.load(record);
  const std::vector<Tensor>& results = model.run({{"x", Tensor::of<float>({-1, 2}, {2})}});
  CHECK(results[0].to_vector<float>() == std::vector<float>{1, -2});
  CHECK(results[1].to_vector<float>() == std::vector<float>{1, 2});
  CHECK(results[2].to_vector<float>() == std::vector<float>{-1, 1});
}

TEST_CASE("onnx import: functions that nothing calls may have operators that Tenon lacks") {
  const auto function = [](std::string_view name, std::string_view op, std::string_view domain) {
    onnx::FunctionRecord made;
    made.domain = "d";
    made.name = name;
    made.inputs = {"a"};
    made.outputs = {"b"};
    made.opsets = {{.domain = "", .version = 17}, {.domain = "d", .version = 1}};
    made.nodes = {node(op, {"a"}, {"b"})};
    made.nodes[0].domain = domain;
    return made;
  };
  onnx::ModelRecord record = test::model(onnx_graph({node("F", {"x"}, {"y"})}, {f32("x", {2})}, {f32("y", {2})}));
  record.opsets.push_back({.domain = "d", .version = 1});
  record.graph.nodes[0].domain = "d";
  record.functions = {function("Unused", "StringNormalizer", ""), function("F", "G", "d"), function("G", "Neg", "")};
  const OnnxFiles files;
  onnx::Model model = files.load(record);
  CHECK(run(model, {{"x", Tensor::of<float>({1, 2}, {2})}}) == std::vector<float>{-1, -2});
  const std::vector<onnx::OperatorCount>& operators = model.operators();
  CHECK(std::ranges::none_of(operators, [](const onnx::OperatorCount& each) { return each.op == "StringNormalizer"; }));
  CHECK(std::ranges::any_of(operators, [](const onnx::OperatorCount& each) { return each.op == "Neg"; }));
  record.functions[2].nodes[0].op = "Frobnicate";
  CHECK(message_of_import(record).find("ai.onnx.Frobnicate-17, 1 node, first 'b': Tenon has no such operator") != std::string::npos);
}

TEST_CASE("onnx import: If with a known condition takes one branch, with a computed one it selects") {
  const auto branch = [](std::string_view op) { return onnx_graph({node(op, {"x", "one"}, {"r"})}, {}, {f32("r", {2})}); };
  const auto with = [&](onnx::NodeRecord condition) {
    return test::model(
        onnx_graph({condition, node("If", {"c"}, {"y"}, {subgraph("then_branch", branch("Add")), subgraph("else_branch", branch("Sub"))})},
                   {f32("x", {2})}, {f32("y", {2})}, {floats("one", {1}, {}), floats("zero", {0}, {}), indices("two", {2})}));
  };
  const OnnxFiles files;
  onnx::Model known = files.load(with(node("Size", {"x"}, {"n"})));
  static_cast<void>(known);
  onnx::ModelRecord record = with(node("Size", {"x"}, {"n"}));
  record.graph.nodes.insert(record.graph.nodes.begin() + 1, {node("Equal", {"n", "two"}, {"c"})});
  onnx::Model taken = files.load(record);
  CHECK(run(taken, {{"x", Tensor::of<float>({5, 6}, {2})}}) == std::vector<float>{6, 7});
  CHECK(taken.to_graph({{"x", {DType::f32, {2}}}}).nodes().size() == 1);

  onnx::ModelRecord computed = with(node("ReduceSum", {"x"}, {"s"}, {integer("keepdims", 0)}));
  computed.graph.nodes.insert(computed.graph.nodes.begin() + 1, {node("Greater", {"s", "zero"}, {"c"})});
  onnx::Model selected = files.load(computed);
  CHECK(run(selected, {{"x", Tensor::of<float>({5, 6}, {2})}}) == std::vector<float>{6, 7});
  CHECK(run(selected, {{"x", Tensor::of<float>({-5, -6}, {2})}}) == std::vector<float>{-6, -7});
}

TEST_CASE("onnx import: Loop with a known trip count is unrolled, with carried values and scans") {
  onnx::GraphRecord body =
      onnx_graph({node("Add", {"state", "x"}, {"next"}), node("Identity", {"go"}, {"go_on"}), node("Identity", {"next"}, {"each"})},
                 {i64("i", {}), value("go", onnx::ElementType::boolean, {}), f32("state", {2})},
                 {value("go_on", onnx::ElementType::boolean, {}), f32("next", {2}), f32("each", {2})});
  const OnnxFiles files;
  onnx::ModelRecord record = test::model(onnx_graph({node("Loop", {"trips", "", "x"}, {"last", "all"}, {subgraph("body", body)})},
                                                    {f32("x", {2}), i64("trips", {})}, {f32("last", {2}), f32("all", {-1, 2})}));
  onnx::Model model = files.load(record);
  const std::vector<Tensor>& results = model.run({{"x", Tensor::of<float>({1, 2}, {2})}, {"trips", Tensor::scalar<std::int64_t>(3)}});
  CHECK(results[0].to_vector<float>() == std::vector<float>{4, 8});
  CHECK(results[1].to_vector<float>() == std::vector<float>{2, 4, 3, 6, 4, 8});
  CHECK(model.run({{"x", Tensor::of<float>({1, 2}, {2})}, {"trips", Tensor::scalar<std::int64_t>(0)}})[1].shape() == Shape{0, 2});
  onnx::Model bounded = files.load(record, {.max_unrolled_iterations = 2});
  const std::string text = message_of([&] {
    bounded.run({{"x", Tensor::of<float>({1, 2}, {2})}, {"trips", Tensor::scalar<std::int64_t>(3)}});
  });
  CHECK(text.find("expected at most 2 iterations of loops in the model, which are unrolled; got more") != std::string::npos);
}

TEST_CASE("onnx import: nodes in any order, an initializer that is an input too, outputs that are inputs") {
  const OnnxFiles files;
  onnx::Model model =
      files.load(test::model(onnx_graph({node("Mul", {"h", "w"}, {"y"}), node("Relu", {"x"}, {"h"})}, {f32("x", {2}), f32("w", {2})},
                                        {f32("y", {2}), f32("x", {2})}, {floats("w", {2, 3}, {2})})));
  CHECK(model.inputs().size() == 1);
  const std::vector<Tensor>& results = model.run({{"x", Tensor::of<float>({-1, 2}, {2})}});
  CHECK(results[0].to_vector<float>() == std::vector<float>{0, 6});
  CHECK(results[1].to_vector<float>() == std::vector<float>{-1, 2});
}

TEST_CASE("onnx import: external data is read from the folder of the model and nowhere else") {
  const OnnxFiles files;
  onnx::TensorRecord w = floats("w", {}, {2});
  w.external = true;
  const std::vector<float> elements = {7, 2, 3};
  files.folder.write("w.bin", std::string(reinterpret_cast<const char*>(elements.data()), 12));
  const auto load = [&](std::vector<onnx::TextEntry> location) {
    w.location = std::move(location);
    return files.load(test::model(onnx_graph({node("Mul", {"x", "w"}, {"y"})}, {f32("x", {2})}, {f32("y", {2})}, {w})));
  };
  onnx::Model model = load({{"location", "w.bin"}, {"offset", "4"}, {"length", "8"}});
  CHECK(run(model, {{"x", Tensor::of<float>({1, 1}, {2})}}) == std::vector<float>{2, 3});
  const auto message = [&](std::vector<onnx::TextEntry> location) {
    return message_of([&] { load(std::move(location)).run({{"x", Tensor::of<float>({1, 1}, {2})}}); });
  };
  CHECK(message({{"location", "../w.bin"}}).find("expected external data in the folder of the model, got the path '../w.bin'") !=
        std::string::npos);
  CHECK(message({{"location", "/etc/passwd"}}).find("expected external data in the folder of the model") != std::string::npos);
  CHECK(message({}).find("expected the location of its external data, got none") != std::string::npos);
  CHECK(message({{"location", "none.bin"}})
            .find("tensor 'w': expected its external data in '" + files.folder.file("none.bin") +
                  "', got no such file; copy it into the folder of the model, too") != std::string::npos);
  files.folder.write("pointer.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  CHECK(message({{"location", "pointer.bin"}})
            .find("tensor 'w': expected its external data in '" + files.folder.file("pointer.bin") +
                  "', got a pointer of Git LFS; `git lfs pull` fetches the file itself") != std::string::npos);
  CHECK(message({{"location", "w.bin"}, {"offset", "8"}}).find("expected 8 bytes at offset 8") != std::string::npos);
  CHECK(message({{"location", "w.bin"}, {"offset", "18446744073709551615"}}).find("expected 8 bytes at offset") != std::string::npos);
  CHECK(message({{"location", "w.bin"}, {"length", "4"}}).find("expected 8 bytes of external data, got a length of 4") !=
        std::string::npos);
  std::error_code no_links;  // Windows may refuse to make one
  std::filesystem::create_symlink("/etc/passwd", files.folder.file("link.bin"), no_links);
  if (!no_links) CHECK(message({{"location", "link.bin"}}).find("which is a symbolic link: copy the file") != std::string::npos);
  CHECK((!no_links || platform::conventions().format == platform::BinaryFormat::pe));
  std::filesystem::create_hard_link(files.folder.file("w.bin"), files.folder.file("hard.bin"));
  CHECK(message({{"location", "hard.bin"}}).find("which is a hard link: copy the file") != std::string::npos);
}

TEST_CASE("onnx import: elements in every form of a TensorProto") {
  const TemporaryFolder folder;
  const auto read = [&](const onnx::TensorRecord& record) {
    return onnx::load_tensor(folder.write("t.pb", onnx::serialize(record))).tensor;
  };
  onnx::TensorRecord t;
  t.dims = {3};
  t.type = onnx::ElementType::i4;
  t.int32s = {0x7F, 0x08};  // -1, 7, -8
  CHECK(read(t).to_vector<std::int8_t>() == std::vector<std::int8_t>{-1, 7, -8});
  t.type = onnx::ElementType::u4;
  CHECK(read(t).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{15, 7, 8});
  t.int32s = {};
  t.raw = std::string_view("\x21\x03", 2);
  CHECK(read(t).to_vector<std::uint8_t>() == std::vector<std::uint8_t>{1, 2, 3});
  t = {};
  t.dims = {2};
  t.type = onnx::ElementType::boolean;
  t.raw = std::string_view("\x00\x07", 2);
  CHECK(read(t).to_vector<bool>() == std::vector<bool>{false, true});
  t.type = onnx::ElementType::u32;
  t.raw = {};
  t.uint64s = {1, 0xFFFFFFFF};
  CHECK(read(t).to_vector<std::uint32_t>() == std::vector<std::uint32_t>{1, 0xFFFFFFFF});
  t.type = onnx::ElementType::f16;
  t.uint64s = {};
  t.int32s = {0x3C00, 0xC000};
  CHECK(read(t).to(DType::f32).to_vector<float>() == std::vector<float>{1, -2});
  t.type = onnx::ElementType::string;
  CHECK(message_of([&] { read(t); }).find("elements of type string, which Tenon does not compute with") != std::string::npos);
}

TEST_CASE("onnx import: what is wrong with a model is said with its names") {
  const auto x = f32("x", {2});
  const auto y = f32("y", {2});
  const onnx::NamedTensors given = {{"x", Tensor::of<float>({1, 2}, {2})}};
  CHECK(message_of_import(test::model(onnx_graph({node("Relu", {"z"}, {"y"})}, {x}, {y})), given) ==
        "FILE: node 'y' (Relu) reads 'z', which no node computes and is no input");
  CHECK(
      message_of_import(test::model(onnx_graph({node("Add", {"x", "b"}, {"a"}), node("Relu", {"a"}, {"b"})}, {x}, {f32("b", {2})})), given)
          .find("reads a value that depends on its own result: expected a graph without cycles") != std::string::npos);
  CHECK(message_of_import(test::model(onnx_graph({node("Relu", {"x"}, {"h"})}, {x}, {y})), given) ==
        "FILE: output 'y': no node computes it");
  CHECK(message_of_import(test::model(onnx_graph({node("Relu", {"x"}, {"y"}), node("Abs", {"x"}, {"y"})}, {x}, {y})), given)
            .find("computes 'y', which has a value already: expected one node for each value") != std::string::npos);
  CHECK(
      message_of_import(test::model(onnx_graph({node("Relu", {"x"}, {"y"})}, {x}, {y}))).find("input 'x' is missing; its inputs are: x") !=
      std::string::npos);
  CHECK(message_of_import(test::model(onnx_graph({node("Relu", {"x"}, {"y"})}, {x}, {y})), {{"x", given.at("x")}, {"w", given.at("x")}})
            .find("it has no input 'w'; its inputs are: x") != std::string::npos);
  CHECK(message_of_import(test::model(onnx_graph({node("Add", {"x", "w"}, {"y"})}, {x, f32("w", {2})}, {y}, {floats("w", {1, 2}, {2})})),
                          {{"x", given.at("x")}, {"w", given.at("x")}})
            .find("input 'w' has a default in the file, an initializer, which Tenon does not override") != std::string::npos);
  CHECK(message_of_import(test::model(onnx_graph({node("Relu", {"x"}, {"y"})}, {x}, {y})), {{"x", Tensor::zeros(DType::f32, {3})}}) ==
        "FILE: input 'x': expected f32(2), got f32(3)");
  CHECK(message_of_import(test::model(onnx_graph({node("Relu", {"x"}, {"y"})}, {x}, {y})), {{"x", Tensor::zeros(DType::f64, {2})}}) ==
        "FILE: input 'x': expected f32(2), got f64(2)");
  CHECK(message_of_import(test::model(onnx_graph({node("Relu", {"x"}, {"y"})}, {x}, {y}, {floats("w", {1, 2, 3}, {2})})), given) ==
        "FILE: tensor 'w': shape (2) expects 2 elements, got 3");
  CHECK(
      message_of_import(test::model(onnx_graph({node("Relu", {"x"}, {"y"})}, {x}, {y}, {floats("w", {1}, {1LL << 40, 1LL << 40})})), given)
          .find("tensor 'w': ") != std::string::npos);
}

TEST_CASE("onnx import: everything that cannot be imported is one error") {
  onnx::ModelRecord record = test::model(onnx_graph({node("StringNormalizer", {"x"}, {"a"}), node("Frobnicate", {"x"}, {"b"}),
                                                     node("Frobnicate", {"x"}, {"c"}), node("TreeEnsembleRegressor", {"x"}, {"y"})},
                                                    {f32("x", {2})}, {f32("y", {2})}));
  record.graph.nodes[3].domain = "ai.onnx.ml";
  const std::string text = message_of_import(record);
  CHECK(text.find("FILE: cannot be imported:\n") == 0);
  CHECK(text.find("ai.onnx.Frobnicate-17, 2 nodes, first 'b': Tenon has no such operator") != std::string::npos);
  CHECK(text.find("ai.onnx.StringNormalizer-17, 1 node") != std::string::npos);
  CHECK(text.find("ai.onnx.ml.TreeEnsembleRegressor-1, 1 node") != std::string::npos);
}

TEST_CASE("onnx import: nodes that fail are collected, those that depend on them are not repeated") {
  const OnnxFiles files;
  onnx::Model model = files.load(test::model(onnx_graph({node("NonZero", {"x"}, {"a"}), node("NonZero", {"h"}, {"b"}),
                                                         node("Cast", {"a"}, {"y"}, {integer("to", 1)}), node("Relu", {"x"}, {"h"})},
                                                        {f32("x", {100})}, {f32("y", {-1, -1})})));
  const std::string text = message_of([&] { model.bind({{"x", {DType::f32, {100}}}}); });
  CHECK(text.find("node 'a' (NonZero-17)") != std::string::npos);
  CHECK(text.find("node 'b' (NonZero-17)") != std::string::npos);
  CHECK(text.find("Cast") == std::string::npos);
}

TEST_CASE("onnx import: functions that call each other without end are refused") {
  onnx::ModelRecord record = test::model(onnx_graph({node("F", {"x"}, {"y"})}, {f32("x", {2})}, {f32("y", {2})}));
  record.graph.nodes[0].domain = "local";
  onnx::FunctionRecord function;
  function.name = "F";
  function.domain = "local";
  function.inputs = {"a"};
  function.outputs = {"b"};
  function.nodes = {node("F", {"a"}, {"b"})};
  function.nodes[0].domain = "local";
  record.functions.push_back(function);
  CHECK(message_of_import(record, {{"x", Tensor::of<float>({1, 2}, {2})}})
            .find("expected functions and subgraphs at most 128 deep, got a deeper one") != std::string::npos);
}

TEST_CASE("onnx import: an opset that is newer than the rules is one warning for each model") {
  const OnnxFiles files;
  const auto warning_of = [&](std::int64_t opset) {
    return logged([&] { files.load(test::model(onnx_graph({node("Relu", {"x"}, {"y"})}, {f32("x", {2})}, {f32("y", {2})}), opset)); });
  };
  CHECK(count_of(warning_of(99), ": imports opset 99 of ai.onnx, newer than 28; its operators are read as those of opset 28") == 1);
  CHECK(warning_of(28).empty());
}

TEST_CASE("onnx import: files that are no models") {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& content) { return message_of([&] { onnx::inspect(folder.write("m.onnx", content)); }); };
  CHECK(message("").find("expected an ONNX model, got a file without a graph") != std::string::npos);
  CHECK(message("<html>").find("expected an ONNX model, got bytes that are damaged or of another format; copy or export it again") !=
        std::string::npos);
  CHECK(message(std::string("\x3a\x05", 2)).find("got bytes that end too early: the file was copied in part, or is of another format") !=
        std::string::npos);
  CHECK(message("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n")
            .find("expected an ONNX model, got a pointer of Git LFS; `git lfs pull` fetches the file itself") != std::string::npos);
  const std::string whole = onnx::serialize(test::model(onnx_graph({node("Relu", {"x"}, {"y"})}, {f32("x", {2})}, {f32("y", {2})})));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    // Cut between two fields of the model, what is left can be a model.
    const std::string path = folder.write("cut.onnx", whole.substr(0, size));
    try {
      onnx::inspect(path);
    } catch (const Error& error) {
      CHECK(std::string(error.what()).find(path) == 0);
    }
  }
}

TEST_CASE("onnx import: what a file is made of") {
  const OnnxFiles files;
  onnx::ModelRecord record = test::model(onnx_graph({node("MatMul", {"x", "w"}, {"h"}), node("Relu", {"h"}, {"y"})}, {f32("x", {-1, 2})},
                                                    {f32("y", {-1, 2})}, {floats("w", {1, 2, 3, 4}, {2, 2})}));
  record.metadata = {{"author", "a person"}};
  const onnx::FileReport report = onnx::inspect(files.write(record));
  CHECK(report.metadata.producer == "tests");
  CHECK(report.metadata.opsets.at("ai.onnx") == 17);
  CHECK(report.metadata.properties.at("author") == "a person");
  CHECK(report.inputs[0].str() == "x f32(n,2)");
  CHECK(report.weights == 4);
  CHECK(report.weights_size_bytes == 16);
  CHECK(report.operators.size() == 2);
  CHECK(report.unsupported() == 0);
}
