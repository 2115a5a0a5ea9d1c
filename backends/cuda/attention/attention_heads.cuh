// SPDX-License-Identifier: Apache-2.0
// attention_heads.cuh - what attention and its gradient share: the rows of operands with several heads, and the tiles that blocks compute.
//
// The heads of q that share a head of k and v are contiguous in memory, so that their rows form one matrix: a group has
// R = (H / G) S rows, row r being query r % S of its head r / S. Heads that share none may have any distance from each other, and their
// rows too: those of (B, S, H, D), where the products before and after have them.
//
// Source  Milakov, Gimelshein: Online normalizer calculation for softmax (2018); Dao, Fu, Ermon, Rudra, Re: FlashAttention (2022), for the
//         running maximum and sum of each row and for scores that the gradient recomputes from the logarithm of that sum.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <tenon/sdk/strided.h>

#include "attention/attention_tile.cuh"
#include "kernel/divisor.h"
#include "kernel/operands.h"

namespace tenon::cuda::tiles {

/// Where the rows of a group begin: `row` elements from one to the next.
struct GroupStrides {
  std::int64_t batch, group, row;
};
/// Of x (B, H, S, D), `sharing` of whose heads are a group.
inline GroupStrides group_strides(const sdk::Operand& x, std::int64_t sharing) {
  return {x.strides[0], x.strides[1] * sharing, x.strides[2]};
}
/// Of a result with the sizes (batch, heads, rows, columns), dense in that order, or with heads and rows exchanged.
inline GroupStrides result_strides(const sdk::Call& call, std::int64_t heads, std::int64_t rows, std::int64_t columns,
                                   std::int64_t sharing) {
  const std::int64_t batch = heads * rows * columns;
  return call.merged_heads ? GroupStrides{batch, columns, heads * columns} : GroupStrides{batch, sharing * rows * columns, columns};
}

/// q (B, H, S, D), k (B, G, L, D), v (B, G, L, E), a mask that broadcasts to (B, H, S, L) or NULL. Passed to kernels by value.
template <class T>
struct Heads {
  const T *q, *k, *v, *mask;
  GroupStrides q_strides, k_strides, v_strides;
  std::int64_t mask_strides[4];
  std::int64_t batch, groups, sharing, queries, keys, size, result;  ///< sharing = H / G
  bool causal;
  Wide<T> scale;
  Divisor by_groups, by_queries;

  /// `first` is operand q.
  Heads(const sdk::Call& call, std::uint32_t first)
      : q(call.input<T>(first)),
        k(call.input<T>(first + 1)),
        v(call.input<T>(first + 2)),
        mask(input_or_null<T>(call, first + 3)),
        mask_strides{},
        batch(call.inputs[first].shape[0]),
        groups(call.inputs[first + 1].shape[1]),
        sharing(call.inputs[first].shape[1] / groups),
        queries(call.inputs[first].shape[2]),
        keys(call.inputs[first + 1].shape[2]),
        size(call.inputs[first].shape[3]),
        result(call.inputs[first + 2].shape[3]),
        causal(call.attr<tenon_attributes_attention>().causal != 0),
        scale(static_cast<Wide<T>>(call.attr<tenon_attributes_attention>().scale)),
        by_groups(groups),
        by_queries(queries) {
    q_strides = group_strides(call.inputs[first], sharing);
    k_strides = group_strides(call.inputs[first + 1], 1);
    v_strides = group_strides(call.inputs[first + 2], 1);
    if (!call.has_input(first + 3)) return;
    const sdk::Strides strides = sdk::broadcast_strides(call.inputs[first + 3], 4);
    std::copy_n(strides.begin(), 4, mask_strides);
  }

  /// The number of (batch, group) entries, and the rows of each.
  __host__ __device__ std::int64_t entries() const { return batch * groups; }
  __host__ __device__ std::int64_t rows() const { return sharing * queries; }

  __device__ Rows<T> queries_of(std::int64_t entry, std::int64_t row) const { return rows_of(q, q_strides, entry, row, rows(), size); }
  __device__ Rows<T> keys_of(std::int64_t entry, std::int64_t key) const { return rows_of(k, k_strides, entry, key, keys, size); }
  __device__ Rows<T> values_of(std::int64_t entry, std::int64_t key) const { return rows_of(v, v_strides, entry, key, keys, result); }
  /// Rows of dy or y.
  __device__ Rows<T> results_of(const T* y, const GroupStrides& strides, std::int64_t entry, std::int64_t row) const {
    return rows_of(y, strides, entry, row, rows(), result);
  }
  __device__ Rows<T> rows_of(const T* x, const GroupStrides& strides, std::int64_t entry, std::int64_t row, std::int64_t count,
                             std::int64_t columns) const {
    return Rows<T>{x + offset(strides, entry), strides.row, count, columns}.from(row, 0);
  }
  __device__ std::int64_t offset(const GroupStrides& strides, std::int64_t entry) const {
    const std::int64_t b = by_groups.quotient(entry);
    return b * strides.batch + (entry - b * groups) * strides.group;
  }

