// SPDX-License-Identifier: Apache-2.0
// Products with weights of 4 or 8 bits in blocks.
#include <tenon/sdk/kernel.h>

namespace tenon::reference {
namespace {

/// Element i of integers of `bits` bits, the first in the lowest bits of a byte.
int element_at(const std::uint8_t* bytes, std::int64_t i, std::uint32_t bits) {
  if (bits == 8) return bytes[i];
  return bytes[i / 2] >> (4 * (i % 2)) & 15;
}

/// y[..., n] = bias[n] + sum over k of a[..., k] (b[n, k] - zero_points[n, i]) scales[n, i], i = k / block_size
///
/// Shapes      a (..., K), b (N, blocks, block_size bits / 8), scales (N, blocks), zero_points (N, ceil(blocks bits / 8)) or absent for
///             2^(bits - 1), bias (N) or absent for 0.
/// Dtypes      f32, f64; the sum is carried in double. b and zero_points of u8.
/// Attributes  bits 4 or 8; block_size.
template <class T>
void matmul_nbits(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_nbits>();
  const sdk::Operand &a = call.inputs[0], &b = call.inputs[1];
  const std::int64_t k = a.shape[a.rank - 1], n = b.shape[0], blocks = b.shape[1], bytes = b.shape[2];
  const std::int64_t rows = a.count / k, zero_bytes = (blocks * attributes.bits + 7) / 8;
  T* y = call.output<T>(0);
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* const from = call.input<T>(0) + row * k;
    for (std::int64_t j = 0; j < n; ++j) {
      const std::uint8_t* const weights = call.input<std::uint8_t>(1) + j * blocks * bytes;
      const T* const scales = call.input<T>(2) + j * blocks;
      double sum = call.has_input(4) ? double{call.input<T>(4)[j]} : 0.0;
      for (std::int64_t i = 0; i < k; ++i) {
        const std::int64_t block = i / attributes.block_size;
        const int zero_point = call.has_input(3) ? element_at(call.input<std::uint8_t>(3) + j * zero_bytes, block, attributes.bits)
                                                 : 1 << (attributes.bits - 1);
        sum += double{from[i]} * (element_at(weights, i, attributes.bits) - zero_point) * double{scales[block]};
      }
      *y++ = static_cast<T>(sum);
    }
  }
}

}  // namespace
TENON_KERNEL(matmul_nbits, float, double)
}  // namespace tenon::reference
