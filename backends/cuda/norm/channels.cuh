// SPDX-License-Identifier: Apache-2.0
// channels.cuh - reductions of each channel to a few values, following a plan (channel_plan.h), with a pass over all elements that uses
// these values (channel_pass.cuh).
//
// A channel reduction op has
//   Element, operands   one or two operands of one layout: a and b
//   Partial             an accumulator of some of a channel's terms; Partial{} without terms
//   Base, base(c)       per-channel values that it needs in advance
//   Step, step(n, m)    values shared by all channels for a batch of m terms after n others
//   take(total, step, base, a, b, m)   accumulates the first m of N terms
//   close(total, n)     called after the last of n terms
//   combine(a, b)       merges two Partials
//   finish(c, total)    stores the result
//   traversal           the kinds of plans that it supports
// With `has_weight` it also has apply_weight(a, place), for V terms of `a` from offset `place` of their run; with `by_row`, row(r) and
// of_row(b, row), for terms of `b` in row r of columns; with `relu_grad`, `a` is a value before the gradient of a relu. (They are flags
// because compilers disagree about detecting template members.)
//
// Threads   atomics only count blocks: the plan determines the order of every sum.
#pragma once

#include <tenon/sdk/rounding.h>

#include "kernel/functions.cuh"
#include "kernel/last_block.cuh"
#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/wide.cuh"
#include "norm/channel_pass.cuh"
#include "norm/channel_plan.h"
#include "norm/channel_sums.cuh"
#include "reduce/reduction.cuh"

namespace tenon::cuda {

// ---------------------------------------------------------------- combining threads

/// Combines the values of `groups` sets of `lanes` threads, for each of V, into the first set. Every thread of the block must call it,
/// including those of no group.
template <int V, class Op>
__device__ void combine_groups(const Op& op, typename Op::Partial (&totals)[V], int lanes, int groups) {
  if (groups == 1) return;
  __shared__ typename Op::Partial others[V * reduction_threads];
  const int thread = static_cast<int>(threadIdx.x), group = thread / lanes;
#pragma unroll
  for (int v = 0; v < V; ++v) others[v * reduction_threads + thread] = totals[v];
  __syncthreads();
  for (int left = groups; left > 1;) {
    const int half = (left + 1) / 2;
    if (group < left - half) {
#pragma unroll
      for (int v = 0; v < V; ++v) {
        totals[v] = op.combine(totals[v], others[v * reduction_threads + thread + half * lanes]);
        others[v * reduction_threads + thread] = totals[v];
      }
    }
    __syncthreads();
    left = half;
  }
}

/// Combines the partial results of the channels from `first` to `end`, stored as (split, channel), by the threads of a block, `groups` of
/// which share a channel.
template <class Op>
__device__ void combine_channels(const Op& op, const typename Op::Partial* partials, std::int64_t channels, std::int64_t first,
                                 std::int64_t end, std::int64_t splits, int groups) {
  const int lanes = reduction_threads / groups, group = static_cast<int>(threadIdx.x) / lanes;
  for (; first < end; first += lanes) {
    const std::int64_t channel = first + static_cast<int>(threadIdx.x) % lanes;
    typename Op::Partial total[1] = {};
    if (channel < end) {
#pragma unroll 4
      for (std::int64_t split = group; split < splits; split += groups)
        total[0] = op.combine(total[0], partials[split * channels + channel]);
    }
    combine_groups(op, total, lanes, groups);
    if (group == 0 && channel < end) op.finish(channel, total[0]);
  }
}

// ---------------------------------------------------------------- kernels
//
// A channel that one block reduces can be passed over by its threads: `passes`. They begin at its end, which the caches still hold.

/// Stands for a pass where a reduction has none.
struct NoPass {};

template <class Op>
struct ChannelOperands {
  using T = typename Op::Element;
  template <int V>
  struct Packs {
    Pack<T, V> a, b, y;
  };
  const T *a, *b;        ///< b: NULL if the op has one operand
  const T* y = nullptr;  ///< the result of the relu, for ops with `relu_grad`

