// SPDX-License-Identifier: Apache-2.0
// quantize/blocks.h - weights of 4 bits, with a scale for each block of elements.
#pragma once

#include <cstdint>

#include <tenon/tensor.h>

namespace tenon::quantize {

/// A matrix (N, K) of integers of 4 bits in blocks of `block_size` elements of a row, as MatMulNBits takes it: element q of block i of row
/// n stands for (q - 8) scales[n, i].
struct BlockWeights {
  Tensor q;       ///< u8 (N, blocks, block_size / 2), the first of two elements in the lower half of a byte
  Tensor scales;  ///< f32 (N, blocks)
};

/// Weights (K, N) or, if `is_transposed`, (N, K), of f32, finite, dense, on the host. The element of the largest absolute value becomes 0,
/// which stands for -8 scales: integers reach from -8 to 7, and the largest element is as exact as its scale. Elements beyond K are 8, for
/// 0. Source  the symmetric form of ONNX Runtime's quantiser (MlasQuantizeBlockwise).
BlockWeights quantize_blocks(const Tensor& weights, bool is_transposed, std::int64_t block_size);

}  // namespace tenon::quantize
