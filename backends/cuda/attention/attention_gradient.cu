// SPDX-License-Identifier: Apache-2.0
// attention_gradient.cu - the gradient of attention, tile by tile, from scores that are computed again.
#include "attention/attention_gradient.h"

#include <algorithm>
#include <cmath>

#include "attention/attention_heads.cuh"

namespace tenon::cuda {
namespace {

using namespace tiles;

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

}  // namespace

template <class T>
void attention_gradient(const sdk::Call& call) {
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

template void attention_gradient<sdk::Half>(const sdk::Call&);
template void attention_gradient<sdk::BFloat16>(const sdk::Call&);
template void attention_gradient<float>(const sdk::Call&);
template void attention_gradient<double>(const sdk::Call&);

}  // namespace tenon::cuda
