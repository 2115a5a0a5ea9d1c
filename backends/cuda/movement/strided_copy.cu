// SPDX-License-Identifier: Apache-2.0
#include "movement/strided_copy.h"

#include <algorithm>
#include <array>

#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/thread_index.cuh"

namespace tenon::cuda {
namespace {

/// An element of 16 bytes.
struct alignas(16) Bytes16 {
  std::uint64_t at[2];
};

/// A copy of elements of some size: operand 0 of `layout` is read, operand 1 written.
struct Piece {
  Layout<2> layout;
  const void* from;
  void* to;
};

// ---------------------------------------------------------------- element by element

constexpr int threads = 256;
constexpr std::int64_t chunk = 4 * threads;  ///< elements of a piece that a block copies at a time

/// Passed to kernels by value.
template <int max_count>
struct Pieces {
  Piece at[max_count];
  std::int64_t first_chunk[max_count + 1];
  int count;
};
constexpr int max_pieces = static_cast<int>(StridedCopies::max_count);
static_assert(sizeof(Pieces<max_pieces>) <= 4000);

template <class T, int max_count>
__global__ void copy_pieces(Pieces<max_count> pieces) {
  int k = 0;
  for (std::int64_t c = blockIdx.x; c < pieces.first_chunk[pieces.count]; c += gridDim.x) {
    while (k + 1 < max_count && c >= pieces.first_chunk[k + 1]) ++k;
    const Piece& piece = pieces.at[k];
    const T* const from = static_cast<const T*>(piece.from);
    T* const to = static_cast<T*>(piece.to);
    const std::int64_t begin = (c - pieces.first_chunk[k]) * chunk;
    const std::int64_t end = begin + chunk < piece.layout.count ? begin + chunk : piece.layout.count;
    for (std::int64_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
      std::int64_t at[2];
      place(piece.layout, i, at);
      to[at[1]] = from[at[0]];
    }
  }
}

template <class T, int max_count>
void launch_pieces(Stream& stream, const Piece* pieces, int count) {
  Pieces<max_count> table{};
  table.count = count;
  for (int k = 0; k < count; ++k) {
    table.at[k] = pieces[k];
    table.first_chunk[k + 1] = table.first_chunk[k] + (pieces[k].layout.count + chunk - 1) / chunk;
  }
  launch(stream, grid_stride(stream.device(), table.first_chunk[count] * threads, threads), copy_pieces<T, max_count>, table);
}

/// Up to 15 pieces with elements of one width.
struct Group {
  std::array<Piece, StridedCopies::max_count> pieces;
  int count = 0;
};

template <class T>
void copy_by(Stream& stream, const Group& group) {
  if (group.count == 0) return;
  if (group.count == 1) {
    launch_pieces<T, 1>(stream, group.pieces.data(), 1);
  } else {
    launch_pieces<T, max_pieces>(stream, group.pieces.data(), group.count);
  }
}

// ---------------------------------------------------------------- tiles

constexpr int tile = 32;
constexpr int tile_rows = threads / tile;  ///< rows that a block moves at once

/// A copy that writes along its innermost dimension (columns) and reads along another one (rows); `others` are the other dimensions.
struct Tiles {
  Layout<2> others;
  std::int64_t rows, columns;
  std::int64_t from_column_stride, to_row_stride;
};

/// Each warp reads and writes 32 contiguous elements; the tile is transposed in shared memory. Rows of 33 elements put the elements of a
/// column into different banks.
template <class T>
__global__ void copy_tiles(Tiles tiles, const T* from, T* to) {
  __shared__ T transposed[tile][tile + 1];
  const int x = static_cast<int>(threadIdx.x) % tile, y = static_cast<int>(threadIdx.x) / tile;
  const std::int64_t down = (tiles.rows + tile - 1) / tile, across = (tiles.columns + tile - 1) / tile;
  for (std::int64_t t = blockIdx.x; t < tiles.others.count * down * across; t += gridDim.x) {
    std::int64_t at[2];
    place(tiles.others, t / (down * across), at);
    const std::int64_t row = t / across % down * tile, column = t % across * tile;
    for (int j = y; j < tile; j += tile_rows) {
      if (row + x < tiles.rows && column + j < tiles.columns) {
        transposed[j][x] = from[at[0] + row + x + (column + j) * tiles.from_column_stride];
      }
    }
    __syncthreads();
    for (int j = y; j < tile; j += tile_rows) {
      if (row + j < tiles.rows && column + x < tiles.columns) to[at[1] + (row + j) * tiles.to_row_stride + column + x] = transposed[x][j];
    }
    __syncthreads();
  }
}

/// The dimension that a tiled copy reads along; -1: tiles do not fit this copy.
int row_dimension(const Layout<2>& layout) {
  const int last = layout.rank - 1;
  if (last < 1 || layout.strides[1][last] != 1 || layout.strides[0][last] == 1 || layout.strides[0][last] == 0) return -1;
  constexpr std::int64_t enough = tile / 4;  // in a tile that is less than a quarter full, most lanes idle
  if (layout.sizes[last] < enough) return -1;
  for (int d = 0; d < last; ++d) {
    if (layout.strides[0][d] == 1 && layout.sizes[d] >= enough) return d;
  }
  return -1;
}

Tiles tiles_of(const Layout<2>& layout, int row) {
  const int last = layout.rank - 1;
  Tiles tiles{{}, layout.sizes[row], layout.sizes[last], layout.strides[0][last], layout.strides[1][row]};
  for (int d = 0; d < last; ++d) {
    if (d == row) continue;
    const int to = tiles.others.rank++;
    tiles.others.count *= layout.sizes[d];
    tiles.others.sizes[to] = layout.sizes[d];
    for (int k = 0; k < 2; ++k) tiles.others.strides[k][to] = layout.strides[k][d];
  }
  return tiles;
}

template <class T>
void copy_transposed(Stream& stream, const Piece& piece, int row) {
  const Tiles tiles = tiles_of(piece.layout, row);
  const std::int64_t count = tiles.others.count * ((tiles.rows + tile - 1) / tile) * ((tiles.columns + tile - 1) / tile);
  launch(stream, grid_stride(stream.device(), count * threads, threads), copy_tiles<T>, tiles, static_cast<const T*>(piece.from),
         static_cast<T*>(piece.to));
}

// ---------------------------------------------------------------- which way

/// The widest element, in bytes, that a piece can be copied by; wider than its own only if the innermost dimension is contiguous on both
/// sides.
std::size_t widest(const Piece& piece, std::size_t element_bytes) {
  const Layout<2>& layout = piece.layout;
  const int last = layout.rank - 1;
  if (last < 0 || layout.strides[0][last] != 1 || layout.strides[1][last] != 1) return element_bytes;
  for (std::size_t wide = 16; wide > element_bytes; wide /= 2) {
    const auto factor = static_cast<std::int64_t>(wide / element_bytes);
    bool fits = layout.sizes[last] % factor == 0 && is_aligned(wide, piece.from, piece.to);
    for (int d = 0; fits && d < last; ++d) fits = layout.strides[0][d] % factor == 0 && layout.strides[1][d] % factor == 0;
    if (fits) return wide;
  }
  return element_bytes;
}

/// The same copy with elements `factor` times as large.
void widen(Layout<2>& layout, std::int64_t factor) {
  if (factor == 1) return;
  const int last = layout.rank - 1;
  layout.count /= factor;
  layout.sizes[last] /= factor;
  for (int d = 0; d < last; ++d) {
    for (int k = 0; k < 2; ++k) layout.strides[k][d] /= factor;
  }
  if (layout.sizes[last] == 1) --layout.rank;
}

void copy_transposed(Stream& stream, const Piece& piece, std::size_t element_bytes, int row) {
  switch (element_bytes) {
    case 1:
      return copy_transposed<std::uint8_t>(stream, piece, row);
    case 2:
      return copy_transposed<std::uint16_t>(stream, piece, row);
    case 4:
      return copy_transposed<std::uint32_t>(stream, piece, row);
    case 8:
      return copy_transposed<std::uint64_t>(stream, piece, row);
    default:
      return copy_transposed<Bytes16>(stream, piece, row);
  }
}

}  // namespace

void copy_strided(Stream& stream, std::size_t element_bytes, std::span<const StridedCopy> copies) {
  std::array<Group, 5> by_width;  // 1, 2, 4, 8, 16 bytes
  for (const StridedCopy& copy : copies) {
    Piece piece{collapse<2>(copy.shape, copy.rank, {copy.from_strides, copy.to_strides}), copy.from, copy.to};
    if (piece.layout.count == 0) continue;
    if (copies.size() == 1 && is_dense(piece.layout, 0) && is_dense(piece.layout, 1)) {
      stream.device().enter();
      stream.device().check(cudaMemcpyAsync(piece.to, piece.from, static_cast<std::size_t>(piece.layout.count) * element_bytes,
                                            cudaMemcpyDeviceToDevice, stream.handle()),
                            "cudaMemcpyAsync");
      continue;
    }
    const std::size_t width = widest(piece, element_bytes);
    widen(piece.layout, static_cast<std::int64_t>(width / element_bytes));
    if (const int row = row_dimension(piece.layout); row >= 0) {
      copy_transposed(stream, piece, width, row);
    } else {
      std::size_t slot = 0;
      while (std::size_t{1} << slot < width) ++slot;
      Group& group = by_width[slot];
      group.pieces[static_cast<std::size_t>(group.count++)] = piece;
    }
  }
  copy_by<std::uint8_t>(stream, by_width[0]);
  copy_by<std::uint16_t>(stream, by_width[1]);
  copy_by<std::uint32_t>(stream, by_width[2]);
  copy_by<std::uint64_t>(stream, by_width[3]);
  copy_by<Bytes16>(stream, by_width[4]);
}

}  // namespace tenon::cuda
