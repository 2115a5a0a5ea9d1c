// SPDX-License-Identifier: Apache-2.0
// Scaled dot-product attention of several heads, tile by tile: no matrix of all scores in memory. What cuDNN's engines take of it and of
// its gradient in 16 bits runs there: attention/fused_attention.h. The other gradients are computed in attention/attention_gradient.cu.
#include <algorithm>
#include <cmath>
#include <limits>

#include "attention/attention_gradient.h"
#include "attention/attention_heads.cuh"
#include "attention/fused_attention.h"

namespace tenon::cuda {
namespace {

using namespace tiles;

/// Blocks that keep a large GPU busy, two on each of 132 multiprocessors: with fewer tiles, several blocks share the keys of one.
constexpr std::int64_t enough_blocks = 264;

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

/// As shares_of() for the rows of y, with the keys split into parts.
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

/// Whether a call reads this operand, one with four dimensions, as it is: rows are contiguous, heads of a group are not apart, and what an
/// engine of cuDNN may run has strides that it takes.
bool takes_heads(const sdk::Call& call, std::uint32_t input, std::uint32_t first) {
  const sdk::Operand& x = call.inputs[input];
  if (x.strides[3] != 1 && x.shape[3] != 1) return false;
  const bool is_of_groups = input == first + 1 || input == first + 2;  // k and v have a head for each group
  if (!is_of_groups && call.inputs[first].shape[1] != call.inputs[first + 1].shape[1]) return false;
  return sdk::size_of(x.dtype) != 2 || fused_strides(x).has_value();
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

/// p = exp(scores - log_sum), ds = p (dy v' - sum(dy y)): dq = scale ds k, dk = scale ds' q, dv = p' dy
template <class T>
void attention_grad(const sdk::Call& call) {
  if (!run_fused_attention(call, true)) attention_gradient<T>(call);
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
