// SPDX-License-Identifier: Apache-2.0
// reduction.cuh - reduction kernels, which follow a plan (reduction_plan.h), and the reduction ops that several op families share.
//
// An op has
//   Partial             an accumulator of some of the terms; trivial, so that it can be in shared memory
//   Result              an element of the output
//   nothing()           the identity: the Partial of no terms
//   combine(a, b)       merges two Partials
//   finish(a, terms)    the Result
// and, to accumulate terms, either lift(x), the Partial of one term, or add(total, x, index): N terms and their indices within the line,
// ascending from call to call. A source has an Element, `widest` (elements of a pack), load<V>(at): what is stored of the V terms from
// offset `at` on, and terms(loaded): a pack of Elements.
//
// Accuracy  f32 is accumulated in f32: consumer GPUs run f64 at 1/64 of its speed. Sums are trees, except for the serial sum of each
//           thread: over packs of a line, so that 10^9 terms make chains of 2000; over at most an eighth of its part of a column.
// Threads   atomics only count blocks: the plan determines the order of every sum.
#pragma once

#include <cstring>
#include <limits>

#include "kernel/functions.cuh"
#include "kernel/last_block.cuh"
#include "kernel/launch.h"
#include "kernel/pack.cuh"
#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"
#include "reduce/reduction_plan.h"

namespace tenon::cuda {

// ---------------------------------------------------------------- sources

/// The elements of an operand.
template <class T>
struct Values {
  using Element = T;
  static constexpr int widest = pack_width<T>;
  const T* x;

  template <int V>
  __device__ Pack<T, V> load(std::int64_t at) const {
    return pack_at<V>(x + at);
  }
  template <int V>
  __device__ const Pack<T, V>& terms(const Pack<T, V>& loaded) const {
    return loaded;
  }
};

/// The elements of an operand in their compute type.
template <class T>
struct WideValues {
  using Element = Wide<T>;
  static constexpr int widest = pack_width<T>;
  const T* x;

  template <int V>
  __device__ Pack<T, V> load(std::int64_t at) const {
    return pack_at<V>(x + at);
  }
  template <int V>
  __device__ Pack<Element, V> terms(const Pack<T, V>& loaded) const {
    Pack<Element, V> wide;
#pragma unroll
    for (int v = 0; v < V; ++v) wide.at[v] = widen(loaded.at[v]);
    return wide;
  }
};

/// The products a b of two operands with the same layout, in their compute type.
template <class T>
struct Products {
  using Element = Wide<T>;
  static constexpr int widest = pack_width<T>;
  template <int V>
  struct Factors {
    Pack<T, V> a, b;
  };
  const T *a, *b;

  template <int V>
  __device__ Factors<V> load(std::int64_t at) const {
    return {pack_at<V>(a + at), pack_at<V>(b + at)};
  }
  template <int V>
  __device__ Pack<Element, V> terms(const Factors<V>& loaded) const {
    Pack<Element, V> product;
#pragma unroll
    for (int v = 0; v < V; ++v) product.at[v] = widen(loaded.a.at[v]) * widen(loaded.b.at[v]);
    return product;
  }
};

// ---------------------------------------------------------------- ops

/// sum of x; 0 without terms
template <class T>
struct Sum {
  using Partial = Wide<T>;
  using Result = T;
  __device__ Partial nothing() const { return 0; }
  __device__ Partial lift(T x) const { return widen(x); }
  __device__ Partial combine(Partial a, Partial b) const { return a + b; }
  __device__ Result finish(Partial a, std::int64_t) const { return narrow<T>(a); }
};

/// (sum of x) / (number of terms); NaN without terms
template <class T>
struct Mean : Sum<T> {
  __device__ T finish(T a, std::int64_t terms) const { return a / static_cast<T>(terms); }
};

/// A sum of exponentials: exp(row_max) total.
template <class T>
struct Exponentials {
  T row_max, total;
};

/// sum of exp(x - max x) in one pass: the total is rescaled when a larger x appears. A row_max that is not finite leaves the total
/// unchanged.
///
/// Source  Milakov, Gimelshein: Online normalizer calculation for softmax (2018).
template <class T>
struct SumOfExponentials {
  using Partial = Exponentials<T>;

  __device__ Partial nothing() const { return {-std::numeric_limits<T>::infinity(), T(0)}; }

  template <int N>
  __device__ void add(Partial& sum, const T (&x)[N], const std::int64_t (&)[N]) const {
    const functions::Max larger;
    T row_max = sum.row_max;
#pragma unroll
    for (int i = 0; i < N; ++i) row_max = larger(row_max, x[i]);
    if (std::isfinite(row_max)) {
      T total = row_max == sum.row_max ? sum.total : sum.total * std::exp(sum.row_max - row_max);
#pragma unroll
      for (int i = 0; i < N; ++i) total += std::exp(x[i] - row_max);
      sum.total = total;
    }
    sum.row_max = row_max;
  }

