// SPDX-License-Identifier: Apache-2.0
// Convolutions and their input gradients at sizes for which the oracle is too slow: every algorithm of a fast backend, blocked and
// distributed over threads.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "openblas_conv.h"

namespace tenon::test {
namespace {

const Convolution convolutions[] = {
    {"3x3: blocks of tiles, the last one smaller", 1, 64, 50, 46, 40, 3, 1, 1},
    {"3x3: channels that do not fill a register", 3, 21, 19, 22, 35, 3, 1, 1},
    {"3x3: small images next to each other, no padding", 7, 48, 8, 9, 64, 3},
    {"3x3: more padding than kernel", 2, 32, 9, 6, 32, 3, 1, 3},
    {"3x3: weights that all threads share", 1, 256, 23, 26, 130, 3, 1, 1},
    {"3x3: weights that exceed the cache", 4, 400, 11, 9, 320, 3, 1, 1},
    {"3x3: few pixels and many weights, shared panels", 1, 512, 5, 6, 288, 3, 1, 1},
    {"3x3 with strides", 2, 60, 37, 34, 70, 3, 2, 1},
    {"3x3: tiles of 3x3 results", 1, 200, 14, 13, 250, 3, 1, 1},
    {"3x3: tiles of 3x3 results, channels that do not fill a register, no padding", 1, 197, 15, 16, 253, 3},
    {"3x3: tiles of 2x2 results", 1, 512, 7, 7, 288, 3, 1, 1},
    {"3x3: tiles of 2x2 results, more padding than kernel", 1, 500, 3, 4, 270, 3, 1, 3},
    {"3x3: transformed weights of more than 16 MiB", 4, 512, 7, 7, 240, 3, 1, 1},
    {"3x3 with strides: blocks of tiles, the last one smaller", 1, 64, 57, 55, 72, 3, 2, 1},
    {"3x3 with strides: channels that do not fill a register, no padding", 2, 67, 41, 38, 75, 3, 2},
    {"3x3 with strides: more padding than kernel", 1, 80, 23, 30, 65, 3, 2, 3},
    {"3x3 with strides: weights that all threads share", 1, 200, 31, 32, 210, 3, 2, 1},
    {"1x1: weights that stream through each core's cache", 1, 600, 21, 20, 900, 1},
    {"3x3 with dilation", 2, 33, 24, 29, 40, 3, 1, 2, 2},
    {"5x5: tiles of 3x3 results", 2, 64, 14, 27, 70, 5, 1, 2},
    {"5x5: tiles of 3x3 results, weights that all threads share", 1, 200, 12, 13, 130, 5, 1, 2},
    {"5x5: tiles of 3x3 results, no padding", 1, 40, 19, 17, 48, 5},
    {"5x5: tiles of 2x2 results", 1, 40, 8, 4, 48, 5, 1, 2},
    {"5x5: more padding than kernel, channels that do not fill a register", 1, 37, 11, 9, 45, 5, 1, 5},
    {"5x5 with strides and dilation", 1, 30, 41, 38, 50, 5, 3, 4, 2},
    {"1x1: the image in place", 2, 70, 30, 31, 90, 1},
    {"1x1: the image in place, shared panels", 1, 1024, 7, 7, 200, 1},
    {"1x1: many rows of many channels, in chunks", 1, 1100, 30, 31, 90, 1},
    {"1x1 with strides", 2, 130, 27, 28, 65, 1, 2},
    {"1x1 with strides, shared panels", 1, 256, 9, 10, 513, 1, 2},
    {"few channels: taps next to each other", 1, 3, 75, 68, 64, 7, 2, 3},
    {"few channels, kernel size 11", 2, 3, 70, 71, 33, 11, 4, 2},
    {"few channels: bands of lines, more padding than kernel, dilation", 2, 4, 39, 61, 40, 3, 1, 5, 2},
    {"few channels: one pixel, a kernel larger than the image", 3, 2, 1, 1, 33, 3, 1, 1},
    {"one channel, 1x1", 2, 1, 30, 31, 20, 1},
    {"more weights per result than rows of few channels have", 1, 4, 25, 24, 16, 12, 3, 4},
    {"groups", 2, 48, 21, 20, 60, 3, 1, 1, 1, 3},
    {"groups with strides, shared panels", 1, 256, 6, 6, 256, 3, 2, 1, 1, 2},
    {"depthwise", 3, 70, 31, 25, 70, 3, 1, 1, 1, 70},
    {"depthwise, with strides", 2, 37, 30, 33, 37, 5, 2, 2, 1, 37},
    {"depthwise, 5x5: tiles of every width", 1, 70, 23, 26, 70, 5, 1, 2, 1, 70},
    {"depthwise, 3x3 with strides: tiles of every width", 2, 72, 25, 25, 72, 3, 2, 1, 1, 72},
    {"depthwise: images smaller than the kernel", 2, 33, 2, 1, 33, 5, 1, 4, 1, 33},
    {"depthwise: few rows, threads take channels", 1, 200, 4, 40, 200, 3, 1, 1, 1, 200},
    {"depthwise: more padding than kernel", 1, 40, 9, 20, 40, 3, 1, 3, 1, 40},
    {"depthwise with dilation", 1, 40, 19, 20, 40, 3, 1, 2, 2, 40},
};

const Convolution bf16_convolutions[] = {
    {"bands: the last one smaller", 2, 64, 31, 30, 64, 3, 1, 1},
    {"bands with strides", 1, 64, 37, 40, 32, 3, 2, 1},
    {"bands with strides and dilation", 1, 32, 50, 71, 64, 5, 3, 4, 2},
    {"bands: more padding than kernel", 2, 32, 9, 12, 32, 3, 1, 3},
    {"bands of whole images, in two groups, shared panels", 17, 320, 9, 13, 256, 3, 1, 1},
    {"bands with groups", 2, 64, 21, 20, 128, 3, 1, 1, 1, 2},
    {"3x3: lines too short for bands", 2, 64, 19, 5, 40, 3, 1, 1},
    {"few channels: taps next to each other", 1, 3, 35, 48, 40, 7, 2, 3},
    {"few channels: more padding than kernel", 2, 4, 19, 31, 40, 3, 1, 5},
    {"few channels: one pixel, a kernel larger than the image", 3, 2, 1, 1, 33, 3, 1, 1},
    {"few channels with dilation", 1, 3, 25, 26, 33, 3, 1, 2, 2},
    {"one channel, 1x1", 2, 1, 30, 31, 20, 1},
};

struct Results {
  std::vector<float> y, dx;
};

/// Weights as a constant, packed when the plan is made, or as an input, packed in the call. Operands of bf16 are cast in the graph.
Results run(const Convolution& c, bool packed, std::uint32_t threads, const std::string& memory = "normal", DType dtype = DType::f32) {
  Config config = test_config("openblas:0");
  config.threads = threads;
  config.backends.options["openblas"]["memory"] = memory;
  const Context context(config);
  const Tensor x = Tensor::of(numbers(c.x(), 1), c.x());
  const Tensor w = Tensor::of(numbers(c.w(), 2), c.w());
  const Tensor dy = Tensor::of(numbers(c.y(), 3), c.y());
  Graph graph;
  const auto stored = [dtype](Value v) { return dtype == DType::f32 ? v : ops::cast(v, dtype); };
  const Value image = stored(graph.input("x", DType::f32, c.x()));
  const Value gradient = stored(graph.input("dy", DType::f32, c.y()));
  const Value weights = stored(packed ? graph.constant(w) : graph.input("w", DType::f32, c.w()));
  ops::ConvOptions options;
  options.strides = {c.stride, c.stride};
  options.dilations = {c.dilation, c.dilation};
  options.padding = {{c.pad, c.pad}, {c.pad, c.pad}};
  options.groups = c.groups;
  graph.output("y", ops::cast(ops::conv(image, weights, {}, options), DType::f32));
  graph.output("dx", ops::cast(ops::conv_input_grad(gradient, weights, c.x(), c.attributes()), DType::f32));
  Program program(context, graph);
  std::vector<Tensor> operands{x, dy};
  if (!packed) operands.push_back(w);
  const std::vector<Tensor> results = program.run(operands);
  return {floats(results[0]), floats(results[1])};
}

/// Calls use(pixel, weight) with the offsets of every term of one element of y.
template <class Use>
void for_each_term(const Convolution& c, std::int64_t y, const Use& use) {
  const std::int64_t height = c.result(c.height), width = c.result(c.width), group_channels = c.channels / c.groups;
  const std::int64_t column = y % width, row = y / width % height, filter = y / width / height % c.filters;
  const std::int64_t image = y / width / height / c.filters;
  for (std::int64_t k = 0; k < group_channels * c.kernel * c.kernel; ++k) {
    const std::int64_t channel = filter / (c.filters / c.groups) * group_channels + k / (c.kernel * c.kernel);
    const std::int64_t i = row * c.stride + k / c.kernel % c.kernel * c.dilation - c.pad;
    const std::int64_t j = column * c.stride + k % c.kernel * c.dilation - c.pad;
    if (i < 0 || i >= c.height || j < 0 || j >= c.width) continue;
    use(static_cast<std::size_t>(((image * c.channels + channel) * c.height + i) * c.width + j),
        static_cast<std::size_t>(filter * group_channels * c.kernel * c.kernel + k));
  }
}

/// Winograd transforms multiply the errors of single terms, so the bound is relative to the sum of magnitudes. At an edge the error is
/// that of the interior, where `terms` terms of about 1/4 are added. A result of bf16 is rounded once.
bool near(float got, const Sum& expected, std::int64_t terms, DType dtype) {
  const double sum = 16 * 1.2e-7 * std::max(expected.magnitude, static_cast<double>(terms) / 4);
  return std::fabs(double{got} - expected.value) <= sum + (dtype == DType::bf16 ? std::fabs(expected.value) / 256 : 0);
}

/// The numbers as `dtype` stores them.
std::vector<float> stored_numbers(const Shape& shape, std::uint32_t seed, DType dtype) {
  return dtype == DType::f32 ? numbers(shape, seed) : Tensor::of(numbers(shape, seed), shape).to(dtype).to(DType::f32).to_vector<float>();
}

/// Checks elements of y at the end and at a stride, and every fifth of dx in the last image, which has the last blocks; with reduced sizes
/// those of dx if they have few terms.
void check(const Convolution& c, const Results& results, DType dtype = DType::f32) {
  const std::vector<float> x = stored_numbers(c.x(), 1, dtype), w = stored_numbers(c.w(), 2, dtype), dy = stored_numbers(c.y(), 3, dtype);
  const std::int64_t count = c.y().count();
  const std::int64_t taps = c.kernel * c.kernel;
  for (std::int64_t i = 0; i < 300; ++i) {
    const std::int64_t y = i < 60 ? count - 1 - i % count : i * 7919 % count;
    Sum expected;
    for_each_term(c, y, [&](std::size_t pixel, std::size_t weight) { expected.add(x[pixel], w[weight]); });
    CAPTURE(y);
    CHECK(near(results.y[static_cast<std::size_t>(y)], expected, c.channels / c.groups * taps, dtype));
  }
  std::vector<Sum> dx(x.size());
  const std::int64_t image_values = count / c.images;
  if (small_sizes() && image_values * c.channels / c.groups * taps > 10'000'000) return;
  for (std::int64_t y = count - image_values; y < count; ++y) {
    for_each_term(c, y, [&](std::size_t pixel, std::size_t weight) {
      if (pixel % 5 == 0) dx[pixel].add(dy[static_cast<std::size_t>(y)], w[weight]);
    });
  }
  std::int64_t wrong = 0;
  for (std::size_t pixel = x.size() - x.size() / static_cast<std::size_t>(c.images); pixel < x.size(); ++pixel) {
    if (pixel % 5 == 0 && !near(results.dx[pixel], dx[pixel], c.filters / c.groups * taps, dtype)) ++wrong;
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("conv and conv_input_grad: every algorithm sums every term once") {
  for (const Convolution& c : convolutions) {
    CAPTURE(c.label);
    check(c, run(c, true, 2));
  }
}

TEST_CASE("conv and conv_input_grad of bf16: every algorithm sums every term once, with the same bits on any number of threads") {
  for (const Convolution& c : bf16_convolutions) {
    CAPTURE(c.label);
    const Results one = run(c, true, 1, "normal", DType::bf16), many = run(c, false, 3, "normal", DType::bf16);
    check(c, one, DType::bf16);
    CHECK(same_bits(many.y, one.y));
    CHECK(same_bits(many.dx, one.dx));
  }
}

TEST_CASE("conv and conv_input_grad: the same bits on any number of threads, with weights packed ahead or in the call") {
  for (const Convolution& c : convolutions) {
    CAPTURE(c.label);
    const Results one = run(c, true, 1);
    for (const std::uint32_t threads : {2u, 5u}) {
      if (threads == 2 && small_sizes()) continue;
      const Results many = run(c, threads == 2, threads);
      CHECK(same_bits(many.y, one.y));
      CHECK(same_bits(many.dx, one.dx));
    }
  }
}

TEST_CASE("conv: memory small selects the direct algorithm instead of Winograd's, with the same results") {
  for (const Convolution& c : convolutions) {
    const std::string label = c.label;
    const bool is_winograd = label.starts_with("3x3: blocks of tiles") || label.starts_with("3x3: weights that all threads share") ||
                             label.starts_with("3x3: tiles of") || label.starts_with("3x3 with strides: ") || label.starts_with("5x5: ");
    if (!is_winograd) continue;
    CAPTURE(c.label);
    const Results small = run(c, true, 2, "small"), large = run(c, true, 2);
    check(c, small);
    CHECK_FALSE(same_bits(small.y, large.y));
  }
}

TEST_CASE("conv: strides of 2 have direct sums where large weights cost more than Winograd's algorithm saves") {
  const Convolution c{"", 1, 192, 33, 33, 256, 3, 2, 1};
  CHECK(same_bits(run(c, true, 2, "small").y, run(c, true, 2).y));
}

TEST_CASE("conv_input_grad: sums of the few terms of one filter are as precise as those of a product") {
  const Convolution c{"", 200, 1, 9, 9, 1, 5, 1, 2};
  const std::vector<float> dx = run(c, true, 2).dx, w = numbers(c.w(), 2), dy = numbers(c.y(), 3);
  std::vector<Sum> expected(dx.size());
  for (std::int64_t y = 0; y < c.y().count(); ++y) {
    for_each_term(c, y, [&](std::size_t pixel, std::size_t weight) { expected[pixel].add(dy[static_cast<std::size_t>(y)], w[weight]); });
  }
  double largest = 0;  // error, in units of epsilon and the sum of magnitudes of 25 terms
  for (std::size_t i = 0; i < dx.size(); ++i) {
    largest = std::max(largest, std::fabs(double{dx[i]} - expected[i].value) / (0x1p-23 * std::max(expected[i].magnitude, 25.0 / 4)));
  }
  CHECK(largest < 5);
}

TEST_CASE("conv: programs share packed weights of Winograd's algorithm only if their tiles are the same") {
  const Context context(test_config("openblas:0"));
  // Tiles of 3x3 results, those of strides of 2, whose weights take as many bytes, tiles of 2x2 and of 4x4.
  const Convolution shapes[] = {{"", 1, 200, 14, 13, 250, 3, 1, 1},
                                {"", 1, 200, 31, 32, 250, 3, 2, 1},
                                {"", 1, 200, 6, 6, 250, 3, 1, 1},
                                {"", 4, 200, 16, 16, 250, 3, 1, 1}};
  const Tensor w = Tensor::of(numbers(shapes[0].w(), 2), shapes[0].w());
  const auto compiled = [&](const Convolution& c, const std::shared_ptr<ParameterStore>& parameters) {
    Graph graph;
    ops::ConvOptions options;
    options.strides = {c.stride, c.stride};
    options.padding = {{c.pad, c.pad}, {c.pad, c.pad}};
    graph.output("y", ops::conv(graph.input("x", DType::f32, c.x()), graph.parameter("w", DType::f32, c.w()), {}, options));
    auto program = std::make_unique<Program>(context, graph, ProgramOptions{.parameters = parameters});
    parameters->set("w", w);
    return program;
  };
  const auto store = std::make_shared<ParameterStore>();
  std::vector<std::unique_ptr<Program>> sharing;
  for (const Convolution& c : shapes) sharing.push_back(compiled(c, store));
  for (std::size_t i = 0; i < std::size(shapes); ++i) {
    CAPTURE(i);
    const Tensor x = Tensor::of(numbers(shapes[i].x(), 1), shapes[i].x());
    const auto alone = compiled(shapes[i], std::make_shared<ParameterStore>());
    CHECK(same_bits(floats(sharing[i]->run({x})[0]), floats(alone->run({x})[0])));
  }
}

}  // namespace tenon::test
