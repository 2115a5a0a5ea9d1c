// SPDX-License-Identifier: Apache-2.0
// rows.cuh - rows held in registers between load and store, with a layout from plan_rows.
#pragma once

#include <algorithm>

#include "kernel/pack.cuh"
#include "kernel/wide.cuh"
#include "reduce/reduction.cuh"

namespace tenon::cuda {

/// A thread's part of a row of n elements: E elements in their compute type, in packs if rows divide into aligned packs.
template <class T, int E>
struct RowPart {
  using W = Wide<T>;
  static constexpr int width = pack_width<T> < E ? pack_width<T> : E;
  std::int64_t n;
  int lanes, lane;
  bool packs;

  /// The index of element e in the row; out of range if n or more.
  __device__ std::int64_t index(int e) const {
    return packs ? (std::int64_t{e / width} * lanes + lane) * width + e % width : std::int64_t{e} * lanes + lane;
  }
  /// Loads `width` elements from e on; out-of-range elements are unchanged.
  __device__ void read_at(const T* row, int e, W (&out_x)[width]) const {
    if (packs) {
      if (index(e) >= n) return;
      const Pack<T, width> pack = pack_at<width>(row + index(e));
#pragma unroll
      for (int v = 0; v < width; ++v) out_x[v] = widen(pack.at[v]);
    } else {
#pragma unroll
      for (int v = 0; v < width; ++v) {
        if (index(e + v) < n) out_x[v] = widen(row[index(e + v)]);
      }
    }
  }
  __device__ void write_at(T* row, int e, const W (&x)[width]) const {
    if (packs) {
      if (index(e) < n) store_pack<width>(row + index(e), narrow<T>(x));
    } else {
#pragma unroll
      for (int v = 0; v < width; ++v) {
        if (index(e + v) < n) row[index(e + v)] = narrow<T>(x[v]);
      }
    }
  }
  /// Loads and stores all elements; out-of-range ones load `missing`.
  __device__ void read(const T* row, W missing, W (&out_x)[E]) const {
#pragma unroll
    for (int e = 0; e < E; e += width) {
      W some[width];
#pragma unroll
      for (int v = 0; v < width; ++v) some[v] = missing;
      read_at(row, e, some);
#pragma unroll
      for (int v = 0; v < width; ++v) out_x[e + v] = some[v];
    }
  }
  __device__ void write(T* row, const W (&x)[E]) const {
#pragma unroll
    for (int e = 0; e < E; e += width) {
      W some[width];
#pragma unroll
      for (int v = 0; v < width; ++v) some[v] = x[e + v];
      write_at(row, e, some);
    }
  }
};

/// The maximum over the threads of a row.
template <class T>
struct RowMax {
  using Partial = T;
  __device__ T combine(T a, T b) const { return functions::Max{}(a, b); }
};

/// Replaces x by exp(x - row_max); missing elements, -inf, become 0. Returns row_max and total of the row; the total is NaN if row_max is
/// not finite.
template <class T, int E>
__device__ Exponentials<T> exponentials_of_row(T (&x)[E], int lanes) {
  T row_max = x[0];
#pragma unroll
  for (int e = 1; e < E; ++e) row_max = functions::Max{}(row_max, x[e]);
  row_max = combine_lanes(RowMax<T>{}, row_max, lanes);
  T total = 0;
#pragma unroll
  for (int e = 0; e < E; ++e) {
    x[e] = std::exp(x[e] - row_max);
    total += x[e];
  }
  total = combine_lanes(Sum<T>{}, total, lanes);
  return {row_max, std::isfinite(row_max) ? total : std::numeric_limits<T>::quiet_NaN()};
}

/// x as (outer, n, inner), and its reduction over n to a line of values for each outer and inner.
struct AxisLines {
  std::int64_t shape[3], strides[3];

  AxisLines(const sdk::Operand& x, std::int64_t axis) {
    const auto [outer, n, inner] = sdk::around_axis(x, axis);
    const std::int64_t sizes[] = {outer, n, inner}, steps[] = {n * inner, inner, 1};
    std::copy_n(sizes, 3, shape);
    std::copy_n(steps, 3, strides);
  }
  std::int64_t lines() const { return shape[0] * shape[2]; }
  std::int64_t n() const { return shape[1]; }
  std::int64_t inner() const { return shape[2]; }
  std::int64_t count() const { return lines() * n(); }
  bool fits_registers() const { return inner() == 1 && plan_rows(n()).elements > 0; }
  ReductionPlan plan(int widest) const { return plan_reduction(shape, strides, 3, 0b010, widest); }
  /// Bytes for the partial results of a reduction.
  std::size_t scratch(tenon_dtype dtype) const { return scratch_of(shape, strides, 3, 0b010, dtype); }
};

/// The launch geometry for rows held in registers.
inline Geometry rows_geometry(const RowPlan& plan, std::int64_t rows) {
  const std::int64_t at_once = reduction_threads / plan.lanes;
  return {std::min<std::int64_t>((rows + at_once - 1) / at_once, 8192), reduction_threads};
}

}  // namespace tenon::cuda
