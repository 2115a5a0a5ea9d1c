// SPDX-License-Identifier: Apache-2.0
// The gradient of a relu in the epilogue of the product before it: the same bits as of separate kernels.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "openblas_conv.h"

namespace tenon::test {
namespace {

/// relu_grad(activation(a b + c), r)
struct Case {
  const char* label;
  Shape a, b;
  bool is_gemm = false;           ///< by Gemm with the transpose of b
  bool is_packed = false;         ///< b is a parameter, which is packed where that pays
  std::optional<Shape> addend{};  ///< added by Gemm, or after MatMul
  Value (*activation)(Value) = nullptr;
};

const Case cases[] = {
    {"tiles of whole panels", {40, 160}, {160, 128}},
    {"tiles of a panel that is not full, of the transpose of b", {100, 100}, {300, 100}, true},
    {"tiles, sums in pieces", {45, 1700}, {1700, 130}},
    {"OpenBLAS", {100, 10}, {100, 10}, true},
    {"OpenBLAS, blocks of several threads", {300, 40}, {40, 300}},
    {"one row", {1, 70}, {70, 90}},
    {"one column", {90, 70}, {70, 1}},
    {"vectors", {6, 90, 70}, {70}},
    {"a batch by tiles", {5, 20, 129}, {5, 129, 131}},
    {"a batch by OpenBLAS", {5, 9, 7}, {5, 7, 11}},
    {"no terms", {5, 0}, {0, 7}},
    {"packed, panels that are not full", {37, 70}, {70, 101}, false, true},
    {"packed, a batch of products of some rows", {3, 5, 40}, {40, 65}, false, true},
    {"packed, an activation that tiles leave to another pass", {37, 70}, {70, 101}, false, true, std::nullopt, ops::sigmoid},
    {"tiles and a bias", {40, 160}, {160, 133}, false, false, Shape{133}},
    {"tiles and a relu", {40, 160}, {160, 133}, false, false, std::nullopt, ops::relu},
    {"tiles and an activation that they leave to another pass", {40, 160}, {160, 133}, false, false, std::nullopt, ops::sigmoid},
    {"tiles, and a matrix that Gemm adds", {40, 160}, {133, 160}, true, false, Shape{40, 133}},
    {"OpenBLAS, and a column that Gemm adds", {40, 9}, {20, 9}, true, false, Shape{40, 1}},
    {"OpenBLAS, bias and activation", {40, 9}, {20, 9}, true, false, Shape{20}, ops::sigmoid},
};

struct Result {
  std::vector<std::uint32_t> bits;  ///< of results as f32; every NaN the same
  std::uint32_t kernels = 0;
};

Result run(const Case& c, DType dtype, std::uint32_t threads, Fusion fusion, const std::string& isa, bool deterministic = false) {
  Config config = test_config("openblas:0");
  config.threads = threads;
  config.deterministic = deterministic;
  config.fusion = fusion;
  config.backends.options["openblas"]["isa"] = isa;
  const Context context(config);
  const auto tensor = [&](const Shape& shape, std::uint32_t seed) { return Tensor::of(numbers(shape, seed), shape).to(dtype); };
  Graph graph;
  std::vector<Tensor> inputs{tensor(c.a, 1)};
  const auto input = [&](const char* name, const Tensor& of) {
    inputs.push_back(of);
    return graph.input(name, dtype, of.shape());
  };
  const Value a = graph.input("a", dtype, c.a);
  const Value b = c.is_packed ? graph.parameter("b", dtype, c.b) : input("b", tensor(c.b, 2));
  Value addend;
  if (c.addend) addend = input("c", tensor(*c.addend, 3));
  Value y;
  if (c.is_gemm) {
    y = ops::gemm(a, b, addend, {.trans_b = true});
  } else {
    y = ops::matmul(a, b);
    if (c.addend) y = y + addend;
  }
  if (c.activation != nullptr) y = c.activation(y);
  std::vector<float> relu_result = numbers(y.shape(), 4);
  constexpr float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  constexpr float unusual[] = {nan, 0, -0.0F, -nan, infinity, -infinity};
  for (std::size_t i = 0; i < relu_result.size(); i += 3) relu_result[i] = unusual[i / 3 % 6];
  const Value r = input("r", Tensor::of(relu_result, y.shape()).to(dtype));
  graph.output("dx", graph.apply(TENON_OP_ReluGrad, {y, r})[0]);
  Program program(context, graph);
  if (c.is_packed) program.parameters()->set("b", tensor(c.b, 2));
  Result result;
  for (const float x : floats(program.run(inputs)[0].to_host().to(DType::f32))) {
    result.bits.push_back(std::isnan(x) ? 0x7fc00000 : std::bit_cast<std::uint32_t>(x));
  }
  result.kernels = program.placement().kernels;
  return result;
}

}  // namespace

TEST_CASE("products: the gradient of a relu in the epilogue has the bits of separate kernels") {
  for (const Case& c : cases) {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16}) {
      for (const char* isa : {"auto", "avx2", "sse4"}) {
        // Addends and activations of bf16 are computed from sums in f32, without the rounding between kernels.
        if (dtype == DType::bf16 && (c.addend || c.activation != nullptr)) continue;
        if (small_sizes() && std::string(isa) != "auto") continue;
        CAPTURE(std::string(c.label));
        CAPTURE(std::string(name_of(dtype)));
        CAPTURE(std::string(isa));
        const Result apart = run(c, dtype, 2, Fusion::off, isa), together = run(c, dtype, 2, Fusion::full, isa);
        CHECK(together.kernels < apart.kernels);
        CHECK(together.bits == apart.bits);
        // OpenBLAS's blocks follow the number of threads unless the context is deterministic, and some of its kernels round by the block.
        if (dtype == DType::f32) CHECK(run(c, dtype, 5, Fusion::full, isa, true).bits == run(c, dtype, 1, Fusion::full, isa, true).bits);
      }
    }
  }
}

}  // namespace tenon::test
