// SPDX-License-Identifier: Apache-2.0
// channel_pass.cuh - passes over all elements of a tensor with the values of each channel.
//
// A pass has an Element; traversal, the kinds of plans that its reductions have; params(c), the values it needs of a channel; Packs<V> and
// read<V>(at, place), the operands' elements from `at` on, which is offset `place` of its run; value(params, packs, v, at), the result at
// at + v; and y.
#pragma once

#include <algorithm>

#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"
#include "norm/channel_plan.h"

namespace tenon::cuda {

/// Elements of a pack. f64 uses packs of one, which are wide enough and save kernels.
template <class T>
inline constexpr int channel_pack = sizeof(T) < 8 ? pack_width<T> : 1;

/// Elements of a pack if all addresses are multiples of 16 bytes, else 1. NULL is aligned.
template <class T, class... Pointer>
int channel_width(Pointer... x) {
  return is_aligned(16, x...) ? channel_pack<T> : 1;
}

/// Writes the results of the packs at `at` and `then`, offsets `place` and `then_place` of their runs, after it has read both; then < 0:
/// there is only one. `params`: of each element, or of all.
template <int V, class Pass, int N>
__device__ void pass_over(const Pass& pass, const typename Pass::Params (&params)[N], std::int64_t at, std::int64_t place,
                          std::int64_t then, std::int64_t then_place) {
  using T = typename Pass::Element;
  const bool two = then >= 0;
  const auto one = pass.template read<V>(at, place), other = pass.template read<V>(two ? then : at, two ? then_place : place);
  Pack<T, V> y;
#pragma unroll
  for (int v = 0; v < V; ++v) y.at[v] = narrow<T>(pass.value(params[N == 1 ? 0 : v], one, v, at));
  store_pack<V>(pass.y + at, y);
  if (!two) return;
#pragma unroll
  for (int v = 0; v < V; ++v) y.at[v] = narrow<T>(pass.value(params[N == 1 ? 0 : v], other, v, then));
  store_pack<V>(pass.y + then, y);
}

/// Channels last: a thread keeps its V channels and advances by `groups` rows.
template <class Pass, int V>
__global__ void channel_rows(Pass pass, std::int64_t rows, std::int64_t channels, std::int64_t groups) {
  const std::int64_t columns = channels / V, step = columns * groups, packs = columns * rows;
  const std::int64_t first = thread_index();
  if (first >= step) return;
  const std::int64_t channel = (columns - 1 - (first - quotient(first, columns) * columns)) * V;
  typename Pass::Params params[V];
#pragma unroll
  for (int v = 0; v < V; ++v) params[v] = pass.params(channel + v);
  for (std::int64_t p = first; p < packs; p += 2 * step) {
    const std::int64_t at = (packs - 1 - p) * V;
    pass_over<V>(pass, params, at, 0, p + step < packs ? at - step * V : -1, 0);
  }
}

/// Channels in any dimension, with runs of at least V elements: a pack spans one or two channels.
template <class Pass, int V>
__global__ void channel_runs(Pass pass, Channels at, Divisor by_inner, Divisor by_count) {
  using T = typename Pass::Element;
  const std::int64_t count = at.elements(), packs = count / V;
  for (std::int64_t p = thread_index(); p < packs; p += thread_count()) {
    const std::int64_t first = (packs - 1 - p) * V, run = by_inner.quotient(first), place = first - run * at.inner;
    const std::int64_t channel = run - by_count.quotient(run) * at.count;
    const auto operands = pass.template read<V>(first, place);
    const typename Pass::Params params = pass.params(channel);
    Pack<T, V> y;
#pragma unroll
    for (int v = 0; v < V; ++v) y.at[v] = narrow<T>(pass.value(params, operands, v, first));
    if (at.inner - place < V) {
      const typename Pass::Params next = pass.params(channel + 1 == at.count ? 0 : channel + 1);
#pragma unroll
      for (int v = 0; v < V; ++v) {
        if (place + v >= at.inner) y.at[v] = narrow<T>(pass.value(next, operands, v, first));
      }
    }
    store_pack<V>(pass.y + first, y);
  }
  const std::int64_t rest = packs * V + thread_index();
  if (V > 1 && rest < count) {
    const std::int64_t run = by_inner.quotient(rest);
    const auto operands = pass.template read<1>(rest, rest - run * at.inner);
    pass.y[rest] = narrow<T>(pass.value(pass.params(run - by_count.quotient(run) * at.count), operands, 0, rest));
  }
}

/// `width`: channel_width of all operands and y.
template <class Pass>
void over_channels(Stream& stream, const Pass& pass, const Channels& at, int width) {
  if (at.elements() == 0) return;
  constexpr int V = channel_pack<typename Pass::Element>;
  if constexpr (Pass::traversal != Traversal::lines) {
    if (at.inner == 1) {
      const bool packs = width > 1 && at.count % V == 0;
      const std::int64_t columns = at.count / (packs ? V : 1);
      const std::int64_t threads = std::int64_t{stream.device().multiprocessors()} * 2048;
      const std::int64_t groups = std::clamp<std::int64_t>(threads / columns, 1, (at.outer + 3) / 4);
      launch(stream, {(columns * groups + 255) / 256, 256}, packs ? channel_rows<Pass, V> : channel_rows<Pass, 1>, pass, at.outer, at.count,
             groups);
      return;
    }
  }
  const bool packs = width > 1 && at.inner >= V;
  const std::int64_t items = at.elements() / (packs ? V : 1) + 1;
  launch_over(stream, items, packs ? channel_runs<Pass, V> : channel_runs<Pass, 1>, pass, at, Divisor(at.inner), Divisor(at.count));
}

}  // namespace tenon::cuda