  /// A row of a group.
  struct Query {
    std::int64_t seen;  ///< number of keys that it attends to
    const T* mask;      ///< mask of key 0; NULL: none
  };
  __device__ Query query(std::int64_t entry, std::int64_t row) const {
    const std::int64_t head = by_queries.quotient(row), index = row - head * queries;
    const T* of_row = nullptr;
    if (mask != nullptr) {
      const std::int64_t b = by_groups.quotient(entry), h = (entry - b * groups) * sharing + head;
      of_row = mask + b * mask_strides[0] + h * mask_strides[1] + index * mask_strides[2];
    }
    return {row >= rows() ? 0 : causal && index < keys ? index + 1 : keys, of_row};
  }
  /// -inf if the query does not attend to the key.
  __device__ Wide<T> score(const Query& of, std::int64_t key, Wide<T> product) const {
    if (key >= of.seen) return -std::numeric_limits<Wide<T>>::infinity();
    const Wide<T> scaled = scale * product;
    return of.mask == nullptr ? scaled : scaled + widen(of.mask[key * mask_strides[3]]);
  }
  /// The smallest or largest query index among `count` rows from `row` on.
  __device__ std::int64_t min_query(std::int64_t row, std::int64_t count) const {
    const std::int64_t last = last_of(row, count), head = by_queries.quotient(row);
    return head == by_queries.quotient(last) ? row - head * queries : 0;
  }
  __device__ std::int64_t max_query(std::int64_t row, std::int64_t count) const {
    const std::int64_t last = last_of(row, count), head = by_queries.quotient(last);
    return head == by_queries.quotient(row) ? last - head * queries : queries - 1;
  }
  __device__ std::int64_t last_of(std::int64_t row, std::int64_t count) const { return (row + count < rows() ? row + count : rows()) - 1; }
};

/// The distribution of a result over blocks: each computes one tile of rows and one chunk of columns from one part of the keys.
struct Shares {
  std::int64_t tiles, chunks, parts;
  std::int64_t part;  ///< tiles of keys
  bool packs;         ///< rows of all operands divide into aligned packs
  Divisor by_tiles, by_chunks, by_parts;

  Shares(std::int64_t all_tiles, std::int64_t all_chunks, std::int64_t all_parts, std::int64_t tiles_of_part)
      : tiles(all_tiles),
        chunks(all_chunks),
        parts(all_parts),
        part(tiles_of_part),
        packs(false),
        by_tiles(tiles),
        by_chunks(chunks),
        by_parts(parts) {}
};

/// The share of one block.
struct Share {
  std::int64_t entry, tile, chunk, part;
};
__device__ inline Share share_of(const Shares& shares, std::int64_t index) {
  const std::int64_t above = shares.by_parts.quotient(index), part = index - above * shares.parts;
  const std::int64_t tiles = shares.by_chunks.quotient(above), chunk = above - tiles * shares.chunks;
  const std::int64_t entry = shares.by_tiles.quotient(tiles);
  return {entry, tiles - entry * shares.tiles, chunk, part};
}

/// A thread's part of a tile of results, whose rows are `step` apart: columns beyond the last one are skipped.
template <class U, class W, int panels, class Value>
__device__ void write_rows(U* out, std::int64_t step, std::int64_t columns, std::int64_t first_row, std::int64_t rows,
                           std::int64_t first_column, const Value& value_at) {
  const Place at = tiles::place_of_thread();
#pragma unroll
  for (int i = 0; i < Tile<W>::each; ++i) {
    const std::int64_t row = first_row + at.down * Tile<W>::each + i;
    if (row >= rows) continue;
#pragma unroll
    for (int p = 0; p < panels; ++p) {
#pragma unroll
      for (int v = 0; v < Tile<W>::width; ++v) {
        const std::int64_t column = first_column + p * Tile<W>::panel + at.across * Tile<W>::width + v;
        if (column < columns) out[row * step + column] = value_at(i, p, v);
      }
    }
  }
}

inline std::int64_t up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Tiles over `count` rows and `columns` columns; two panels per block if the second is not empty.
template <class W>
Shares shares_of(std::int64_t count, std::int64_t columns) {
  const std::int64_t panels = columns > Tile<W>::panel ? 2 : 1;
  return {up(count, Tile<W>::rows), up(columns, Tile<W>::panel * panels), 1, 0};
}

template <class T>
bool falls_into_packs(const Heads<T>& heads, const T* dy = nullptr, const GroupStrides& dy_strides = {}) {
  const std::int64_t width = aligned_width<T>(heads.q, heads.k, heads.v, dy);
  if (width == 1 || heads.size % width != 0 || heads.result % width != 0) return false;
  const GroupStrides all[] = {heads.q_strides, heads.k_strides, heads.v_strides, dy_strides};
  for (const GroupStrides& strides : all) {
    if (strides.batch % width != 0 || strides.group % width != 0 || strides.row % width != 0) return false;
  }
  return true;
}

/// Calls launch(geometry, first) for the shares that a grid has blocks for, from `first` on, until there are blocks for all.
template <class Launch>
void for_grids(std::int64_t shares, const Launch& launch) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (std::int64_t first = 0; first < shares; first += most) launch(Geometry{std::min(shares - first, most), tiles::threads}, first);
}

}  // namespace tenon::cuda::tiles