  __device__ Partial combine(Partial a, Partial b) const {
    const T row_max = functions::Max{}(a.row_max, b.row_max);
    if (!std::isfinite(row_max)) return {row_max, T(0)};
    return {row_max, a.total * std::exp(a.row_max - row_max) + b.total * std::exp(b.row_max - row_max)};
  }
};

// ---------------------------------------------------------------- the terms of one thread

/// The offset of term i, or pack i, of a line.
__device__ inline std::int64_t term_at(const DividedLayout& reduced, std::int64_t i) {
  return reduced.rank <= 1 ? i * reduced.strides[0][0] : place(reduced, i);
}

/// Accumulates N more terms into total, N a power of two.
template <class Op, class T, int N>
__device__ void take_in(const Op& op, typename Op::Partial& total, const T (&x)[N], const std::int64_t (&index)[N]) {
  if constexpr (requires { op.add(total, x, index); }) {
    op.add(total, x, index);
  } else {
    typename Op::Partial tree[N];
#pragma unroll
    for (int i = 0; i < N; ++i) tree[i] = op.lift(x[i]);
#pragma unroll
    for (int half = N / 2; half > 0; half /= 2) {
#pragma unroll
      for (int i = 0; i < half; ++i) tree[i] = op.combine(tree[i], tree[i + half]);
    }
    total = op.combine(total, tree[0]);
  }
}

/// Calls take(loaded, index) for the packs, or rows, first, first + step, ... < `end` of the line at `base`. A batch is loaded before any
/// of it is taken, and widened only then, so that loads overlap; past the end, its first pack is loaded again.
template <int V, class Source, class Take>
__device__ void for_batches(const Source& source, const DividedLayout& reduced, std::int64_t base, std::int64_t first, std::int64_t end,
                            std::int64_t step, const Take& take) {
  decltype(source.template load<V>(0)) loaded[batch];
  std::int64_t p = first;
  for (; p + (batch - 1) * step < end; p += batch * step) {
#pragma unroll
    for (int u = 0; u < batch; ++u) loaded[u] = source.template load<V>(base + term_at(reduced, p + u * step));
#pragma unroll
    for (int u = 0; u < batch; ++u) take(loaded[u], p + u * step);
  }
  if (p >= end) return;
#pragma unroll
  for (int u = 0; u < batch - 1; ++u) loaded[u] = source.template load<V>(base + term_at(reduced, p + u * step < end ? p + u * step : p));
#pragma unroll
  for (int u = 0; u < batch - 1; ++u) {
    if (p + u * step < end) take(loaded[u], p + u * step);
  }
}

/// Accumulates the packs first, first + step, ... < `end` of the line at `base` into total.
template <int V, class Op, class Source>
__device__ void take_line(const Op& op, const Source& source, const DividedLayout& reduced, std::int64_t base, std::int64_t first,
                          std::int64_t end, std::int64_t step, typename Op::Partial& total) {
  for_batches<V>(source, reduced, base, first, end, step, [&](const auto& loaded, std::int64_t p) {
    std::int64_t index[V];
#pragma unroll
    for (int v = 0; v < V; ++v) index[v] = p * V + v;
    take_in(op, total, source.terms(loaded).at, index);
  });
}

/// Accumulates element v of the packs in rows first, first + step, ... < `end` into totals[v].
template <int V, class Op, class Source>
__device__ void take_columns(const Op& op, const Source& source, const DividedLayout& reduced, std::int64_t base, std::int64_t first,
                             std::int64_t end, std::int64_t step, typename Op::Partial (&totals)[V]) {
  for_batches<V>(source, reduced, base, first, end, step, [&](const auto& loaded, std::int64_t row) {
    const Pack<typename Source::Element, V> terms = source.terms(loaded);
    const std::int64_t index[1] = {row};
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const typename Source::Element x[1] = {terms.at[v]};
      take_in(op, totals[v], x, index);
    }
  });
}

// ---------------------------------------------------------------- combining threads

/// The value of the lane whose index differs by `lane_mask`, for any trivial type of whole words. Every lane of the warp must call it.
template <class A>
__device__ A shuffle_xor(const A& value, int lane_mask) {
  static_assert(sizeof(A) % 4 == 0);
  unsigned words[sizeof(A) / 4];
  std::memcpy(words, &value, sizeof(A));
#pragma unroll
  for (std::size_t w = 0; w < sizeof(A) / 4; ++w) words[w] = __shfl_xor_sync(0xffffffffu, words[w], lane_mask);
  A other;
  std::memcpy(&other, words, sizeof(A));
  return other;
}

