// SPDX-License-Identifier: Apache-2.0
// rows.cuh - rows held in registers between load and store, with a layout from plan_rows.
#pragma once

#include "kernel/pack.cuh"
#include "reduce/reduction.cuh"

namespace tenon::cuda {

/// A thread's part of a row of n elements: E elements, in packs if rows divide into aligned packs.
template <class T, int E>
struct RowPart {
  static constexpr int width = Values<T>::widest;
  std::int64_t n;
  int lanes, lane;
  bool packs;

  /// The index of element e in the row; out of range if n or more.
  __device__ std::int64_t index(int e) const {
    return packs ? (std::int64_t{e / width} * lanes + lane) * width + e % width : std::int64_t{e} * lanes + lane;
  }
  /// Out-of-range elements load `missing`.
  __device__ void read(const T* row, T missing, T (&out_x)[E]) const {
    if (packs) {
#pragma unroll
      for (int e = 0; e < E; e += width) {
        Pack<T, width> pack;
#pragma unroll
        for (int v = 0; v < width; ++v) pack.at[v] = missing;
        if (index(e) < n) pack = pack_at<width>(row + index(e));
#pragma unroll
        for (int v = 0; v < width; ++v) out_x[e + v] = pack.at[v];
      }
    } else {
#pragma unroll
      for (int e = 0; e < E; ++e) out_x[e] = index(e) < n ? row[index(e)] : missing;
    }
  }
  __device__ void write(T* row, const T (&x)[E]) const {
    if (packs) {
#pragma unroll
      for (int e = 0; e < E; e += width) {
        Pack<T, width> pack;
#pragma unroll
        for (int v = 0; v < width; ++v) pack.at[v] = x[e + v];
        if (index(e) < n) pack_at<width>(row + index(e)) = pack;
      }
    } else {
#pragma unroll
      for (int e = 0; e < E; ++e) {
        if (index(e) < n) row[index(e)] = x[e];
      }
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

/// The launch geometry for rows held in registers.
inline Geometry rows_geometry(const RowPlan& plan, std::int64_t rows) {
  const std::int64_t at_once = reduction_threads / plan.lanes;
  return {std::min<std::int64_t>((rows + at_once - 1) / at_once, 8192), reduction_threads};
}

}  // namespace tenon::cuda
