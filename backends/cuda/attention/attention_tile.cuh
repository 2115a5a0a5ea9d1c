// SPDX-License-Identifier: Apache-2.0
// attention_tile.cuh - building blocks of the attention kernels: tiles in shared memory, and the products of tiles.
//
// 16 x 16 threads compute a square tile of scores, R rows and R columns each. Threads read rows of a tile 16 bytes at a time along the
// depth; rows in shared memory are padded by one such pack, so that 16 rows are in different banks.
#pragma once

#include "kernel/pack.cuh"
#include "kernel/wide.cuh"
#include "reduce/reduction.cuh"

namespace tenon::cuda::tiles {

inline constexpr int side = 16;  ///< threads of a block, along each edge of a tile
inline constexpr int threads = side * side;

/// Tile sizes by compute type; they fill at most 43 KiB of shared memory.
template <class W>
struct Tile {
  static constexpr int width = pack_width<W>;          ///< elements of a pack
  static constexpr int each = sizeof(W) == 4 ? 4 : 2;  ///< rows and columns per thread
  static constexpr int rows = side * each;
  static constexpr int depth = rows;            ///< depth of a product that is held at once
  static constexpr int stride = depth + width;  ///< from row to row
  static constexpr int panel = side * width;    ///< columns of a result, per pack of each thread
  static constexpr int terms = 32;              ///< rows of the other operands, in one panel, that are held at once
};

/// The threads of a block as a square.
struct Place {
  int across, down;
};
__device__ inline Place place_of_thread() {
  return {static_cast<int>(threadIdx.x) % side, static_cast<int>(threadIdx.x) / side};
}

/// A window of an operand that starts at some row and column. Elements outside of the operand are 0.
template <class T>
struct Rows {
  const T* data;
  std::int64_t step;     ///< from row to row
  std::int64_t rows;     ///< rows left
  std::int64_t columns;  ///< columns left
  __device__ Rows from(std::int64_t row, std::int64_t column) const {
    return {data + row * step + column, step, rows - row, columns - column};
  }
};

/// Loads the first `rows` rows and `columns` columns to shared memory, V elements at a time.
template <int V, int rows, int columns, int stride, class T>
__device__ void load_by(const Rows<T>& from, Wide<T>* to) {
  constexpr int in_row = columns / V, width = V == 1 ? 1 : Tile<Wide<T>>::width;
  static_assert(columns % V == 0 && V % width == 0 && stride % width == 0);
#pragma unroll 4
  for (int i = static_cast<int>(threadIdx.x); i < rows * in_row; i += threads) {
    const int row = i / in_row, column = i % in_row * V;
    Pack<T, V> stored{};
    if (row < from.rows && column < from.columns) stored = pack_at<V>(from.data + row * from.step + column);
#pragma unroll
    for (int v = 0; v < V; v += width) {
      Pack<Wide<T>, width> pack;
#pragma unroll
      for (int u = 0; u < width; ++u) pack.at[u] = widen(stored.at[v + u]);
      pack_at<width>(to + row * stride + column + v) = pack;
    }
  }
}
/// `packs`: rows divide into aligned packs of 16 bytes.
template <int rows, int columns, int stride, class T>
__device__ void load(const Rows<T>& from, bool packs, Wide<T>* to) {
  if (packs) {
    load_by<pack_width<T>, rows, columns, stride>(from, to);
  } else {
    load_by<1, rows, columns, stride>(from, to);
  }
}

/// sums = a b' of the rows of a tile: a thread has rows down * each + i of a, and rows across + 16 j of b. The operands may be overwritten
/// after it returns.
///
/// Threads  the whole block. `a_stays`: a has only one depth step and is already in shared memory.
template <class T>
__device__ void scores_of_tile(const Rows<T>& a, const Rows<T>& b, bool a_stays, bool packs, Wide<T>* shared_a, Wide<T>* shared_b,
                               Wide<T> (&sums)[Tile<Wide<T>>::each][Tile<Wide<T>>::each]) {
  using W = Wide<T>;
  using Sizes = Tile<W>;
  const Place at = place_of_thread();
#pragma unroll
  for (int i = 0; i < Sizes::each; ++i) {
#pragma unroll
    for (int j = 0; j < Sizes::each; ++j) sums[i][j] = 0;
  }
  for (std::int64_t first = 0; first < a.columns; first += Sizes::depth) {
    if (!a_stays) load<Sizes::rows, Sizes::depth, Sizes::stride>(a.from(0, first), packs, shared_a);
    load<Sizes::rows, Sizes::depth, Sizes::stride>(b.from(0, first), packs, shared_b);
    __syncthreads();
    const int depth = a.columns - first < Sizes::depth ? static_cast<int>(a.columns - first) : Sizes::depth;
#pragma unroll 1
    for (int d = 0; d < depth; d += Sizes::width) {
      Pack<W, Sizes::width> x[Sizes::each];
#pragma unroll
      for (int i = 0; i < Sizes::each; ++i) x[i] = pack_at<Sizes::width>(shared_a + (at.down * Sizes::each + i) * Sizes::stride + d);
#pragma unroll
      for (int j = 0; j < Sizes::each; ++j) {
        const Pack<W, Sizes::width> y = pack_at<Sizes::width>(shared_b + (at.across + j * side) * Sizes::stride + d);
#pragma unroll
        for (int u = 0; u < Sizes::width; ++u) {
#pragma unroll
          for (int i = 0; i < Sizes::each; ++i) sums[i][j] += x[i].at[u] * y.at[u];
        }
      }
    }
    __syncthreads();
  }
}

/// Stores a tile of weights, distributed over threads as by scores_of_tile, to shared memory.
template <class W>
__device__ void share_weights(const W (&weights)[Tile<W>::each][Tile<W>::each], W* shared) {
  const Place at = place_of_thread();
#pragma unroll
  for (int i = 0; i < Tile<W>::each; ++i) {
#pragma unroll
    for (int j = 0; j < Tile<W>::each; ++j) shared[(at.down * Tile<W>::each + i) * Tile<W>::stride + at.across + j * side] = weights[i][j];
  }
}

/// Columns of a result that a thread has in `panels` panels: pack p of a row is at column p * panel + across * width.
template <class W, int panels>
using Results = Pack<W, Tile<W>::width>[Tile<W>::each][panels];

/// out += weights[rows, first ...] x for `terms` rows of x; with `skips`, rows of weight 0 are ignored, even if they are NaN.
template <bool skips, int terms, class W, int panels>
__device__ void add_weighted(const W* weights, const W* x, Results<W, panels>& out) {
  using Sizes = Tile<W>;
  const Place at = place_of_thread();
#pragma unroll 1
  for (int first = 0; first < terms; first += Sizes::width) {
    Pack<W, Sizes::width> weight[Sizes::each];
#pragma unroll
    for (int i = 0; i < Sizes::each; ++i) weight[i] = pack_at<Sizes::width>(weights + (at.down * Sizes::each + i) * Sizes::stride + first);
#pragma unroll
    for (int u = 0; u < Sizes::width; ++u) {
#pragma unroll
      for (int p = 0; p < panels; ++p) {
        const Pack<W, Sizes::width> values =
            pack_at<Sizes::width>(x + ((first + u) * panels + p) * Sizes::panel + at.across * Sizes::width);
#pragma unroll
        for (int i = 0; i < Sizes::each; ++i) {
          if (skips && weight[i].at[u] == 0) continue;
#pragma unroll
          for (int v = 0; v < Sizes::width; ++v) out[i][p].at[v] += weight[i].at[u] * values.at[v];
        }
      }
    }
  }
}

/// out += weights x for all rows of a tile, with the weights in shared memory as written by share_weights.
///
/// Threads  the whole block; it synchronizes before reading, and its operands may be overwritten after it returns.
template <class T, int panels>
__device__ void add_weighted_rows(const Wide<T>* weights, const Rows<T>& x, bool packs, bool skips, Wide<T>* shared_x,
                                  Results<Wide<T>, panels>& out) {
  using Sizes = Tile<Wide<T>>;
  constexpr int terms = Sizes::terms / panels, columns = Sizes::panel * panels;
#pragma unroll 1
  for (int first = 0; first < Sizes::rows; first += terms) {
    load<terms, columns, columns>(x.from(first, 0), packs, shared_x);
    __syncthreads();
    if (skips) {
      add_weighted<true, terms>(weights + first, shared_x, out);
    } else {
      add_weighted<false, terms>(weights + first, shared_x, out);
    }
    __syncthreads();
  }
}

}  // namespace tenon::cuda::tiles