/// Combines the values of `lanes` neighbouring threads (a power of two, up to the block). Every thread of the block must call it. All lanes
/// get a result; if combine(a, b) and combine(b, a) differ in bits, only that of the first lane is valid.
template <class Op>
__device__ typename Op::Partial combine_lanes(const Op& op, typename Op::Partial total, int lanes) {
  for (int mask = (lanes < 32 ? lanes : 32) / 2; mask > 0; mask /= 2) total = op.combine(total, shuffle_xor(total, mask));
  if (lanes <= 32) return total;
  __shared__ typename Op::Partial of_warps[reduction_threads / 32];
  const int warps = lanes / 32, first = static_cast<int>(threadIdx.x) / lanes * warps;
  if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = total;
  __syncthreads();
  total = of_warps[first];
  for (int w = 1; w < warps; ++w) total = op.combine(total, of_warps[first + w]);
  __syncthreads();  // all reads must finish before the next write
  return total;
}

/// Finishes the lines from `first` to `end` from their partial results, stored as (line, split), by the threads of a block, `lanes` of
/// which share a line.
template <class Op>
__device__ void combine_parts(const Op& op, const typename Op::Partial* partials, std::int64_t first, std::int64_t end, std::int64_t terms,
                              int splits, int lanes, typename Op::Result* y) {
  const int lane = static_cast<int>(threadIdx.x) % lanes;
  for (; first < end; first += reduction_threads / lanes) {
    const std::int64_t line = first + static_cast<int>(threadIdx.x) / lanes;
    typename Op::Partial total = op.nothing();
    if (line < end) {
      for (int split = lane; split < splits; split += lanes) total = op.combine(total, partials[line * splits + split]);
    }
    total = combine_lanes(op, total, lanes);
    if (lane == 0 && line < end) y[line] = op.finish(total, terms);
  }
}

/// The last of the blocks that share a tile, of `of_tile` lines, finishes them.
template <class Op>
__device__ void combine_in_last_block(const Op& op, const ReductionPlan& plan, const LastBlock& last, int of_tile,
                                      const typename Op::Partial* partials, typename Op::Result* y) {
  if (last.counters == nullptr) return;
  const std::int64_t tile = blockIdx.x / static_cast<unsigned>(plan.splits), first = tile * of_tile;
  if (!is_last_block(last.counters + tile, plan.splits)) return;
  combine_parts(op, partials, first, first + of_tile < plan.results ? first + of_tile : plan.results, plan.terms, plan.splits, last.threads,
                y);
}

// ---------------------------------------------------------------- kernels

/// Reduces lines with `plan.lanes` threads each. Partial results are stored as (line, split).
template <class Op, class Source, int V>
__global__ void __launch_bounds__(reduction_threads, 1)
    reduce_lines(Op op, Source source, ReductionPlan plan, typename Op::Result* y, typename Op::Partial* partials, LastBlock last) {
  using T = typename Source::Element;
  const int lane = static_cast<int>(threadIdx.x) % plan.lanes, lines = reduction_threads / plan.lanes;
  const int split = static_cast<int>(blockIdx.x % static_cast<unsigned>(plan.splits));
  const std::int64_t begin = split * plan.part;
  const std::int64_t end = begin + plan.part < plan.reduced.count ? begin + plan.part : plan.reduced.count;
  const std::int64_t step = gridDim.x / static_cast<unsigned>(plan.splits);
  for (std::int64_t tile = blockIdx.x / static_cast<unsigned>(plan.splits); tile < plan.tiles; tile += step) {
    const std::int64_t line = tile * lines + static_cast<int>(threadIdx.x) / plan.lanes;
    typename Op::Partial total = op.nothing();
    if (line < plan.results) {
      const std::int64_t base = place(plan.kept, line);
      take_line<V>(op, source, plan.reduced, base, begin + lane, end, plan.lanes, total);
      if (V > 1 && split == 0) {
        for (std::int64_t i = plan.terms - plan.tail + lane; i < plan.terms; i += plan.lanes) {
          const Pack<T, 1> x = source.terms(source.template load<1>(base + i));
          const std::int64_t index[1] = {i};
          take_in(op, total, x.at, index);
        }
      }
    }
    total = combine_lanes(op, total, plan.lanes);
    if (lane != 0 || line >= plan.results) continue;
    if (plan.splits > 1) {
      partials[line * plan.splits + split] = total;
    } else {
      y[line] = op.finish(total, plan.terms);
    }
  }
  combine_in_last_block(op, plan, last, lines, partials, y);
}

