// SPDX-License-Identifier: Apache-2.0
// winograd_tiles.h - the transforms of tiles: from pixels to the values that are multiplied by weights, and from sums to results.
#pragma once

#include <array>
#include <cstdint>

#include "conv/winograd_geometry.h"
#include "conv/winograd_operands.h"

namespace tenon::openblas {

/// The matrices of a block of tiles: x (tiles, channels) and products (tiles, out_channels).
struct WinogradTileMemory {
  float* x;
  float* y;
  const void* zeros;  ///< as many as channels, of any type
  /// Of each transformed value: that of the first tile in x, and from tile to tile.
  std::array<std::int64_t, winograd_max_values> value_at, x_step;
  std::int64_t y_step, y_plane;  ///< of the products, from tile to tile, from matrix to matrix
};

/// Transforms the pixels of tiles [begin, end), of which `first` is the first one in `memory`, to memory.x.
template <class T>
void winograd_input_tiles(const WinogradConv& conv, const T* x, const WinogradTileMemory& memory, std::int64_t first, std::int64_t begin,
                          std::int64_t end);
/// Transforms the products in memory.y to the results of the tiles, with the epilogue, and the largest of windows if `operands` say so.
template <class T>
void winograd_output_tiles(const WinogradConv& conv, const WinogradOperands<T>& operands, const WinogradTileMemory& memory,
                           std::int64_t first, std::int64_t begin, std::int64_t end);

}  // namespace tenon::openblas
