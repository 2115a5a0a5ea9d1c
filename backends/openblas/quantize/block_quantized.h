// SPDX-License-Identifier: Apache-2.0
// block_quantized.h - products with weights of 4 or 8 bits, which stay so in memory. They are packed in panels of 32 columns: a line has
// the elements of one k, of 4 bits column j in the low half of byte j and column j + 16 in its high half. Scales and zero points are packed
// likewise, a line for each block.
#pragma once

#include <cstdint>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/rounding.h>

namespace tenon::openblas {

inline constexpr std::int64_t block_panel_width = 32;

/// The sizes of weights (n, k) whose rows are blocks.
struct BlockWeights {
  std::int64_t n = 0, k = 0, blocks = 0, block_size = 0;
  int bits = 4;

  std::int64_t panels() const { return sdk::ceil_div(n, block_panel_width); }
  std::int64_t line_bytes() const { return block_panel_width * bits / 8; }
  std::int64_t weight_bytes() const { return panels() * k * line_bytes(); }
  /// Elements of packed scales, or of packed zero points, which are bytes.
  std::int64_t parameters() const { return panels() * blocks * block_panel_width; }
};

/// Packs weights (n, blocks, block_size bits / 8), scales (n, blocks), and zero points (n, ceil(blocks bits / 8)).
void pack_block_weights(const sdk::Host& host, const BlockWeights& w, const std::uint8_t* from, std::uint8_t* out);
template <class T>
void pack_block_scales(const BlockWeights& w, const T* from, T* out);
void pack_block_zero_points(const BlockWeights& w, const std::uint8_t* from, std::uint8_t* out);

/// y = a w' + bias, all operands of w packed.
template <class T>
struct BlockProduct {
  BlockWeights sizes;
  std::int64_t rows = 0;
  const T* a = nullptr;  ///< (rows, k)
  const std::uint8_t* weights = nullptr;
  const T* scales = nullptr;
  const std::uint8_t* zero_points = nullptr;  ///< NULL: 2^(bits - 1)
  const T* bias = nullptr;                    ///< (n); NULL: 0
  T* y = nullptr;                             ///< (rows, n)
};
/// Elements of scratch memory, which each product of T needs on this host.
template <class T>
std::int64_t block_product_scratch(const sdk::Host& host, const BlockWeights& w, std::int64_t rows);
/// By all threads. Bits do not depend on their number.
template <class T>
void multiply_block_quantized(const sdk::Host& host, const BlockProduct<T>& product, T* scratch);

}  // namespace tenon::openblas