/// Reduces lines that are neighbours in memory: V lines per thread, reduction_threads / plan.lanes threads per line.
template <class Op, class Source, int V>
__global__ void __launch_bounds__(reduction_threads, 1)
    reduce_columns(Op op, Source source, ReductionPlan plan, typename Op::Result* y, typename Op::Partial* partials, LastBlock last) {
  __shared__ typename Op::Partial others[V * reduction_threads];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % plan.lanes, group = thread / plan.lanes;
  const int groups = reduction_threads / plan.lanes;
  const int split = static_cast<int>(blockIdx.x % static_cast<unsigned>(plan.splits));
  const std::int64_t begin = split * plan.part;
  const std::int64_t end = begin + plan.part < plan.reduced.count ? begin + plan.part : plan.reduced.count;
  const std::int64_t step = gridDim.x / static_cast<unsigned>(plan.splits);
  for (std::int64_t tile = blockIdx.x / static_cast<unsigned>(plan.splits); tile < plan.tiles; tile += step) {
    const std::int64_t column = tile * plan.lanes + lane;
    typename Op::Partial totals[V];
#pragma unroll
    for (int v = 0; v < V; ++v) totals[v] = op.nothing();
    if (column < plan.kept.count) {
      const std::int64_t base = place(plan.kept, column);
      take_columns<V>(op, source, plan.reduced, base, begin + group, end, groups, totals);
    }
    if (groups > 1) {
#pragma unroll
      for (int v = 0; v < V; ++v) others[v * reduction_threads + thread] = totals[v];
      __syncthreads();
      for (int half = groups / 2; half > 0; half /= 2) {
        if (group < half) {
#pragma unroll
          for (int v = 0; v < V; ++v) {
            totals[v] = op.combine(totals[v], others[v * reduction_threads + thread + half * plan.lanes]);
            others[v * reduction_threads + thread] = totals[v];
          }
        }
        __syncthreads();
      }
    }
    if (group != 0 || column >= plan.kept.count) continue;
#pragma unroll
    for (int v = 0; v < V; ++v) {
      const std::int64_t line = column * V + v;
      if (plan.splits > 1) {
        partials[line * plan.splits + split] = totals[v];
      } else {
        y[line] = op.finish(totals[v], plan.terms);
      }
    }
  }
  combine_in_last_block(op, plan, last, plan.lanes * V, partials, y);
}

/// Combines the partial results of several blocks for each line.
template <class Op>
__global__ void __launch_bounds__(reduction_threads, 1) combine_splits(Op op, const typename Op::Partial* partials, std::int64_t results,
                                                                       std::int64_t terms, int splits, int lanes, typename Op::Result* y) {
  const int lines = reduction_threads / lanes;
  const std::int64_t first = std::int64_t{blockIdx.x} * lines;
  combine_parts(op, partials, first, first + lines < results ? first + lines : results, terms, splits, lanes, y);
}

// ---------------------------------------------------------------- host side

/// Bytes of scratch memory for the partial results of any op, with or without packs.
inline std::size_t scratch_of(const std::int64_t* shape, const std::int64_t* strides, std::uint32_t rank, std::uint32_t axes,
                              tenon_dtype dtype) {
  const int widest = static_cast<int>(16 / sdk::size_of(dtype));
  const std::int64_t packs = plan_reduction(shape, strides, rank, axes, widest).partials();
  const std::int64_t elements = plan_reduction(shape, strides, rank, axes, 1).partials();
  return static_cast<std::size_t>(std::max(packs, elements)) * 24;
}

/// Reduces a source to y. The plan is for packs of Source::widest elements or of one; `scratch` has 24 bytes for each of its partial
/// results.
template <class Op, class Source>
void reduce(Stream& stream, const Op& op, const Source& source, const ReductionPlan& plan, typename Op::Result* y, void* scratch) {
  static_assert(sizeof(typename Op::Partial) <= 24 && alignof(typename Op::Partial) <= 8);
  constexpr int V = Source::widest;
  auto* const partials = static_cast<typename Op::Partial*>(scratch);
  const Geometry geometry{plan.blocks(), reduction_threads};
  const bool packs = plan.width > 1;
  const auto kernel = plan.columns ? (packs ? reduce_columns<Op, Source, V> : reduce_columns<Op, Source, 1>)
                                   : (packs ? reduce_lines<Op, Source, V> : reduce_lines<Op, Source, 1>);
  LastBlock last;
  if (plan.splits > 1)
    last = last_block(stream, plan.tiles, plan.columns ? plan.lanes * plan.width : reduction_threads / plan.lanes, plan.splits,
                      reduction_threads);
  launch(stream, geometry, kernel, op, source, plan, y, partials, last);
  if (plan.splits == 1 || last.counters != nullptr) return;
  int lanes = 1;
  while (lanes < plan.splits && lanes < reduction_threads) lanes *= 2;
  launch(stream, {(plan.results * lanes + reduction_threads - 1) / reduction_threads, reduction_threads}, combine_splits<Op>, op, partials,
         plan.results, plan.terms, plan.splits, lanes, y);
}

}  // namespace tenon::cuda
