// SPDX-License-Identifier: Apache-2.0
#include "gemm/epilogue.h"

#include "kernel/dispatch.h"
#include "kernel/launch.h"
#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"

namespace tenon::cuda {
namespace {

template <class T>
struct Operands {
  T* y;
  const T* c;
  const T* bias;
  const T* relu_result;
  std::int64_t rows, n, c_row, c_column;
  Wide<T> beta;
  bool reads_y;
  sdk::Activation activation;
};

template <class T>
__global__ void epilogue_kernel(Operands<T> p) {
  using W = Wide<T>;
  for (std::int64_t e = thread_index(); e < p.rows * p.n; e += thread_count()) {
    const std::int64_t row = e / p.n, column = e - row * p.n;
    W sum = p.reads_y ? widen(p.y[e]) : W(0);
    if (p.c != nullptr) {
      const W addend = widen(p.c[row * p.c_row + column * p.c_column]);
      sum += p.beta == W(1) ? addend : p.beta * addend;
    }
    if (p.bias != nullptr) sum += widen(p.bias[column]);
    sum = activated(p.activation, sum);
    if (p.relu_result != nullptr) sum = functions::ReluGrad{}(sum, widen(p.relu_result[e]));
    p.y[e] = narrow<T>(sum);
  }
}

template <class T>
void apply_as(Stream& stream, const Epilogue& work) {
  launch_over(stream, work.rows * work.n, epilogue_kernel<T>,
              Operands<T>{static_cast<T*>(work.y), static_cast<const T*>(work.c), static_cast<const T*>(work.bias),
                          static_cast<const T*>(work.relu_result), work.rows, work.n, work.c_row, work.c_column,
                          static_cast<Wide<T>>(work.beta), work.reads_y, work.activation});
}

}  // namespace

void apply_epilogue(Stream& stream, const Epilogue& work) {
  dispatch_floating(work.dtype, [&]<class T>() { apply_as<T>(stream, work); });
}

}  // namespace tenon::cuda
