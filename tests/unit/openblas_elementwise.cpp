// SPDX-License-Identifier: Apache-2.0
// Functions of f32 that have vector code for usual operands and other code for the rest: which of the two an element takes must not depend
// on the elements next to it.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "testing.h"

namespace tenon::test {
namespace {

struct Function {
  const char* name;
  Value (*make)(Value);
};

const Function functions[] = {
    {"exp", [](Value x) { return ops::exp(x); }},     {"expm1", [](Value x) { return ops::expm1(x); }},
    {"log", [](Value x) { return ops::log(x); }},     {"log2", [](Value x) { return ops::log2(x); }},
    {"log1p", [](Value x) { return ops::log1p(x); }}, {"erf", [](Value x) { return ops::erf(x); }},
    {"sin", [](Value x) { return ops::sin(x); }},     {"cos", [](Value x) { return ops::cos(x); }},
    {"tanh", [](Value x) { return ops::tanh(x); }},   {"sigmoid", [](Value x) { return ops::sigmoid(x); }},
    {"gelu", [](Value x) { return ops::gelu(x); }},   {"softplus", [](Value x) { return ops::softplus(x); }},
    {"mish", [](Value x) { return ops::mish(x); }},
};

/// Bit patterns of f(x), which tell -0 from 0 and compare NaN.
std::vector<std::uint32_t> results(const Function& function, const std::vector<float>& x, const std::string& isa) {
  Config config = test_config("openblas:0");
  config.backends.options["openblas"]["isa"] = isa;
  const Context context(config);
  const Shape shape{static_cast<std::int64_t>(x.size())};
  Graph graph;
  graph.output("y", function.make(graph.input("x", DType::f32, shape)));
  const std::vector<float> y = Program(context, graph).run({Tensor::of(x, shape)})[0].to_host().to_vector<float>();
  std::vector<std::uint32_t> bits(y.size());
  std::memcpy(bits.data(), y.data(), y.size() * sizeof(float));
  return bits;
}

}  // namespace

TEST_CASE("elementwise functions of f32: an element has the same bits next to any other and at any place of a vector") {
  constexpr float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> unusual{
      inf,   -inf, std::numeric_limits<float>::quiet_NaN(), 0.0F, -0.0F, 1e-40F, -1e-40F, 3e38F, -3e38F, 87.5F, -87.5F, -104, 1e5F, 2e6F,
      -1.0F, 33000};
  std::vector<float> usual;
  for (int i = 0; i < 37; ++i) usual.push_back(0.0371F * static_cast<float>(i * i) + 0.0113F);
  for (int i = 1; i < 20; ++i) usual.push_back(900.7F * static_cast<float>(i));  // the sines of SSE4 and of AVX2 differ in their ranges
  for (const char* isa : {"auto", "avx2", "sse4"}) {
    for (const Function& function : functions) {
      CAPTURE(isa);
      CAPTURE(function.name);
      const std::vector<std::uint32_t> expected = results(function, usual, isa);
      for (std::size_t shift = 0; shift < unusual.size(); ++shift) {
        std::vector<float> mixed;
        for (std::size_t i = 0; i < usual.size(); ++i) {
          mixed.push_back(unusual[(i + shift) % unusual.size()]);
          mixed.push_back(usual[i]);
        }
        const std::vector<std::uint32_t> got = results(function, mixed, isa);
        for (std::size_t i = 0; i < usual.size(); ++i) {
          CAPTURE(usual[i]);
          REQUIRE(got[2 * i + 1] == expected[i]);
        }
      }
    }
  }
}

TEST_CASE("sums of f32: partial sums beyond the range of f32 do not make a finite sum infinite") {
  for (const char* isa : {"auto", "avx2", "sse4"}) {
    CAPTURE(isa);
    Config config = test_config("openblas:0");
    config.backends.options["openblas"]["isa"] = isa;
    const Context context(config);
    // Halves of opposite signs: every sum of a few neighbours overflows f32.
    std::vector<float> x(4999, 3e38F);
    std::fill(x.begin() + 2499, x.end() - 1, -3e38F);
    const Shape shape{static_cast<std::int64_t>(x.size())};
    Graph graph;
    graph.output("sum", ops::reduce_sum(graph.input("x", DType::f32, shape)));
    CHECK(Program(context, graph).run({Tensor::of(x, shape)})[0].item() == doctest::Approx(3e38));
  }
}

TEST_CASE("clip and relu keep NaN and the sign of zero, alone and after products and convolutions") {
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x{nan, -0.0F, 0.0F, 7, -3, inf, -inf, nan, 1, 2, nan, -1, 5, 6, 8, 9, nan, 4, -2};
  const auto n = static_cast<std::int64_t>(x.size());
  for (const char* isa : {"auto", "avx2", "sse4"}) {
    CAPTURE(isa);
    Config config = test_config("openblas:0");
    config.backends.options["openblas"]["isa"] = isa;
    const Context context(config);
    Graph graph;
    const Value row = graph.input("row", DType::f32, {1, n}), one = graph.constant(Tensor::of(std::vector<float>{1}, {1, 1}));
    const Value image = ops::reshape(row, {1, n, 1, 1}), taps = graph.constant(Tensor::of(std::vector<float>(x.size(), 1), {n, 1, 1, 1}));
    graph.output("clip", ops::clip(row, 0, 6));
    graph.output("product", ops::relu(ops::gemm(one, row)));
    ops::ConvOptions depthwise;
    depthwise.groups = n;
    graph.output("depthwise", ops::reshape(ops::clip(ops::conv(image, taps, {}, depthwise), 0, 6), {1, n}));
    const std::vector<Tensor> results = Program(context, graph).run({Tensor::of(x, {1, n})});
    for (std::size_t r = 0; r < results.size(); ++r) {
      const std::vector<float> y = results[r].to_host().to_vector<float>();
      const float most = r == 1 ? inf : 6;
      for (std::size_t i = 0; i < x.size(); ++i) {
        CAPTURE(r);
        CAPTURE(i);
        if (std::isnan(x[i])) {
          CHECK(std::isnan(y[i]));
        } else {
          CHECK(y[i] == std::clamp(x[i], 0.0F, most));
          if (r == 0) CHECK(std::signbit(y[i]) == std::signbit(std::clamp(x[i], 0.0F, most)));
        }
      }
    }
  }
}

TEST_CASE("relu, its gradient and add of bf16: every number, of both signs, infinities and NaN") {
  // Not a multiple of any vector. The last numbers are NaN, as many others are.
  std::vector<float> x(65535);
  const auto bits_of = [](float v) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &v, sizeof bits);
    return bits;
  };
  const auto rounded = [&](float v) {  // to bf16, ties to even
    const std::uint32_t bits = bits_of(v);
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16;
  };
  for (std::uint32_t i = 0; i < x.size(); ++i) {
    const std::uint32_t bits = i << 16;
    std::memcpy(&x[i], &bits, sizeof bits);
  }
  const Shape shape{static_cast<std::int64_t>(x.size())};
  for (const char* isa : {"auto", "avx2", "sse4"}) {
    CAPTURE(isa);
    Config config = test_config("openblas:0");
    config.backends.options["openblas"]["isa"] = isa;
    const Context context(config);
    Graph graph;
    const Value wide = graph.input("x", DType::f32, shape), narrow = ops::cast(wide, DType::bf16);
    const Value three = ops::cast(graph.input("three", DType::f32, shape), DType::bf16),
                one = ops::cast(graph.input("one", DType::f32, {1}), DType::bf16);
    const auto result = [&](const char* name, Value v) { graph.output(name, ops::cast(v, DType::f32)); };
    result("relu", ops::relu(narrow));
    result("relu_grad", graph.apply(TENON_OP_ReluGrad, {three, narrow})[0]);
    result("add", ops::add(narrow, three));
    result("add_one", ops::add(one, narrow));
    const std::vector<Tensor> results =
        Program(context, graph)
            .run({Tensor::of(x, shape), Tensor::of(std::vector<float>(x.size(), 3), shape), Tensor::of(std::vector<float>{1}, {1})});
    std::vector<std::vector<float>> y;
    for (const Tensor& t : results) y.push_back(t.to_host().to_vector<float>());
    bool exact = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        for (const std::vector<float>& list : y) exact = exact && std::isnan(list[i]);
        continue;
      }
      exact = exact && y[0][i] == std::max(x[i], 0.0F) && bits_of(y[1][i]) == bits_of(x[i] > 0 ? 3.0F : 0.0F);
      exact = exact && bits_of(y[2][i]) == rounded(x[i] + 3) && bits_of(y[3][i]) == rounded(x[i] + 1);
    }
    CHECK(exact);
  }
}

}  // namespace tenon::test
