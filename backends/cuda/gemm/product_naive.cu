// SPDX-License-Identifier: Apache-2.0
#include "gemm/product_naive.h"

#include "kernel/dispatch.h"
#include "kernel/launch.h"
#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"

namespace tenon::cuda {
namespace {

template <class T>
struct Operands {
  const T *a, *b, *c, *bias, *relu_result;
  T* y;
  Layout<2> batch;
  sdk::MatrixView a_view, b_view;
  Wide<T> alpha, beta;
  sdk::Activation activation;
};

/// Element e of y.
template <class T>
__device__ T result(const Operands<T>& p, std::int64_t e) {
  using W = Wide<T>;
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns, depth = p.a_view.columns;
  const std::int64_t column = e % n, row = e / n % m;
  std::int64_t at[2];
  place(p.batch, e / n / m, at);
  const T* const a = p.a + at[0] + row * p.a_view.row_stride;
  const T* const b = p.b + at[1] + column * p.b_view.column_stride;
  W sum = 0;
  for (std::int64_t k = 0; k < depth; ++k) sum += widen(a[k * p.a_view.column_stride]) * widen(b[k * p.b_view.row_stride]);
  if (p.alpha != W(1)) sum *= p.alpha;
  if (p.c != nullptr) sum += p.beta * widen(p.c[e]);
  if (p.bias != nullptr) sum += widen(p.bias[column]);
  sum = activated(p.activation, sum);
  if (p.relu_result != nullptr) sum = functions::ReluGrad{}(sum, widen(p.relu_result[e]));
  return narrow<T>(sum);
}

template <class T>
__global__ void product_kernel(Operands<T> p, std::int64_t results) {
  for (std::int64_t e = thread_index(); e < results; e += thread_count()) p.y[e] = result(p, e);
}

/// Whether the scales that belong to these sizes, and their product, are normal numbers of f32, with room for alpha.
__device__ bool in_range(float a, float b) {
  constexpr float least = 0x1p-100f, greatest = 0x1p100f, greatest_product = 0x1p119f;
  return a >= least && a <= greatest && b >= least && b <= greatest && a * b >= least && a * b <= greatest_product;
}

template <class T>
__global__ void where_fp8_fails(Operands<T> p, std::int64_t results, Fp8States states) {
  const bool all = !in_range(states.a->amax, states.b->amax);
  if (!all && (states.a->nonfinite | states.b->nonfinite) == 0) return;
  for (std::int64_t e = thread_index(); e < results; e += thread_count()) {
    const Wide<T> y = widen(p.y[e]);
    if (all || y != y) p.y[e] = result(p, e);
  }
}

template <class T>
Operands<T> operands_of(const Product& p) {
  return {static_cast<const T*>(p.a),
          static_cast<const T*>(p.b),
          p.beta != 0 ? static_cast<const T*>(p.c) : nullptr,
          static_cast<const T*>(p.bias),
          static_cast<const T*>(p.relu_result),
          static_cast<T*>(p.y),
          p.batch,
          p.a_view,
          p.b_view,
          static_cast<Wide<T>>(p.alpha),
          static_cast<Wide<T>>(p.beta),
          p.activation};
}
std::int64_t results_of(const Product& p) {
  return p.batch.count * p.a_view.rows * p.b_view.columns;
}

}  // namespace

void multiply_naively(Stream& stream, const Product& product) {
  const std::int64_t results = results_of(product);
  dispatch_floating(product.dtype, [&]<class T>() { launch_over(stream, results, product_kernel<T>, operands_of<T>(product), results); });
}

void multiply_naively_where_fp8_fails(Stream& stream, const Product& product, const Fp8States& states) {
  const std::int64_t results = results_of(product);
  const Geometry geometry = grid_stride(stream.device(), results);
  if (product.dtype == TENON_DTYPE_F16) {
    launch(stream, geometry, where_fp8_fails<sdk::Half>, operands_of<sdk::Half>(product), results, states);
  } else {
    launch(stream, geometry, where_fp8_fails<sdk::BFloat16>, operands_of<sdk::BFloat16>(product), results, states);
  }
}

}  // namespace tenon::cuda
