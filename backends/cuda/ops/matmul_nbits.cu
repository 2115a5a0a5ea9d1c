// SPDX-License-Identifier: Apache-2.0
// Products with weights of 4 or 8 bits in blocks: one thread for each result.
#include <cstdint>

#include "kernel/launch.h"
#include "kernel/operands.h"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {
namespace {

template <class T>
struct BlockProduct {
  std::int64_t count, n, k, blocks, block_size;
  int bits;
  const T* a;
  const std::uint8_t* b;
  const T* scales;
  const std::uint8_t* zero_points;  ///< NULL: 2^(bits - 1)
  const T* bias;                    ///< NULL: 0
};

/// Element i of integers of `bits` bits, the first in the lowest bits of a byte.
__device__ int element_at(const std::uint8_t* bytes, std::int64_t i, int bits) {
  return bits == 8 ? bytes[i] : bytes[i / 2] >> (4 * (i % 2)) & 15;
}

template <class T>
__global__ void multiply_blocks(BlockProduct<T> p, T* y) {
  const std::int64_t row_bytes = p.blocks * p.block_size * p.bits / 8, zero_bytes = (p.blocks * p.bits + 7) / 8;
  for (std::int64_t e = thread_index(); e < p.count; e += thread_count()) {
    const std::int64_t row = quotient(e, p.n), column = e - row * p.n;
    const T* const a = p.a + row * p.k;
    const std::uint8_t* const b = p.b + column * row_bytes;
    T sum = 0;
    for (std::int64_t block = 0; block < p.blocks; ++block) {
      const int zero_point = p.zero_points == nullptr ? 1 << (p.bits - 1) : element_at(p.zero_points + column * zero_bytes, block, p.bits);
      const std::int64_t first = block * p.block_size, end = first + p.block_size < p.k ? first + p.block_size : p.k;
      T part = 0;
      for (std::int64_t k = first; k < end; ++k) part += a[k] * static_cast<T>(element_at(b, k, p.bits) - zero_point);
      sum += part * p.scales[column * p.blocks + block];
    }
    y[e] = p.bias == nullptr ? sum : sum + p.bias[column];
  }
}

/// y[..., n] = bias[n] + sum over k of a[..., k] (b[n, k] - zero_points[n, i]) scales[n, i], i = k / block_size
///
/// Shapes      a (..., K), b (N, blocks, block_size bits / 8), scales (N, blocks), zero_points (N, ceil(blocks bits / 8)) or absent for
///             2^(bits - 1), bias (N) or absent for 0.
/// Attributes  bits 4 or 8; block_size.
template <class T>
void matmul_nbits(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_nbits>();
  const sdk::Operand &a = call.inputs[0], &b = call.inputs[1];
  if (call.outputs[0].count == 0) return;
  const BlockProduct<T> product{call.outputs[0].count,    b.shape[0],
                                a.shape[a.rank - 1],      b.shape[1],
                                attributes.block_size,    static_cast<int>(attributes.bits),
                                call.input<T>(0),         call.input<std::uint8_t>(1),
                                call.input<T>(2),         input_or_null<std::uint8_t>(call, 3),
                                input_or_null<T>(call, 4)};
  launch_over(call, product.count, multiply_blocks<T>, product, call.output<T>(0));
}

}  // namespace
TENON_KERNEL(matmul_nbits, float, double)
}  // namespace tenon::cuda
