// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention of several heads and its gradient, tile by tile: no matrix of all scores in memory. What cuDNN's engines
// take of it in 16 bits runs there: attention/fused_attention.h.
//
// The heads of q that share a head of k and v are contiguous in memory, so that their rows form one matrix: a group has
// R = (H / G) S rows, row r being query r % S of its head r / S. Heads that share none may have any distance from each other, and their
// rows too: those of (B, S, H, D), where the products before and after have them.
//
// Source  Milakov, Gimelshein: Online normalizer calculation for softmax (2018); Dao, Fu, Ermon, Rudra, Re: FlashAttention (2022), for the
//         running maximum and sum of each row and for scores that the gradient recomputes from the logarithm of that sum.
#include <algorithm>
#include <cmath>
#include <limits>

#include <tenon/sdk/strided.h>

#include "attention/attention_tile.cuh"
#include "attention/fused_attention.h"
#include "kernel/divisor.h"
#include "kernel/operands.h"

namespace tenon::cuda {
namespace {

using tiles::Place;
using tiles::Rows;
using tiles::Tile;

/// Blocks that keep a large GPU busy, two on each of 132 multiprocessors: with fewer tiles, several blocks share the keys of one.
constexpr std::int64_t enough_blocks = 264;

/// Where the rows of a group begin: `row` elements from one to the next.
struct GroupStrides {
  std::int64_t batch, group, row;
};
/// Of x (B, H, S, D), `sharing` of whose heads are a group.
GroupStrides group_strides(const sdk::Operand& x, std::int64_t sharing) {
  return {x.strides[0], x.strides[1] * sharing, x.strides[2]};
}
/// Of a result with the sizes (batch, heads, rows, columns), dense in that order, or with heads and rows exchanged.
GroupStrides result_strides(const sdk::Call& call, std::int64_t heads, std::int64_t rows, std::int64_t columns, std::int64_t sharing) {
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

/// The maximum over the 16 neighbouring threads that share a row.
template <class W>
__device__ W largest_of_row(W x) {
#pragma unroll
  for (int mask = tiles::side / 2; mask > 0; mask /= 2) {
    const W other = __shfl_xor_sync(0xffffffffu, x, mask);
    x = other > x ? other : x;
  }
  return x;
}
template <class W>
__device__ W sum_of_row(W x) {
#pragma unroll
  for (int mask = tiles::side / 2; mask > 0; mask /= 2) x += __shfl_xor_sync(0xffffffffu, x, mask);
  return x;
}

/// exp(x - row_max), and 0 if both are -inf. row_max ignores NaN, which propagates through its exponential.
template <class W>
__device__ W exponential(W x, W row_max) {
  return std::exp(x - (row_max == -std::numeric_limits<W>::infinity() ? W(0) : row_max));
}

/// 0 if the query attends to no key.
template <class W>
__device__ W weighted_mean(W sum, W total) {
  return total == 0 ? W(0) : sum / total;
}
template <class W>
__device__ W logarithm_of_sum(W row_max, W total) {
  return total == 0 ? -std::numeric_limits<W>::infinity() : row_max + std::log(total);
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

// ---------------------------------------------------------------- forward

/// Partial results of each row if several blocks share its keys: (B, G, R, parts); sums have a last dimension of E.
template <class W>
struct Partials {
  W *row_maxima, *totals, *sums;
};

template <class T, int panels>
__global__ void __launch_bounds__(tiles::threads, panels == 2 ? 1 : 2)
    attend(Heads<T> heads, Shares shares, std::int64_t first_share, Partials<Wide<T>> partials, T* y, GroupStrides y_strides,
           Wide<T>* log_sum) {
  using W = Wide<T>;
  using Sizes = Tile<W>;
  using Pack16 = Pack<W, Sizes::width>;
  constexpr W nothing = -std::numeric_limits<W>::infinity();
  __shared__ Pack16 memory_q[Sizes::rows * Sizes::stride / Sizes::width], memory_k[Sizes::rows * Sizes::stride / Sizes::width],
      memory_v[Sizes::terms * Sizes::panel / Sizes::width];
  W* const shared_q = memory_q[0].at;
  W* const shared_k = memory_k[0].at;  // later the weights
  W* const shared_v = memory_v[0].at;
  const Place at = tiles::place_of_thread();
  const std::int64_t rows = heads.rows();
  const Share share = share_of(shares, first_share + blockIdx.x);
  // causal: the rows with the most keys first
  const std::int64_t first_row = (shares.tiles - 1 - share.tile) * Sizes::rows, first_column = share.chunk * Sizes::panel * panels;
  const Rows<T> q = heads.queries_of(share.entry, first_row), keys = heads.keys_of(share.entry, 0),
                values = heads.values_of(share.entry, 0).from(0, first_column);
  W row_max[Sizes::each], total[Sizes::each];
  Pack16 sums[Sizes::each][panels];
#pragma unroll
  for (int i = 0; i < Sizes::each; ++i) {
    row_max[i] = nothing;
    total[i] = 0;
#pragma unroll
    for (int p = 0; p < panels; ++p) sums[i][p] = {};
  }

  const std::int64_t seen = heads.causal ? heads.max_query(first_row, Sizes::rows) + 1 : heads.keys;
  const std::int64_t limit = seen < heads.keys ? seen : heads.keys, part = shares.part * Sizes::rows;
  const std::int64_t begin = share.part * part, end = begin + part < limit ? begin + part : limit;
  const bool q_stays = heads.size <= Sizes::depth;
  if (q_stays) tiles::load<Sizes::rows, Sizes::depth, Sizes::stride>(q, shares.packs, shared_q);
  for (std::int64_t first = begin; first < end; first += Sizes::rows) {
    W p[Sizes::each][Sizes::each];
    tiles::scores_of_tile(q, keys.from(first, 0), q_stays, shares.packs, shared_q, shared_k, p);
#pragma unroll
    for (int i = 0; i < Sizes::each; ++i) {
      const typename Heads<T>::Query query = heads.query(share.entry, first_row + at.down * Sizes::each + i);
      W higher = row_max[i];
#pragma unroll
      for (int j = 0; j < Sizes::each; ++j) {
        p[i][j] = heads.score(query, first + at.across + j * tiles::side, p[i][j]);
        higher = p[i][j] > higher ? p[i][j] : higher;
      }
      higher = largest_of_row(higher);
      const W shrinks = higher == nothing ? W(1) : std::exp(row_max[i] - higher);
      row_max[i] = higher;
      total[i] *= shrinks;
#pragma unroll
      for (int j = 0; j < Sizes::each; ++j) {
        p[i][j] = exponential(p[i][j], higher);
        total[i] += p[i][j];
      }
#pragma unroll
      for (int c = 0; c < panels; ++c) {
#pragma unroll
        for (int v = 0; v < Sizes::width; ++v) sums[i][c].at[v] *= shrinks;
      }
    }
    tiles::share_weights(p, shared_k);
    const bool skips = heads.causal && first + Sizes::rows - 1 > heads.min_query(first_row, Sizes::rows);
    tiles::add_weighted_rows(shared_k, values.from(first, 0), shares.packs, skips, shared_v, sums);
  }

#pragma unroll
  for (int i = 0; i < Sizes::each; ++i) {
    total[i] = sum_of_row(total[i]);
    const std::int64_t row = first_row + at.down * Sizes::each + i;
    if (row >= rows || at.across != 0 || share.chunk != 0) continue;
    if (shares.parts > 1) {
      const std::int64_t place = (share.entry * rows + row) * shares.parts + share.part;
      partials.row_maxima[place] = row_max[i];
      partials.totals[place] = total[i];
    } else if (log_sum != nullptr) {
      log_sum[share.entry * rows + row] = logarithm_of_sum(row_max[i], total[i]);
    }
  }
  if (shares.parts > 1) {
    W* const out = partials.sums + (share.entry * shares.parts + share.part) * rows * heads.result;
    write_rows<W, W, panels>(out, heads.result, heads.result, first_row, rows, first_column,
                             [&](int i, int p, int v) { return sums[i][p].at[v]; });
  } else {
    write_rows<T, W, panels>(y + heads.offset(y_strides, share.entry), y_strides.row, heads.result, first_row, rows, first_column,
                             [&](int i, int p, int v) { return narrow<T>(weighted_mean(sums[i][p].at[v], total[i])); });
  }
}

/// Combines the parts of each row to y and log_sum. Sums are stored as (B, G, parts, R, E).
template <class T>
__global__ void combine_parts(Heads<T> heads, std::int64_t count, std::int64_t parts, Partials<Wide<T>> partials, T* y,
                              GroupStrides y_strides, Wide<T>* log_sum) {
  using W = Wide<T>;
  const std::int64_t rows = heads.rows(), columns = heads.result;
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t row = quotient(i, columns), column = i - row * columns, entry = quotient(row, rows);
    W row_max = -std::numeric_limits<W>::infinity();
    for (std::int64_t p = 0; p < parts; ++p) {
      const W other = partials.row_maxima[row * parts + p];
      row_max = other > row_max ? other : row_max;
    }
    W total = 0, sum = 0;
    for (std::int64_t p = 0; p < parts; ++p) {
      const W factor = partials.row_maxima[row * parts + p] == row_max ? W(1) : std::exp(partials.row_maxima[row * parts + p] - row_max);
      total += factor * partials.totals[row * parts + p];
      sum += factor * partials.sums[((entry * parts + p) * rows + (row - entry * rows)) * columns + column];
    }
    y[heads.offset(y_strides, entry) + (row - entry * rows) * y_strides.row + column] = narrow<T>(weighted_mean(sum, total));
    if (column == 0 && log_sum != nullptr) log_sum[row] = logarithm_of_sum(row_max, total);
  }
}

std::int64_t up(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

/// Tiles over `count` rows and `columns` columns; two panels per block if the second is not empty.
template <class W>
Shares shares_of(std::int64_t count, std::int64_t columns) {
  const std::int64_t panels = columns > Tile<W>::panel ? 2 : 1;
  return {up(count, Tile<W>::rows), up(columns, Tile<W>::panel * panels), 1, 0};
}

/// The same for the rows of y, with the keys split into parts.
template <class T>
Shares shares_of_keys(const Heads<T>& heads) {
  using W = Wide<T>;
  const Shares whole = shares_of<W>(heads.rows(), heads.result);
  const std::int64_t blocks = std::max<std::int64_t>(heads.entries() * whole.tiles * whole.chunks, 1);
  const std::int64_t tiles = std::max<std::int64_t>(up(heads.keys, Tile<W>::rows), 1);
  const std::int64_t part = up(tiles, std::clamp<std::int64_t>(up(enough_blocks, blocks), 1, tiles));
  return {whole.tiles, whole.chunks, up(tiles, part), part};
}

/// With scratch = NULL, only computes `out_bytes`.
template <class T>
Partials<Wide<T>> partials_of(const Heads<T>& heads, const Shares& shares, void* scratch, std::size_t& out_bytes) {
  using W = Wide<T>;
  const std::int64_t rows = shares.parts > 1 ? heads.entries() * heads.rows() * shares.parts : 0;
  out_bytes = static_cast<std::size_t>(rows * (heads.result + 2)) * sizeof(W);
  if (scratch == nullptr) return {};
  W* const row_maxima = static_cast<W*>(scratch);
  return {row_maxima, row_maxima + rows, row_maxima + 2 * rows};
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

/// Whether a call reads this operand, one with four dimensions, as it is: rows are contiguous, heads of a group are not apart, and what an
/// engine of cuDNN may run has strides that it takes.
bool takes_heads(const sdk::Call& call, std::uint32_t input, std::uint32_t first) {
  const sdk::Operand& x = call.inputs[input];
  if (x.strides[3] != 1 && x.shape[3] != 1) return false;
  const bool is_of_groups = input == first + 1 || input == first + 2;  // k and v have a head for each group
  if (!is_of_groups && call.inputs[first].shape[1] != call.inputs[first + 1].shape[1]) return false;
  return sdk::size_of(x.dtype) != 2 || fused_strides(x).has_value();
}

/// Calls launch(geometry, first) for the shares that a grid has blocks for, from `first` on, until there are blocks for all.
template <class Launch>
void for_grids(std::int64_t shares, const Launch& launch) {
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  for (std::int64_t first = 0; first < shares; first += most) launch(Geometry{std::min(shares - first, most), tiles::threads}, first);
}

/// y = softmax(scale q k' + mask) v; log_sum = log sum exp of each row's scores
///
/// Shapes  as Heads; y (B, H, S, E), log_sum (B, H, S) or absent; dense but for what takes_view() says. A row that attends to no key, or
///         only to keys with score -inf, is 0.
template <class T>
void attention(const sdk::Call& call) {
  if (run_fused_attention(call, false)) return;
  const Heads<T> heads(call, 0);
  Shares shares = shares_of_keys(heads);
  shares.packs = falls_into_packs(heads);
  std::size_t bytes = 0;
  const Partials<Wide<T>> partials = partials_of(heads, shares, call.scratch, bytes);
  T* const y = call.output<T>(0);
  const GroupStrides y_strides = result_strides(call, heads.groups * heads.sharing, heads.queries, heads.result, heads.sharing);
  auto* const log_sum = output_or_null<Wide<T>>(call, 1);
  Stream& stream = stream_of(call);
  for_grids(heads.entries() * shares.tiles * shares.chunks * shares.parts, [&](Geometry geometry, std::int64_t first) {
    const auto kernel = heads.result > Tile<Wide<T>>::panel ? attend<T, 2> : attend<T, 1>;
    launch(stream, geometry, kernel, heads, shares, first, partials, y, y_strides, log_sum);
  });
  if (shares.parts == 1) return;
  const std::int64_t count = call.outputs[0].count;
  launch_over(stream, count, combine_parts<T>, heads, count, shares.parts, partials, y, y_strides, log_sum);
}
/// Heads may be views of (B, S, H, D).
bool takes_view(const sdk::Call& call, std::uint32_t input) {
  return input < 3 && takes_heads(call, input, 0);
}
bool merges_heads(const sdk::Call& call) {
  return call.inputs[0].shape[1] == call.inputs[1].shape[1];
}

template <class T>
std::size_t bytes_of_partials(const sdk::Call& call) {
  const Heads<T> heads(call, 0);
  std::size_t bytes = 0;
  partials_of(heads, shares_of_keys(heads), nullptr, bytes);
  return bytes;
}
/// An engine of cuDNN does not take a view that is not aligned: the kernels here run it then.
std::size_t scratch(const sdk::Call& call) {
  const std::size_t own = call.inputs[0].dtype == TENON_DTYPE_F64 ? bytes_of_partials<double>(call) : bytes_of_partials<float>(call);
  return std::max(own, fused_attention_scratch(call, false));
}

// ---------------------------------------------------------------- gradient

enum class Result { dq, dk, dv };

/// The operands of a gradient. Passed to kernels by value.
template <class T>
struct GradientOperands {
  const T* dy;
  GroupStrides dy_strides;
  const Wide<T>*log_sum, *row_dots;  ///< row_dots: sum(dy y) of each row
};

/// sum(dy y) of each row, one warp per row.
template <class T>
__global__ void dot_rows(Heads<T> heads, Divisor by_rows, const T* dy, GroupStrides dy_strides, const T* y, GroupStrides y_strides,
                         Wide<T>* row_dots) {
  const std::int64_t rows = heads.entries() * heads.rows();
  const std::int64_t warps = thread_count() / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  for (std::int64_t row = thread_index() / 32; row < rows; row += warps) {
    const std::int64_t entry = by_rows.quotient(row), of_entry = row - entry * heads.rows();
    const T* const of_dy = heads.results_of(dy, dy_strides, entry, of_entry).data;
    const T* const of_y = heads.results_of(y, y_strides, entry, of_entry).data;
    Wide<T> sum = 0;
    for (std::int64_t i = lane; i < heads.result; i += 32) sum += widen(of_dy[i]) * widen(of_y[i]);
    sum = combine_lanes(Sum<Wide<T>>{}, sum, 32);
    if (lane == 0) row_dots[row] = sum;
  }
}

/// p = exp(scores - log_sum), ds = scale p (dy v' - sum(dy y)): dq = ds k for tiles of queries; dk = ds' q and dv = p' dy for tiles of
/// keys, for which the scores are computed transposed.
template <class T, Result which, int panels>
__global__ void __launch_bounds__(tiles::threads, panels == 2 ? 1 : 2)
    attend_gradient(Heads<T> heads, GradientOperands<T> gradient, Shares shares, std::int64_t first_share, T* out,
                    GroupStrides out_strides) {
  using W = Wide<T>;
  using Sizes = Tile<W>;
  using Pack16 = Pack<W, Sizes::width>;
  constexpr bool of_keys = which != Result::dq;
  constexpr W nothing = -std::numeric_limits<W>::infinity();
  __shared__ Pack16 memory_own[Sizes::rows * Sizes::stride / Sizes::width], memory_other[Sizes::rows * Sizes::stride / Sizes::width],
      memory_x[Sizes::terms * Sizes::panel / Sizes::width];
  W* const shared_own = memory_own[0].at;
  W* const shared_other = memory_other[0].at;  // later the weights
  W* const shared_x = memory_x[0].at;
  const Place at = tiles::place_of_thread();
  const std::int64_t rows = heads.rows();
  const Share share = share_of(shares, first_share + blockIdx.x);
  const std::int64_t first_own = (of_keys ? share.tile : shares.tiles - 1 - share.tile) * Sizes::rows;
  const std::int64_t first_column = share.chunk * Sizes::panel * panels, first_of_entry = share.entry * rows;
  Pack16 sums[Sizes::each][panels];
#pragma unroll
  for (int i = 0; i < Sizes::each; ++i) {
#pragma unroll
    for (int p = 0; p < panels; ++p) sums[i][p] = {};
  }

  const std::int64_t seen = !of_keys && heads.causal ? heads.max_query(first_own, Sizes::rows) + 1 : heads.keys;
  const std::int64_t end = of_keys ? rows : seen < heads.keys ? seen : heads.keys;
  // dv needs only one product of tiles, so its keys can stay in shared memory
  const bool own_stays = which == Result::dv && heads.size <= Sizes::depth;
  if (own_stays) {
    tiles::load<Sizes::rows, Sizes::depth, Sizes::stride>(heads.keys_of(share.entry, first_own), shares.packs, shared_own);
  }
  for (std::int64_t first = 0; first < end; first += Sizes::rows) {
    const std::int64_t first_row = of_keys ? first : first_own, first_key = of_keys ? first_own : first;
    if (of_keys && heads.causal && heads.max_query(first_row, Sizes::rows) < first_key) continue;
    const Rows<T> q = heads.queries_of(share.entry, first_row), k = heads.keys_of(share.entry, first_key);
    W weights[Sizes::each][Sizes::each];
    tiles::scores_of_tile(of_keys ? k : q, of_keys ? q : k, own_stays, shares.packs, shared_own, shared_other, weights);
    // A thread's queries: one per row or, for tiles of keys, one per column.
    const auto row_of = [&](int n) { return first_row + (of_keys ? at.across + n * tiles::side : at.down * Sizes::each + n); };
    const auto key_of = [&](int n) { return first_key + (of_keys ? at.down * Sizes::each + n : at.across + n * tiles::side); };
#pragma unroll
    for (int n = 0; n < Sizes::each; ++n) {
      const typename Heads<T>::Query query = heads.query(share.entry, row_of(n));
      const W log_sum = query.seen > 0 ? gradient.log_sum[first_of_entry + row_of(n)] : nothing;
#pragma unroll
      for (int m = 0; m < Sizes::each; ++m) {
        W& weight = of_keys ? weights[m][n] : weights[n][m];
        weight = log_sum == nothing ? W(0) : std::exp(heads.score(query, key_of(m), weight) - log_sum);
      }
    }
    if constexpr (which != Result::dv) {
      const Rows<T> dy = heads.results_of(gradient.dy, gradient.dy_strides, share.entry, first_row),
                    v = heads.values_of(share.entry, first_key);
      W d_weights[Sizes::each][Sizes::each];
      tiles::scores_of_tile(of_keys ? v : dy, of_keys ? dy : v, false, shares.packs, shared_own, shared_other, d_weights);
#pragma unroll
      for (int n = 0; n < Sizes::each; ++n) {
        const W row_dot = row_of(n) < rows ? gradient.row_dots[first_of_entry + row_of(n)] : W(0);
#pragma unroll
        for (int m = 0; m < Sizes::each; ++m) {
          W& weight = of_keys ? weights[m][n] : weights[n][m];
          if (weight != 0) weight *= heads.scale * ((of_keys ? d_weights[m][n] : d_weights[n][m]) - row_dot);
        }
      }
    }
    tiles::share_weights(weights, shared_other);
    const bool skips = heads.causal && first_key + Sizes::rows - 1 > heads.min_query(first_row, Sizes::rows);
    const Rows<T> x = which == Result::dq   ? k
                      : which == Result::dk ? q
                                            : heads.results_of(gradient.dy, gradient.dy_strides, share.entry, first_row);
    tiles::add_weighted_rows(shared_other, x.from(0, first_column), shares.packs, skips, shared_x, sums);
  }
  const std::int64_t own = of_keys ? heads.keys : rows, columns = which == Result::dv ? heads.result : heads.size;
  write_rows<T, W, panels>(out + heads.offset(out_strides, share.entry), out_strides.row, columns, first_own, own, first_column,
                           [&](int i, int p, int v) { return narrow<T>(sums[i][p].at[v]); });
}

template <Result which, class T>
void launch_gradient(const sdk::Call& call, const Heads<T>& heads, const GradientOperands<T>& gradient, bool packs) {
  using W = Wide<T>;
  const std::int64_t own = which == Result::dq ? heads.rows() : heads.keys, columns = which == Result::dv ? heads.result : heads.size;
  Shares shares = shares_of<W>(own, columns);
  shares.packs = packs;
  const std::int64_t sharing = which == Result::dq ? heads.sharing : 1;
  const GroupStrides strides = result_strides(call, heads.groups * sharing, own / sharing, columns, sharing);
  T* const out = call.output<T>(static_cast<std::uint32_t>(which));
  for_grids(heads.entries() * shares.tiles * shares.chunks, [&](Geometry geometry, std::int64_t first) {
    const auto kernel = columns > Tile<W>::panel ? attend_gradient<T, which, 2> : attend_gradient<T, which, 1>;
    launch(stream_of(call), geometry, kernel, heads, gradient, shares, first, out, strides);
  });
}

/// p = exp(scores - log_sum), ds = p (dy v' - sum(dy y)): dq = scale ds k, dk = scale ds' q, dv = p' dy
///
/// Shapes  as Heads; dy and y (B, H, S, E), log_sum (B, H, S), dq, dk, dv as q, k, v; dense but for what takes_view_in_grad() says.
template <class T>
void attention_grad(const sdk::Call& call) {
  if (run_fused_attention(call, true)) return;
  const Heads<T> heads(call, 1);
  const T* const dy = call.input<T>(0);
  auto* const row_dots = static_cast<Wide<T>*>(call.scratch);
  const GroupStrides dy_strides = group_strides(call.inputs[0], heads.sharing), y_strides = group_strides(call.inputs[5], heads.sharing);
  const std::int64_t rows = heads.entries() * heads.rows();
  launch_over(call, rows * 32, dot_rows<T>, heads, Divisor(std::max<std::int64_t>(heads.rows(), 1)), dy, dy_strides, call.input<T>(5),
              y_strides, row_dots);
  const GradientOperands<T> gradient{dy, dy_strides, call.input<Wide<T>>(6), row_dots};
  const bool packs = falls_into_packs(heads, dy, dy_strides);
  launch_gradient<Result::dq>(call, heads, gradient, packs);
  launch_gradient<Result::dk>(call, heads, gradient, packs);
  launch_gradient<Result::dv>(call, heads, gradient, packs);
}
/// dy, q, k, v and y may be views of (B, S, H, D).
bool takes_view_in_grad(const sdk::Call& call, std::uint32_t input) {
  return (input < 4 || input == 5) && takes_heads(call, input, 1);
}
bool merges_heads_in_grad(const sdk::Call& call) {
  return call.inputs[1].shape[1] == call.inputs[2].shape[1];
}
std::size_t scratch_of_grad(const sdk::Call& call) {
  const std::size_t element = call.inputs[0].dtype == TENON_DTYPE_F64 ? sizeof(double) : sizeof(float);
  return std::max(static_cast<std::size_t>(call.inputs[6].count) * element, fused_attention_scratch(call, true));
}

}  // namespace
TENON_KERNEL_WITH(attention, (sdk::Traits{.scratch = scratch, .takes_view = takes_view, .merges_heads = merges_heads}), sdk::Half,
                  sdk::BFloat16, float, double)
TENON_KERNEL_WITH(attention_grad,
                  (sdk::Traits{.scratch = scratch_of_grad, .takes_view = takes_view_in_grad, .merges_heads = merges_heads_in_grad}),
                  sdk::Half, sdk::BFloat16, float, double)
}  // namespace tenon::cuda
