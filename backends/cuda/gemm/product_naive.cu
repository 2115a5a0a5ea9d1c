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

template <class T>
__global__ void product_kernel(Operands<T> p) {
  using W = Wide<T>;
  const std::int64_t m = p.a_view.rows, n = p.b_view.columns, depth = p.a_view.columns;
  for (std::int64_t e = thread_index(); e < p.batch.count * m * n; e += thread_count()) {
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
    p.y[e] = narrow<T>(sum);
  }
}

template <class T>
void multiply_as(Stream& stream, const Product& p) {
  const std::int64_t results = p.batch.count * p.a_view.rows * p.b_view.columns;
  launch_over(stream, results, product_kernel<T>,
              Operands<T>{static_cast<const T*>(p.a), static_cast<const T*>(p.b), p.beta != 0 ? static_cast<const T*>(p.c) : nullptr,
                          static_cast<const T*>(p.bias), static_cast<const T*>(p.relu_result), static_cast<T*>(p.y), p.batch, p.a_view,
                          p.b_view, static_cast<Wide<T>>(p.alpha), static_cast<Wide<T>>(p.beta), p.activation});
}

}  // namespace

void multiply_naively(Stream& stream, const Product& product) {
  dispatch_floating(product.dtype, [&]<class T>() { multiply_as<T>(stream, product); });
}

}  // namespace tenon::cuda
