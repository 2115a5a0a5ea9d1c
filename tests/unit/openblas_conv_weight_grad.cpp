// SPDX-License-Identifier: Apache-2.0
// Weight gradients of convolutions at sizes for which the oracle is too slow: many pixels, channels and images in blocks and parts.
#include <cmath>
#include <cstring>

#include "openblas_conv.h"

namespace tenon::test {
namespace {

const Convolution convolutions[] = {
    {"one channel", 60, 1, 28, 28, 40, 3, 1, 1},
    {"three channels, kernel size 7, strides", 6, 3, 61, 60, 20, 7, 2, 3},
    {"five channels, kernel size 11, strides", 3, 5, 67, 63, 33, 11, 4, 2},
    {"3x3 in one block of channels and many parts of the tiles", 9, 32, 37, 34, 48, 3, 1, 1},
    {"3x3 in blocks of channels, the last ones smaller", 5, 80, 13, 15, 144, 3, 1, 1},
    {"3x3 without padding", 3, 48, 23, 18, 32, 3},
    {"3x3 with strides: panels of im2col", 5, 24, 31, 33, 40, 3, 2, 1},
    {"3x3 with strides: panels of a part of the columns", 2, 120, 27, 25, 70, 3, 2, 1},
    {"5x5: panels that end within a line", 4, 12, 30, 41, 17, 5, 1, 2},
    {"1x1: x in place", 6, 60, 31, 33, 70, 1},
    {"1x1 with strides", 6, 60, 31, 33, 70, 1, 2},
    {"more filters than a block of rows has", 1, 16, 9, 9, 1040, 1},
    {"groups", 4, 24, 29, 31, 36, 3, 1, 1, 1, 3},
    {"depthwise", 9, 70, 41, 35, 70, 3, 1, 1, 1, 70},
};

/// Operands of bf16 are cast in the graph, and the result back.
std::vector<float> weight_grad(const Convolution& c, const std::vector<float>& dy, const std::vector<float>& x, std::uint32_t threads,
                               DType dtype, const char* memory = "normal") {
  Config config = test_config("openblas:0");
  config.threads = threads;
  config.deterministic = true;
  config.backends.options["openblas"]["memory"] = memory;
  const Context context(config);
  Graph graph;
  const Value from_dy = graph.input("dy", DType::f32, c.y());
  const Value from_x = graph.input("x", DType::f32, c.x());
  const auto cast = [&](Value v) { return dtype == DType::f32 ? v : ops::cast(v, dtype); };
  const Value dw = ops::conv_weight_grad(cast(from_dy), cast(from_x), c.w(), c.attributes());
  graph.output("dw", dtype == DType::f32 ? dw : ops::cast(dw, DType::f32));
  Program program(context, graph);
  return floats(program.run({Tensor::of(dy, c.y()), Tensor::of(x, c.x())})[0]);
}

/// One weight's gradient, term by term.
Sum sum_of(const Convolution& c, const std::vector<float>& dy, const std::vector<float>& x, std::int64_t weight) {
  const std::int64_t group_channels = c.channels / c.groups;
  const std::int64_t b = weight % c.kernel, a = weight / c.kernel % c.kernel;
  const std::int64_t filter = weight / (c.kernel * c.kernel * group_channels);
  const std::int64_t channel = filter / (c.filters / c.groups) * group_channels + weight / (c.kernel * c.kernel) % group_channels;
  const std::int64_t height = c.result(c.height), width = c.result(c.width);
  Sum sum;
  for (std::int64_t n = 0; n < c.images; ++n) {
    for (std::int64_t i = 0; i < height; ++i) {
      for (std::int64_t j = 0; j < width; ++j) {
        const std::int64_t row = i * c.stride + a - c.pad, column = j * c.stride + b - c.pad;
        if (row < 0 || row >= c.height || column < 0 || column >= c.width) continue;
        sum.add(dy[static_cast<std::size_t>(((n * c.filters + filter) * height + i) * width + j)],
                x[static_cast<std::size_t>(((n * c.channels + channel) * c.height + row) * c.width + column)]);
      }
    }
  }
  return sum;
}

/// Numbers of 7 digits, which are exact in bf16.
std::vector<float> short_numbers(const Shape& shape, std::uint32_t seed) {
  std::vector<float> list = numbers(shape, seed);
  for (float& value : list) value = std::round(value * 64) / 64;
  return list;
}

TEST_CASE("conv_weight_grad: every pixel counts once for any partition of the work") {
  for (const Convolution& c : convolutions) {
    CAPTURE(c.label);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      CAPTURE(name_of(dtype));
      const auto make = dtype == DType::f32 ? numbers : short_numbers;
      const std::vector<float> dy = make(c.y(), 1), x = make(c.x(), 2);
      const std::vector<float> dw = weight_grad(c, dy, x, 2, dtype);
      const std::int64_t count = c.w().count();
      for (std::int64_t i = 0; i < 60; ++i) {
        const std::int64_t weight = i < 20 ? count - 1 - i % count : i * 7919 % count;
        const Sum expected = sum_of(c, dy, x, weight);
        // Winograd transforms multiply the errors of single terms, so the bound is relative to the sum of magnitudes. A result of bf16 is
        // rounded once.
        const double rounding = dtype == DType::bf16 ? std::fabs(expected.value) / 256 : 0;
        CHECK(std::fabs(double{dw[static_cast<std::size_t>(weight)]} - expected.value) <= 16 * 1.2e-7 * expected.magnitude + rounding);
      }
    }
  }
}

TEST_CASE("conv_weight_grad: the same bits on one thread, on two and on five") {
  for (const Convolution& c : convolutions) {
    CAPTURE(c.label);
    for (const DType dtype : {DType::f32, DType::bf16}) {
      CAPTURE(name_of(dtype));
      const std::vector<float> dy = numbers(c.y(), 3), x = numbers(c.x(), 4);
      const std::vector<float> one = weight_grad(c, dy, x, 1, dtype);
      for (const std::uint32_t threads : {2u, 5u}) {
        const std::vector<float> many = weight_grad(c, dy, x, threads, dtype);
        REQUIRE(many.size() == one.size());
        CHECK(std::memcmp(many.data(), one.data(), one.size() * sizeof(float)) == 0);
      }
    }
  }
}

TEST_CASE("conv_weight_grad: memory small selects direct sums instead of Winograd's algorithm") {
  const Convolution c{"", 2, 64, 20, 20, 32, 3, 1, 1};
  const std::vector<float> dy = numbers(c.y(), 3), x = numbers(c.x(), 4);
  const std::vector<float> small = weight_grad(c, dy, x, 2, DType::f32, "small"), normal = weight_grad(c, dy, x, 2, DType::f32);
  CHECK(small != normal);
  for (std::size_t i = 0; i < small.size(); ++i) CHECK(small[i] == doctest::Approx(normal[i]).epsilon(1e-3).scale(10));
}

}  // namespace
}  // namespace tenon::test
