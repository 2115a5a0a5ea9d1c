// SPDX-License-Identifier: Apache-2.0
// line_registers.cuh - the normalisation of lines that are read once and held in registers, and its gradient.
#pragma once

#include <cmath>

#include "norm/channels.cuh"
#include "norm/line_operands.cuh"
#include "reduce/rows.cuh"

namespace tenon::cuda {

/// dscale and dbias, reduced over lines or over the partial sums of blocks.
template <class T, bool centred>
struct OverLines : AddsUp<T> {
  using W = Wide<T>;
  struct Base {};
  /// x' = (x - mean) inverse
  struct Row {
    W mean, inverse;
  };
  static constexpr int operands = 2;
  static constexpr Traversal traversal = Traversal::columns;
  static constexpr bool by_row = true;
  LineNormGrad<T> p;

  __device__ Base base(std::int64_t) const { return {}; }
  __device__ Row row(std::int64_t line) const { return {centred ? widen(p.mean[line]) : W(0), widen(p.inverse[line])}; }
  __device__ W of_row(W x, const Row& by) const { return (x - by.mean) * by.inverse; }
  template <int N>
  __device__ void take(TwoSums<W>& total, const typename AddsUp<T>::Step&, Base, const W (&dy)[N], const W (&normal)[N], int terms) const {
    add_products(total, dy, normal, terms);
  }
  __device__ void finish(std::int64_t i, const TwoSums<W>& of) const {
    if (p.dscale != nullptr) p.dscale[i] = narrow<T>(of.product);
    if (p.dbias != nullptr) p.dbias[i] = narrow<T>(of.sum);
  }
};

/// y may be x: a line is read before it is written.
template <class T, bool centred, int E>
__global__ void __launch_bounds__(reduction_threads) lines_in_registers(LineNorm<T> p, std::int64_t lines, int lanes, bool packs) {
  using W = Wide<T>;
  using Part = RowPart<T, E>;
  const int at_once = reduction_threads / lanes;
  const Part part{p.n, lanes, static_cast<int>(threadIdx.x) % lanes, packs};
  const std::int64_t first = std::int64_t{blockIdx.x} * at_once;
  const std::int64_t line = first + static_cast<int>(threadIdx.x) / lanes;
  const bool exists = line < lines;  // else the thread takes part with an existing line
  const std::int64_t start = (exists ? line : first) * p.n;
  const auto terms = static_cast<W>(p.n);
  W x[E], squares[E], mean = 0, origin = 0;
  part.read(p.x + start, W(0), x);
  if constexpr (centred) {
    origin = Moments<T>::origin(p.x[start]);
#pragma unroll
    for (int e = 0; e < E; ++e) x[e] = part.index(e) < p.n ? x[e] - origin : W(0);
    mean = combine_lanes(Sum<W>{}, sum_of(x), lanes) / terms;
#pragma unroll
    for (int e = 0; e < E; ++e) x[e] -= mean;
  }
#pragma unroll
  for (int e = 0; e < E; ++e) squares[e] = part.index(e) < p.n ? x[e] * x[e] : W(0);
  const W inverse = 1 / std::sqrt(combine_lanes(Sum<W>{}, sum_of(squares), lanes) / terms + p.epsilon);
  if (!exists) return;
  if (part.lane == 0) {
    if (centred && p.mean != nullptr) p.mean[line] = narrow<T>(origin + mean);
    if (p.inverse != nullptr) p.inverse[line] = narrow<T>(inverse);
  }
#pragma unroll
  for (int e = 0; e < E; e += Part::width) {
    W y[Part::width], by[Part::width] = {};
#pragma unroll
    for (int v = 0; v < Part::width; ++v) y[v] = x[e + v] * inverse;
    if (p.scale != nullptr) {
      part.read_at(p.scale, e, by);
#pragma unroll
      for (int v = 0; v < Part::width; ++v) y[v] *= by[v];
    }
    if (p.bias != nullptr) {
      part.read_at(p.bias, e, by);
#pragma unroll
      for (int v = 0; v < Part::width; ++v) y[v] += by[v];
    }
    part.write_at(p.y + start, e, y);
  }
}

/// Also sum(dy) and sum(dy x') over the lines of each block, as (block, n), unless `partials` is NULL; the last block may combine them.
template <class T, bool centred, int E>
__global__ void __launch_bounds__(reduction_threads, (E > 4 ? 2 : 4) / (sizeof(T) < 8 ? 1 : 2))
    gradients_in_registers(LineNormGrad<T> p, std::int64_t lines, int lanes, bool packs, TwoSums<Wide<T>>* partials, LastBlock last) {
  using W = Wide<T>;
  using Part = RowPart<T, E>;
  const AddsUp<T> adds{};
  const int at_once = reduction_threads / lanes;
  const Part part{p.n, lanes, static_cast<int>(threadIdx.x) % lanes, packs};
  TwoSums<W> over_lines[E] = {};
  for (std::int64_t first = std::int64_t{blockIdx.x} * at_once; first < lines; first += std::int64_t{gridDim.x} * at_once) {
    const std::int64_t line = first + static_cast<int>(threadIdx.x) / lanes;
    const bool exists = line < lines;  // else the thread takes part with an existing line
    const std::int64_t from = exists ? line : first, start = from * p.n;
    const W mean = centred ? widen(p.mean[from]) : W(0), inverse = widen(p.inverse[from]);
    W g[E], normal[E];
    part.read(p.dy + start, W(0), g);
    part.read(p.x + start, W(0), normal);
#pragma unroll
    for (int e = 0; e < E; ++e) {
      normal[e] = part.index(e) < p.n ? (normal[e] - mean) * inverse : W(0);
      if (exists) {
        over_lines[e].sum += g[e];
        over_lines[e].product += g[e] * normal[e];
      }
    }
    if (p.scale != nullptr) {
#pragma unroll
      for (int e = 0; e < E; e += Part::width) {
        W scale[Part::width] = {};
        part.read_at(p.scale, e, scale);
#pragma unroll
        for (int v = 0; v < Part::width; ++v) g[e + v] *= scale[v];
      }
    }
    TwoSums<W> of{};
    add_products(of, g, normal, E);
    of = combine_lanes(adds, of, lanes);
    const auto terms = static_cast<W>(p.n);
    const W shift = centred ? of.sum / terms : W(0), slope = of.product / terms;
    if (!exists) continue;
#pragma unroll
    for (int e = 0; e < E; e += Part::width) {
      W dx[Part::width], addend[Part::width] = {};
      if (p.epilogue.residual != nullptr) part.read_at(p.epilogue.residual + start, e, addend);
#pragma unroll
      for (int v = 0; v < Part::width; ++v) {
        dx[v] = inverse * (g[e + v] - shift - normal[e + v] * slope);
        dx[v] = p.epilogue.sum(dx[v], narrow<T>(addend[v]), start + part.index(e + v));
      }
      part.write_at(p.dx + start, e, dx);
    }
  }
  if (partials == nullptr) return;
  constexpr int some = 4;  // columns at once: shared memory is limited
#pragma unroll
  for (int e = 0; e < E; e += some) {
    TwoSums<W> sums[some];
#pragma unroll
    for (int v = 0; v < some; ++v) sums[v] = over_lines[e + v];
    combine_groups(adds, sums, lanes, at_once);
    if (static_cast<int>(threadIdx.x) < lanes) {
#pragma unroll
      for (int v = 0; v < some; ++v) {
        if (part.index(e + v) < p.n) partials[blockIdx.x * p.n + part.index(e + v)] = sums[v];
      }
    }
  }
  if (last.counters == nullptr || !is_last_block(last.counters, static_cast<int>(gridDim.x))) return;
  combine_channels(OverLines<T, centred>{{}, p}, partials, p.n, 0, p.n, gridDim.x, last.threads);
}

}  // namespace tenon::cuda
