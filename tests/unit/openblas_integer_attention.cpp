// SPDX-License-Identifier: Apache-2.0
// Attention of quantised operands as one kernel: the bits of its nodes one by one, and what stays as it is.
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/functions.h>
#include <tenon/program.h>

#include "testing.h"

namespace tenon::test {
namespace {

struct Attention {
  std::int64_t batch, heads, queries, keys, size, result;
  DType q, k, p, v;
  int q_zero, k_zero, p_zero, v_zero;
  bool has_factor;
  Shape mask;  ///< empty: none
  DType y;     ///< f32: the result is not quantised
  float p_scale = 1.0F / 255;
};

const Attention cases[] = {
    {1, 4, 128, 128, 32, 32, DType::u8, DType::u8, DType::u8, DType::u8, 121, 130, 0, 128, true, {1, 1, 128, 128}, DType::u8},
    {2, 3, 50, 77, 20, 40, DType::i8, DType::i8, DType::i8, DType::i8, 0, 0, 0, 0, false, {}, DType::i8, 1.0F / 127},
    {1, 1, 100, 33, 64, 64, DType::u8, DType::i8, DType::u8, DType::i8, 3, -5, 7, 9, true, {33}, DType::f32},
    {2, 2, 3, 200, 18, 7, DType::i8, DType::u8, DType::i8, DType::u8, -3, 100, -128, 5, false, {2, 1, 1, 200}, DType::u8, 0.0001F},
    {1, 5, 49, 1, 33, 96, DType::u8, DType::u8, DType::u8, DType::i8, 0, 255, 255, 1, false, {5, 49, 1}, DType::f32, 3e38F},
};

Tensor bytes(const Shape& shape, DType dtype, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::int32_t> elements(static_cast<std::size_t>(shape.count()));
  for (std::int32_t& element : elements) element = static_cast<std::int32_t>(random() % 256) - (dtype == DType::i8 ? 128 : 0);
  return Tensor::of(elements, shape).to(dtype);
}

/// Numbers with infinities and NaN among them.
Tensor mask_of(const Shape& shape) {
  std::mt19937 random(9);
  constexpr float inf = std::numeric_limits<float>::infinity();
  std::vector<float> elements(static_cast<std::size_t>(shape.count()));
  for (float& x : elements) {
    const auto r = random() % 4001;
    x = r == 0 ? std::nanf("") : r == 1 ? inf : r % 5 == 2 ? -inf : static_cast<float>(r % 7) / 4 - 1;
  }
  return Tensor::of(elements, shape);
}

struct Result {
  std::vector<std::int64_t> bits;
  std::string kernels;
};

/// What keeps the nodes from being one kernel.
enum class Obstacle { none, second_reader, other_zero_point, other_axis };

/// q, k and v are read from rows (B, S, H, D), as the products before them make them; y is written so.
Result run(const Attention& a, std::uint32_t threads, Fusion fusion, Obstacle obstacle = Obstacle::none, const char* isa = "native") {
  Config config = test_config("openblas:0");
  config.threads = threads;
  config.fusion = fusion;
  if (std::string_view(isa) != "native") config.backends.options["openblas"]["isa"] = isa;
  const Context context(config);
  Graph graph;
  const auto scalar = [&](DType dtype, double value) { return graph.constant(Tensor::full(dtype, {}, value)); };
  const Value q = graph.input("q", a.q, {a.batch, a.queries, a.heads, a.size}),
              k = graph.input("k", a.k, {a.batch, a.keys, a.heads, a.size}),
              v = graph.input("v", a.v, {a.batch, a.keys, a.heads, a.result});
  Value scores = ops::dequantize_linear(
      ops::matmul_integer(ops::transpose(q, {0, 2, 1, 3}), ops::transpose(k, {0, 2, 3, 1}), scalar(a.q, a.q_zero), scalar(a.k, a.k_zero)),
      scalar(DType::f32, 0.003 / static_cast<double>(a.size)));
  if (a.has_factor) scores = ops::mul(scores, 0.7);
  if (a.mask.rank() > 0) scores = ops::add(scores, graph.constant(mask_of(a.mask)));
  const Value p_zero = scalar(a.p, a.p_zero);
  const Value p =
      ops::quantize_linear(ops::softmax(scores, obstacle == Obstacle::other_axis ? 2 : 3), scalar(DType::f32, a.p_scale), p_zero, a.p);
  const Value sums = ops::matmul_integer(p, ops::transpose(v, {0, 2, 1, 3}),
                                         obstacle == Obstacle::other_zero_point ? scalar(a.p, 1) : p_zero, scalar(a.v, a.v_zero));
  Value y = ops::transpose(ops::dequantize_linear(sums, scalar(DType::f32, 0.01)), {0, 2, 1, 3});
  y = ops::reshape(y, Shape{a.batch, a.queries, a.heads * a.result});
  if (a.y != DType::f32) y = ops::quantize_linear(y, scalar(DType::f32, 0.3), scalar(a.y, 11), a.y);
  graph.output("y", y);
  if (obstacle == Obstacle::second_reader) graph.output("scores", scores);
  Program program(context, graph);
  const Tensor result = program
                            .run({bytes({a.batch, a.queries, a.heads, a.size}, a.q, 1), bytes({a.batch, a.keys, a.heads, a.size}, a.k, 2),
                                  bytes({a.batch, a.keys, a.heads, a.result}, a.v, 3)})[0]
                            .to_host();
  Result all;
  for (const Placement& node : program.placement().nodes) all.kernels += node.algorithm + ";";
  if (a.y != DType::f32) {
    all.bits = result.to(DType::i64).to_vector<std::int64_t>();
  } else {
    for (const float x : result.to_vector<float>()) all.bits.push_back(std::isnan(x) ? -1 : std::bit_cast<std::int32_t>(x));
  }
  return all;
}

}  // namespace

TEST_CASE("integer attention: one kernel has the bits of its nodes, on any number of threads") {
  for (const Attention& a : cases) {
    CAPTURE(a.queries);
    const Result expected = run(a, 1, Fusion::off);
    for (const std::uint32_t threads : {1u, 2u, 3u}) {
      CAPTURE(threads);
      const Result fused = run(a, threads, Fusion::full);
      CHECK(fused.kernels.find("+attention") != std::string::npos);
      CHECK(fused.bits == expected.bits);
    }
  }
}

TEST_CASE("integer attention: one kernel has the bits of its nodes with each instruction set") {
  for (const char* isa : {"sse4", "avx2"}) {
    CAPTURE(isa);
    for (const Attention& a : cases) {
      CAPTURE(a.queries);
      CHECK(run(a, 2, Fusion::full, Obstacle::none, isa).bits == run(a, 1, Fusion::off, Obstacle::none, isa).bits);
    }
  }
}

TEST_CASE("integer attention: nodes that are no attention run one by one, with the same bits") {
  for (const Obstacle obstacle : {Obstacle::second_reader, Obstacle::other_zero_point, Obstacle::other_axis}) {
    CAPTURE(static_cast<int>(obstacle));
    const Result fused = run(cases[0], 2, Fusion::full, obstacle);
    CHECK(fused.kernels.find("+attention") == std::string::npos);
    CHECK(fused.bits == run(cases[0], 1, Fusion::off, obstacle).bits);
  }
}

}  // namespace tenon::test
