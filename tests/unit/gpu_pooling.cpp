// SPDX-License-Identifier: Apache-2.0
// Max pooling and its gradient on the GPU, bit for bit.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <tenon/functions.h>

#include "gpu_testing.h"

namespace tenon {
namespace {

using test::floats;
using test::gpu_config;

struct Window {
  Shape x;
  std::vector<std::int64_t> kernel, strides;
  std::vector<std::pair<std::int64_t, std::int64_t>> padding;
};

/// Values of few digits, so that windows contain equal ones.
Tensor numbers(const Shape& shape, DType dtype, float phase, float digits) {
  std::vector<float> values(static_cast<std::size_t>(shape.count()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::round(digits * std::sin(1.7F * static_cast<float>(i) + phase)) / 8;
  return Tensor::of<float>(values, shape).to(dtype);
}

TEST_CASE("gpu: the gradient of max pooling is the sum of dy in its order, to the last bit") {
  // channels that do and do not fill packs, odd sizes, windows that overlap much, not at all, and in one dimension; the last two planes
  // have more than 65536 elements
  const std::vector<Window> windows = {
      {{2, 8, 13, 12}, {3, 3}, {2, 2}, {{1, 1}, {1, 1}}},  {{1, 16, 9, 11}, {3, 3}, {1, 1}, {{1, 1}, {1, 1}}},
      {{2, 5, 8, 7}, {2, 2}, {2, 2}, {{0, 0}, {0, 0}}},    {{1, 12, 10, 9}, {5, 2}, {2, 3}, {{2, 1}, {0, 1}}},
      {{1, 8, 7, 9}, {2, 2}, {3, 4}, {{0, 0}, {0, 0}}},    {{3, 24, 33}, {4}, {2}, {{1, 2}}},
      {{1, 3, 6, 6}, {6, 6}, {1, 1}, {{3, 3}, {3, 3}}},    {{1, 8, 257, 259}, {3, 3}, {2, 2}, {{1, 1}, {1, 1}}},
      {{1, 1, 300, 250}, {3, 3}, {2, 2}, {{1, 1}, {1, 1}}}};
  const Context context(gpu_config());
  for (const DType dtype : {DType::bf16, DType::f16, DType::f32}) {
    for (std::size_t i = 0; i < windows.size(); ++i) {
      const Window& window = windows[i];
      ops::WindowOptions options;
      options.strides = window.strides;
      options.padding = window.padding;
      Graph graph;
      const Value x = graph.input("x", dtype, window.x);
      const auto [y, indices] = ops::max_pool_with_indices(x, window.kernel, options);
      const Value dy = graph.input("dy", dtype, y.shape());
      graph.output("indices", indices);
      graph.output("y", ops::cast(y, DType::f32));
      graph.output("dx", ops::cast(gradients(ops::reduce_sum(y * dy), {x})[0], DType::f32));
      const Tensor image = numbers(window.x, dtype, 0.3F, 16), gradient = numbers(y.shape(), dtype, 1.1F, 4000);
      Program program(context, graph);
      const std::vector<Tensor> got = program.run({image, gradient});

      const std::vector<float> values = floats(image.to(DType::f32)), terms = floats(gradient.to(DType::f32));
      const std::vector<std::int64_t> takers = got[0].to_host().to_vector<std::int64_t>();
      REQUIRE(std::all_of(takers.begin(), takers.end(), [&](std::int64_t taker) { return taker >= 0 && taker < window.x.count(); }));
      std::vector<float> maxima(takers.size()), sums(values.size());
      for (std::size_t k = 0; k < takers.size(); ++k) {
        const auto taker = static_cast<std::size_t>(takers[k]);
        maxima[k] = values[taker];
        sums[taker] += terms[k];
      }
      const std::string what = std::string(name_of(dtype)) + ", window " + std::to_string(i);
      CHECK_MESSAGE(floats(got[1]) == maxima, what);
      CHECK_MESSAGE(floats(got[2]) == floats(Tensor::of<float>(sums, window.x).to(dtype).to(DType::f32)), what);
    }
  }
}

}  // namespace
}  // namespace tenon
