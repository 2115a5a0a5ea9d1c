// SPDX-License-Identifier: Apache-2.0
// Functions on tensors: values, braces, several results, errors, and the cache of programs.
#include <cmath>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include "exec/context_state.h"
#include "testing.h"

namespace tenon::test {
namespace {

using Floats = std::vector<float>;

/// A context, and tensors on its default device.
struct Fixture {
  explicit Fixture(const std::string& device = "reference:0") : context(test_config(device)) {}
  Tensor on(const Tensor& x) const { return x.to(context.default_device()); }
  Tensor on(const Floats& values, const Shape& shape) const { return on(Tensor::of<float>(values, shape)); }
  std::size_t programs() const { return context.state()->immediate.counts().programs; }

  Context context;
};

TEST_CASE("tensor functions: elementwise values, with broadcasting and numbers, stay on the device") {
  for (const char* device : {"reference:0", "openblas:0"}) {
    CAPTURE(device);
    const Fixture f(device);
    const Tensor x = f.on({-1, 2, -3, 4, -5, 6}, {2, 3}), row = f.on({10, 20, 30}, {3}), column = f.on({100, 200}, {2, 1});
    CHECK(floats(tenon::relu(x)) == Floats{0, 2, 0, 4, 0, 6});
    CHECK(floats(x + row) == Floats{9, 22, 27, 14, 15, 36});
    CHECK(floats(row - column) == Floats{-90, -80, -70, -190, -180, -170});
    CHECK((row - column).shape() == Shape{2, 3});
    CHECK(floats(x * x / 2 + 1) == Floats{1.5, 3, 5.5, 9, 13.5, 19});
    CHECK(floats(-x - 1) == Floats{0, -3, 2, -5, 4, -7});
    CHECK(floats(maximum(x, 0)) == floats(relu(x)));
    CHECK(floats(pow(row, 2)) == Floats{100, 400, 900});
    CHECK(floats(clip(x, -2, 2)) == Floats{-1, 2, -2, 2, -2, 2});
    CHECK(floats(where(greater(x, x * 0), x, row)) == Floats{10, 2, 30, 4, 20, 6});
    const Tensor y = sqrt(abs(x));
    CHECK(y.storage()->device == x.storage()->device);
    CHECK(floats(y)[3] == 2);
    CHECK(floats(relu(x.transpose(0, 1))) == Floats{0, 4, 2, 0, 0, 6});
    CHECK(floats(relu(x.flip(1))) == Floats{0, 2, 0, 6, 0, 4});
  }
}

TEST_CASE_FIXTURE(Fixture, "tensor functions: reductions, shapes and products, with defaults and braces") {
  const Tensor x = on({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(floats(reduce_sum(x)) == Floats{21});
  CHECK(reduce_sum(x).shape() == Shape{});
  CHECK(floats(reduce_mean(x, {0})) == Floats{2.5, 3.5, 4.5});
  CHECK(reduce_max(x, {0, 1}, true).shape() == Shape{1, 1});
  CHECK(tenon::arg_max(x, 1).to_vector<std::int64_t>() == std::vector<std::int64_t>{2, 2});
  CHECK(arg_min(x, 0, true).shape() == Shape{1, 3});
  CHECK(floats(tenon::matmul(x, on({1, 0, 0, 1, 1, 1}, {3, 2}))) == Floats{4, 5, 10, 11});
  CHECK(floats(einsum("ij,kj->ik", {x, x})) == Floats{14, 32, 32, 77});
  CHECK(floats(tensordot(x, x)) == Floats{91});
  CHECK(floats(tensordot(x, x, {1}, {1})) == Floats{14, 32, 32, 77});
  CHECK(floats(gemm(x, x, {}, {.trans_b = true, .alpha = 2})) == Floats{28, 64, 64, 154});
  CHECK(reshape(x, {3, -1}).shape() == Shape{3, 2});
  CHECK(reshape(x, Shape{6}).shape() == Shape{6});
  CHECK(floats(transpose(x)) == Floats{1, 4, 2, 5, 3, 6});
  CHECK(transpose(x, {0, 1}).shape() == Shape{2, 3});
  CHECK(floats(concat({x, x}, 1)) == Floats{1, 2, 3, 1, 2, 3, 4, 5, 6, 4, 5, 6});
  CHECK(floats(pad(x, {{0, 0}, {1, 0}}, 9)) == Floats{9, 1, 2, 3, 9, 4, 5, 6});
  CHECK(cast(x, DType::i32).to_vector<std::int32_t>() == std::vector<std::int32_t>{1, 2, 3, 4, 5, 6});
  CHECK(floats(gather(x, on(Tensor::of<std::int64_t>({2, 0}, {2})), 1)) == Floats{3, 1, 6, 4});
  CHECK(floats(one_hot(on(Tensor::of<std::int64_t>({1}, {1})), 3, DType::f32)) == Floats{0, 1, 0});
  const Floats p = floats(softmax(on({0, std::log(3.0f)}, {1, 2})));
  CHECK(p[0] == doctest::Approx(0.25));
  CHECK(p[1] == doctest::Approx(0.75));
  CHECK(floats(softmax(x, 0))[0] == doctest::Approx(1 / (1 + std::exp(3.0))));
  CHECK(floats(mse(x, x + 2)) == Floats{4});
  const Tensor key = on(Tensor::of<std::uint64_t>({1, 2}, {2}));
  CHECK(equal(random_uniform(key, DType::f32, {4}, 3), random_uniform(key, DType::f32, {4}, 3)));
  CHECK(equal(dropout(x, key, 0, 1), x));
}

TEST_CASE_FIXTURE(Fixture, "tensor functions: equal compares tensors, immediate::equal elements") {
  const Tensor x = on({1, 2}, {2}), y = on({1, 3}, {2});
  CHECK_FALSE(equal(x, y));
  CHECK(floats(cast(immediate::equal(x, y), DType::f32)) == Floats{1, 0});
}

TEST_CASE_FIXTURE(Fixture, "tensor functions: several results come as a list, a pair or a struct") {
  const Tensor x = on({3, 1, 2, 6, 5, 4}, {2, 3});
  const std::vector<Tensor> parts = split(x, {1, 2}, 1);
  REQUIRE(parts.size() == 2);
  CHECK(floats(parts[0]) == Floats{3, 6});
  CHECK(floats(parts[1]) == Floats{1, 2, 5, 4});
  const std::vector<Tensor> others = split(x, {2, 1}, 1);  // the sizes are no attribute of the op
  CHECK(floats(others[1]) == Floats{2, 4});
  const auto [values, indices] = top_k(x, 2);
  CHECK(floats(values) == Floats{3, 2, 6, 5});
  CHECK(indices.to_vector<std::int64_t>() == std::vector<std::int64_t>{0, 2, 0, 1});

  // One step of one unit without recurrence: h = tanh(w x).
  const Tensor one = on({0.5}, {1, 1, 1});
  const auto result = rnn(one, {.w = one * 2, .r = one});
  CHECK(result.y.shape() == Shape{1, 1, 1, 1});
  CHECK(floats(result.h)[0] == doctest::Approx(std::tanh(0.5)));
  CHECK_FALSE(result.c.defined());

  const Tensor q = on({1, 2, 3, 4}, {1, 1, 2, 2});
  CHECK(floats(attention(q, q, q, {.causal = true}))[1] == 2);  // the first query sees only the first value
  const Tensor hidden = on({0, -1e9, 0, 0}, {2, 2});
  CHECK(floats(attention(q, q, q, {.mask = hidden}))[1] == 2);
  const Tensor labels = on(Tensor::of<std::int64_t>({0, 1}, {2}));
  const Tensor loss = softmax_cross_entropy(on({0, 0, 0, 0}, {2, 2}), labels, {.weights = on({1, 3}, {2})});
  CHECK(floats(loss)[0] == doctest::Approx(std::log(2.0)));
}

TEST_CASE_FIXTURE(Fixture, "tensor functions: equal calls share a program, and the cache is bounded") {
  const Tensor x = on({1, 2}, {2}), y = on({3, -4}, {2});
  const Tensor first = relu(x);
  CHECK(programs() == 1);
  const Tensor second = relu(y);
  CHECK(programs() == 1);
  CHECK(floats(first) == Floats{1, 2});
  CHECK(floats(second) == Floats{3, 0});
  (void)context.apply(context.default_device(), TENON_OP_Relu, {x});
  CHECK(programs() == 1);
  CHECK(floats(x * 2) == Floats{2, 4});
  CHECK(floats(x * 3) == Floats{3, 6});  // another constant
  CHECK(programs() == 3);
  (void)relu(on({1}, {1}));                         // another shape
  (void)relu(on(Tensor::of<double>({1, 2}, {2})));  // another dtype
  (void)elu(x);
  (void)elu(x, 2);  // another attribute
  CHECK(programs() == 7);
  for (int i = 0; i < 300; ++i) (void)(y + i);
  CHECK(programs() == 256);
  CHECK(floats(relu(y)) == Floats{3, 0});
}

TEST_CASE("tensor functions: operands elsewhere and shapes that do not fit are reported") {
  const Fixture f;
  const Tensor x = f.on({1, 2}, {2}), host = Tensor::of<float>({1, 2}, {2});
  CHECK_ERROR("relu: operand 0, f32(2), is in host memory; expected memory of a device: copy it with Tensor::to(device)", (void)relu(host));
  CHECK_ERROR_CONTAINS("add: operand 1, f32(2), is in host memory", (void)(x + host));
  CHECK_ERROR(
      "mul: expected operands on one device, got operand 0 on reference:0 and operand 1 on openblas:0: copy one with Tensor::to(device)",
      (void)mul(x, host.to(f.context.device("openblas:0"))));
  const Fixture other;
  CHECK_ERROR_CONTAINS("operand 1 on reference:0 of another context", (void)(x + other.on(host)));
  CHECK_ERROR_CONTAINS("(2)", (void)(x + f.on({1, 2, 3}, {3})));
  CHECK_ERROR_CONTAINS("f64", (void)(x + f.on(Tensor::of<double>({1, 2}, {2}))));
  CHECK_ERROR_CONTAINS("absent", (void)relu({}));
  CHECK(f.programs() == 0);
  Tensor left;
  {
    const Fixture gone;
    left = gone.on(host);
  }
  CHECK_ERROR("relu: the Context of reference:0 no longer exists; keep it while its tensors are computed with", (void)relu(left));
}

TEST_CASE_FIXTURE(Fixture, "tensor functions: a tensor converts to each dtype in host memory as on a device") {
  const DType dtypes[] = {DType::boolean, DType::i8,  DType::i16, DType::i32,  DType::i64, DType::u8, DType::u16,
                          DType::u32,     DType::u64, DType::f16, DType::bf16, DType::f32, DType::f64};
  const double inf = INFINITY;
  const Tensor floats =
      Tensor::of<double>({0,    -0.0,  0.5,   -0.5,   1.5,        127.9,      -128.9, 255.5, 65519, 65520, 2147483647.5, -2147483649.0,
                          1e19, -1e19, 1e300, 3.3e-8, 1.00390625, 1.01171875, inf,    -inf,  NAN},
                         {21});
  const std::int64_t big = std::int64_t{1} << 62;
  const Tensor integers = Tensor::of<std::int64_t>({0, 1, -1, 127, 128, -129, 255, 256, 65535, 65536, 2147483648, -2147483649, 16777217,
                                                    9007199254740993, big + (big >> 8) + 1, big - 1, -big},
                                                   {17});
  for (const Tensor& source : {floats, integers}) {
    for (const DType from : dtypes) {
      const Tensor x = source.to(from);
      CHECK(x.dtype() == from);
      for (const DType to : dtypes) {
        CAPTURE(name_of(from));
        CAPTURE(name_of(to));
        CHECK(tenon::equal(x.to(to), cast(on(x), to)));
        CHECK(tenon::equal(on(x).to(to), x.to(to)));
      }
    }
  }
  const Tensor x = Tensor::of<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  CHECK(x.transpose(0, 1).to(DType::f64).to_vector<double>() == std::vector<double>{1, 4, 2, 5, 3, 6});
  CHECK(x.to(DType::f32).address() == x.address());
  CHECK_ERROR("Tensor::to: expected to convert between real dtypes, got f32 to c64", (void)x.to(DType::c64));
  CHECK_ERROR("Tensor::to f32: got an undefined tensor", (void)Tensor().to(DType::f32));
}

TEST_CASE("tensor functions: concat and stack join tensors in host memory") {
  const Tensor x = Tensor::of<float>({1, 2, 3, 4}, {2, 2}), y = Tensor::of<float>({5, 6}, {2, 1});
  CHECK(floats(concat({x, y, x}, 1)) == Floats{1, 2, 5, 1, 2, 3, 4, 6, 3, 4});
  CHECK(floats(concat({x.transpose(0, 1), x}, -2)) == Floats{1, 3, 2, 4, 1, 2, 3, 4});
  CHECK(floats(stack({x, x})) == Floats{1, 2, 3, 4, 1, 2, 3, 4});
  CHECK(floats(stack({y, y}, -1)) == Floats{5, 5, 6, 6});
  CHECK(stack({y, y}, -1).shape() == Shape{2, 1, 2});
  CHECK_ERROR("concat: expected one dtype, and equal sizes except along axis 0, got f32(2,2) and f32(2,1)", (void)concat({x, y}, 0));
  CHECK_ERROR("concat: axis 2 is out of range for f32(2,2)", (void)concat({x}, 2));
  CHECK_ERROR("stack: expected one shape, got f32(2,2) and f32(2,1)", (void)stack({x, y}));
}

TEST_CASE_FIXTURE(Fixture, "tensor functions: numbers stand on either side of an operator, in graphs as well") {
  const Tensor x = on({1, 2, 4}, {3});
  CHECK(floats(1.0 + x) == Floats{2, 3, 5});
  CHECK(floats(1.0 - x) == Floats{0, -1, -3});
  CHECK(floats(2.0 * x) == Floats{2, 4, 8});
  CHECK(floats(1.0 / x) == Floats{1, 0.5, 0.25});
  Graph graph;
  const Value v = graph.input("x", DType::f32, {3});
  for (const Value y : {1.0 + v, 1.0 - v, 2.0 * v, 1.0 / v, v + 1.0, v - 1.0, v * 2.0, v / 2.0})
    graph.output("y" + std::to_string(y.id()), y);
  const std::vector<Tensor> results = Program(context, graph).run({x});
  const std::vector<Floats> expected = {{2, 3, 5}, {0, -1, -3}, {2, 4, 8}, {1, 0.5, 0.25}, {2, 3, 5}, {0, 1, 3}, {2, 4, 8}, {0.5, 1, 2}};
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(floats(results[i]) == expected[i]);
}

TEST_CASE("tensor functions: the lists name each function of both headers that updates nothing") {
  const auto text_of = [](const char* file) {
    std::ifstream stream(std::string(TENON_SOURCE_DIRECTORY) + "/runtime/tenon/" + file);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const auto names = [](const std::string& text, const char* pattern) {
    const std::regex name(pattern);
    std::set<std::string> found;
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) found.insert((*at)[1]);
    return found;
  };
  const std::string elementwise = text_of("elementwise_functions.h");
  const auto expected = names(elementwise + text_of("functions.h"), R"(\nTENON_API (?:Value|std::\w+<.*>|RecurrentResult) (\w+)\()");
  const auto listed = names(elementwise + text_of("tensor_functions.h"), R"((?:X\((?:\w+, )?|TENON_APPLY\(|TENON_API Tensor )(\w+))");
  CHECK(expected.size() > 100);
  for (const std::string& name : expected) {
    CAPTURE(name);
    CHECK(listed.contains(name) == (name != "batch_norm_train"));
  }
}

}  // namespace
}  // namespace tenon::test