  template <int V>
  __device__ void read(std::int64_t at, Packs<V>& out_packs) const {
    out_packs.a = pack_at<V>(a + at);
    if constexpr (Op::operands == 2) out_packs.b = pack_at<V>(b + at);
    if constexpr (Op::relu_grad) out_packs.y = pack_at<V>(y + at);
  }
  template <int V>
  static __device__ Wide<T> first(const Packs<V>& packs, int v) {
    if constexpr (Op::relu_grad) return functions::ReluGrad{}(widen(packs.a.at[v]), widen(packs.y.at[v]));
    return widen(packs.a.at[v]);
  }
};

/// The last of the blocks that share a tile, of `of_tile` channels, combines their partial results.
template <class Op>
__device__ void combine_in_last_block(const Op& op, const typename Op::Partial* partials, const ChannelPlan& plan, int of_tile,
                                      const LastBlock& last) {
  if (last.counters == nullptr) return;
  const std::int64_t tile = blockIdx.x % static_cast<unsigned>(plan.tiles), first = tile * of_tile;
  if (!is_last_block(last.counters + tile, plan.splits)) return;
  const std::int64_t end = first + of_tile < plan.at.count ? first + of_tile : plan.at.count;
  combine_channels(op, partials, plan.at.count, first, end, plan.splits, last.threads);
}

/// Blocks on a multiprocessor, whose loads in flight fill its share of the bandwidth: fewer of threads that read more operands, or that
/// need more registers for the elements of a pack. With one more, registers would be spilled; statistics of bf16 spill two with this one.
template <class Op>
inline constexpr int resident_blocks = Op::operands == 1                                    ? (sizeof(typename Op::Element) == 4 ? 4 : 3)
                                       : sizeof(typename Op::Element) == 2 || Op::relu_grad ? 2
                                                                                            : 3;

/// `plan.lanes` threads per channel. A batch is loaded before any of it is used; past the end, its last pack is loaded again: unconditional
/// loads overlap.
template <class Op, class Pass, int V>
__global__ void __launch_bounds__(reduction_threads, resident_blocks<Op>)
    channel_lines(Op op, ChannelOperands<Op> operands, ChannelPlan plan, typename Op::Partial* partials, LastBlock last, Pass pass,
                  bool passes) {
  using T = typename Op::Element;
  using W = Wide<T>;
  const int lanes = plan.lanes, lane = static_cast<int>(threadIdx.x) % lanes;
  const int split = static_cast<int>(blockIdx.x / static_cast<unsigned>(plan.tiles));
  const std::int64_t channel = (blockIdx.x - split * plan.tiles) * plan.groups + static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t begin = split * plan.part + lane;
  const std::int64_t end = (split + 1) * plan.part < plan.units ? (split + 1) * plan.part : plan.units;
  typename Op::Partial total{};
  if (channel < plan.at.count && begin < end) {
    const std::int64_t runs = plan.by_run.quotient(begin);
    std::int64_t unit = begin - runs * plan.run;  // within the run
    std::int64_t at = (runs * plan.at.count + channel) * plan.at.inner + unit * V;
    // Advancing by `lanes` units adds `stride`, and `wrap` at the end of a run.
    const std::int64_t over = plan.by_run.quotient(std::int64_t{lanes}), step = lanes - over * plan.run;
    const std::int64_t stride = over * plan.at.count * plan.at.inner + step * V, wrap = (plan.at.count - 1) * plan.at.inner;
    const typename Op::Base base = op.base(channel);
    W taken = 0;
    for (std::int64_t left = end - begin; left > 0; left -= std::int64_t{batch} * lanes) {
      typename ChannelOperands<Op>::template Packs<V> packs[batch];
      std::int64_t place[batch];
#pragma unroll
      for (int u = 0; u < batch; ++u) {
        operands.template read<V>(at, packs[u]);
        place[u] = unit * V;
        if (left <= std::int64_t{u + 1} * lanes) continue;
        unit += step;
        at += stride;
        if (unit >= plan.run) {
          unit -= plan.run;
          at += wrap;
        }
      }
      W x[batch * V], other[batch * V] = {};
#pragma unroll
      for (int u = 0; u < batch; ++u) {
#pragma unroll
        for (int v = 0; v < V; ++v) {
          x[u * V + v] = operands.first(packs[u], v);
          if constexpr (Op::operands == 2) other[u * V + v] = widen(packs[u].b.at[v]);
        }
        if constexpr (Op::has_weight) {
          W terms[V];
#pragma unroll
          for (int v = 0; v < V; ++v) terms[v] = x[u * V + v];
          op.template apply_weight<V>(terms, place[u]);
#pragma unroll
          for (int v = 0; v < V; ++v) x[u * V + v] = terms[v];
        }
      }
      if (left > std::int64_t{batch - 1} * lanes) {
        op.take(total, op.step(taken, batch * V), base, x, other, batch * V);
        taken += batch * V;
      } else {
        const int terms = static_cast<int>((left + lanes - 1) / lanes) * V;
        op.take(total, op.step(taken, terms), base, x, other, terms);
        taken += static_cast<W>(terms);
      }
    }
    op.close(total, taken);
  }
  total = combine_lanes(op, total, lanes);
  const bool stores = lane == 0 && channel < plan.at.count;
  if (plan.splits > 1) {
    if (stores) partials[split * plan.at.count + channel] = total;
    combine_in_last_block(op, partials, plan, plan.groups, last);
    return;
  }
  if (stores) op.finish(channel, total);
  if constexpr (!std::is_same_v<Pass, NoPass>) {
    if (!passes) return;
    __syncthreads();  // the channel's values, which its first lane has stored
    if (channel >= plan.at.count) return;
    const typename Pass::Params params[1] = {pass.params(channel)};
    const auto place_of = [&](std::int64_t unit, std::int64_t& place) {
      const std::int64_t run = plan.by_run.quotient(unit);
      place = (unit - run * plan.run) * V;
      return (run * plan.at.count + channel) * plan.at.inner + place;
    };
    for (std::int64_t unit = plan.units - 1 - lane; unit >= 0; unit -= 2 * lanes) {
      std::int64_t place = 0, then_place = 0;
      const std::int64_t at = place_of(unit, place), then = unit < lanes ? -1 : place_of(unit - lanes, then_place);
      pass_over<V>(pass, params, at, place, then, then_place);
    }
  }
}

/// V neighbouring channels per thread; loads as above.
template <class Op, class Pass, int V>
__global__ void __launch_bounds__(reduction_threads, resident_blocks<Op>)
    channel_columns(Op op, ChannelOperands<Op> operands, ChannelPlan plan, typename Op::Partial* partials, LastBlock last, Pass pass,
                    bool passes) {
  using T = typename Op::Element;
  using W = Wide<T>;
  const int lane = static_cast<int>(threadIdx.x) % plan.lanes, group = static_cast<int>(threadIdx.x) / plan.lanes;
  const int split = static_cast<int>(blockIdx.x / static_cast<unsigned>(plan.tiles));
  const std::int64_t first = ((blockIdx.x - split * plan.tiles) * plan.lanes + lane) * V;  // channel
  const std::int64_t begin = split * plan.part + group;
  const std::int64_t end = (split + 1) * plan.part < plan.units ? (split + 1) * plan.part : plan.units;
  const bool works = first < plan.at.count && group < plan.groups;
  typename Op::Partial totals[V] = {};
  if (works && begin < end) {
    typename Op::Base base[V];
#pragma unroll
    for (int v = 0; v < V; ++v) base[v] = op.base(first + v);
    W taken = 0;
    std::int64_t row = begin;
    for (std::int64_t left = end - begin; left > 0; left -= std::int64_t{batch} * plan.groups) {
      typename ChannelOperands<Op>::template Packs<V> packs[batch];
      std::int64_t rows[batch];
#pragma unroll
      for (int u = 0; u < batch; ++u) {
        operands.template read<V>(row * plan.at.count + first, packs[u]);
        rows[u] = row;
        if (left > std::int64_t{u + 1} * plan.groups) row += plan.groups;
      }
      const int terms = left > std::int64_t{batch - 1} * plan.groups ? batch : static_cast<int>((left + plan.groups - 1) / plan.groups);
      const typename Op::Step step = op.step(taken, terms);
      taken += static_cast<W>(terms);
      const auto take = [&](int v, int count) {
        W x[batch], other[batch] = {};
#pragma unroll
        for (int u = 0; u < batch; ++u) {
          x[u] = operands.first(packs[u], v);
          if constexpr (Op::operands == 2) other[u] = widen(packs[u].b.at[v]);
          if constexpr (Op::by_row) other[u] = op.of_row(other[u], op.row(rows[u]));
        }
        op.take(totals[v], step, base[v], x, other, count);
      };
      if (terms == batch) {
#pragma unroll
        for (int v = 0; v < V; ++v) take(v, batch);
      } else {
#pragma unroll
        for (int v = 0; v < V; ++v) take(v, terms);
      }
    }
#pragma unroll
    for (int v = 0; v < V; ++v) op.close(totals[v], taken);
  }
  combine_groups(op, totals, plan.lanes, plan.groups);
  if (works && group == 0) {
#pragma unroll
    for (int v = 0; v < V; ++v) {
      if (plan.splits > 1) {
        partials[split * plan.at.count + first + v] = totals[v];
      } else {
        op.finish(first + v, totals[v]);
      }
    }
  }
  if (plan.splits > 1) {
    combine_in_last_block(op, partials, plan, plan.lanes * V, last);
    return;
  }
  if constexpr (!std::is_same_v<Pass, NoPass>) {
    if (!passes) return;
    __syncthreads();  // the channels' values, which the first group has stored
    if (!works) return;
    typename Pass::Params params[V];
#pragma unroll
    for (int v = 0; v < V; ++v) params[v] = pass.params(first + v);
    const std::int64_t step = plan.groups * plan.at.count;  // to the next row of this thread
    for (std::int64_t at = (plan.units - 1 - group) * plan.at.count + first; at >= 0; at -= 2 * step) {
      pass_over<V>(pass, params, at, 0, at - step, 0);  // none if that is before the first row
    }
  }
}

/// Combines the partial results of several blocks for each channel.
template <class Op>
__global__ void __launch_bounds__(reduction_threads, 1)
    channel_splits(Op op, const typename Op::Partial* partials, std::int64_t channels, std::int64_t splits, int groups) {
  const int lanes = reduction_threads / groups;
  const std::int64_t first = std::int64_t{blockIdx.x} * lanes, end = first + lanes < channels ? first + lanes : channels;
  combine_channels(op, partials, channels, first, end, splits, groups);
}

// ---------------------------------------------------------------- host side

/// Bytes of a buffer of `count` elements, rounded up so that the next buffer is aligned.
template <class T>
std::size_t buffer_bytes(std::int64_t count) {
  return sdk::aligned_size(static_cast<std::size_t>(count) * sizeof(T));
}

/// Combines and finishes the partial results of `splits` blocks for each channel.
template <class Op>
void combine_channel_splits(Stream& stream, const Op& op, const typename Op::Partial* partials, std::int64_t channels,
                            std::int64_t splits) {
  const int groups = groups_for(splits), lanes = reduction_threads / groups;
  launch(stream, {(channels + lanes - 1) / lanes, reduction_threads}, channel_splits<Op>, op, partials, channels, splits, groups);
}

/// `partials` has partials_of() elements. `width`: channel_width of the operands. If one block reduces each channel, its threads also pass
/// over it: true if that is done.
template <class Op, class Pass = NoPass>
bool reduce_channels(Stream& stream, const Op& op, const ChannelOperands<Op>& operands, const Channels& at, int width,
                     typename Op::Partial* partials, const Pass& pass = {}, bool may_pass = false) {
  constexpr int V = channel_pack<typename Op::Element>;
  const ChannelPlan plan = plan_channels(at, width);
  const Geometry geometry{plan.blocks(), reduction_threads};
  const bool packs = plan.width > 1, passes = may_pass && plan.splits == 1;
  LastBlock last;
  if (plan.splits > 1)
    last = last_block(stream, plan.tiles, plan.columns ? plan.lanes * plan.width : plan.groups, plan.splits, reduction_threads);
  if constexpr (Op::traversal != Traversal::columns) {
    if (!plan.columns) {
      launch(stream, geometry, packs ? channel_lines<Op, Pass, V> : channel_lines<Op, Pass, 1>, op, operands, plan, partials, last, pass,
             passes);
    }
  }
  if constexpr (Op::traversal != Traversal::lines) {
    if (plan.columns) {
      launch(stream, geometry, packs ? channel_columns<Op, Pass, V> : channel_columns<Op, Pass, 1>, op, operands, plan, partials, last,
             pass, passes);
    }
  }
  if (plan.splits > 1 && last.counters == nullptr) combine_channel_splits(stream, op, partials, at.count, plan.splits);
  return passes;
}

/// Both: by one launch if one block reduces each channel.
template <class Op, class Pass>
void reduce_and_pass(Stream& stream, const Op& op, const ChannelOperands<Op>& operands, const Channels& at, int width,
                     typename Op::Partial* partials, const Pass& pass, int width_of_pass) {
  if (!reduce_channels(stream, op, operands, at, width, partials, pass, width == width_of_pass))
    over_channels(stream, pass, at, width_of_pass);
}

}  // namespace tenon::cuda
