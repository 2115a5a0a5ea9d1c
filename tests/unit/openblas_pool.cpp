// SPDX-License-Identifier: Apache-2.0
// The gradient of max pooling at sizes that are divided into blocks of channels, and the memory of its sums.
#include <cmath>
#include <cstdint>
#include <vector>

#include "openblas_conv.h"

namespace tenon::test {
namespace {

struct Gradient {
  std::vector<float> dx;
  std::uint64_t workspace = 0;  ///< bytes
};

/// dx of `shape` in bf16: dy (N, C, windows) counts where `indices`, of the elements of the whole tensor, say.
Gradient max_pool_grad(const Shape& shape, const Tensor& dy, const Tensor& indices, std::uint32_t threads) {
  Config config = test_config("openblas:0");
  config.threads = threads;
  const Context context(config);
  Graph graph;
  const Value gradient = graph.input("dy", DType::bf16, dy.shape()), places = graph.input("indices", DType::i64, indices.shape());
  graph.output("dx", graph.apply(TENON_OP_MaxPoolGrad, {gradient, places}, {}, {.name = {}, .shape = shape})[0]);
  Program program(context, graph);
  return {program.run({dy, indices})[0].to_host().to(DType::f32).to_vector<float>(), program.memory()[0].workspace_size_bytes};
}

}  // namespace

TEST_CASE("max_pool_grad of bf16: every dy counts once, is rounded once, and has the same bits on any number of threads") {
  for (const Shape& shape : {Shape{1, 70, 20, 20}, Shape{3, 33, 9, 7}, Shape{1, 40, 300, 300}, Shape{2, 1, 64, 64}}) {
    CAPTURE(shape.str());
    const std::int64_t planes = shape[0] * shape[1], pixels = shape[2] * shape[3], windows = pixels / 3;
    const Shape pooled{shape[0], shape[1], windows, 1};
    const Tensor dy = Tensor::of(numbers(pooled, 1), pooled).to(DType::bf16);
    const std::vector<float> terms = dy.to(DType::f32).to_vector<float>();
    std::vector<std::int64_t> indices;
    std::vector<double> sums(static_cast<std::size_t>(planes * pixels));
    for (std::int64_t i = 0; i < planes * windows; ++i) {
      indices.push_back(i / windows * pixels + i * 7919 % (pixels / 2));  // some elements have several, half of them none
      sums[static_cast<std::size_t>(indices.back())] += terms[static_cast<std::size_t>(i)];
    }
    const Tensor places = Tensor::of(indices, pooled);
    const std::vector<float> one = max_pool_grad(shape, dy, places, 1).dx;
    std::int64_t wrong = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (!(std::fabs(one[i] - sums[i]) <= std::fabs(sums[i]) * 0x1p-8 + 0x1p-20)) ++wrong;
    }
    CHECK(wrong == 0);
    for (const std::uint32_t threads : {2u, 5u}) CHECK(max_pool_grad(shape, dy, places, threads).dx == one);
  }
}

TEST_CASE("max_pool_grad of bf16: the memory of sums is that of the tasks and channels that there are") {
  const Shape shape{1, 1, 256, 256}, pooled{1, 1, 128, 128};
  const Gradient gradient = max_pool_grad(shape, Tensor::zeros(DType::bf16, pooled), Tensor::zeros(DType::i64, pooled), 4);
  CHECK(gradient.workspace <= static_cast<std::uint64_t>(shape.count()) * sizeof(float) + 4096);
}

}  // namespace tenon::test
