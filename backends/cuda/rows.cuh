// rows.cuh - rows that are held in registers from their reading to their writing, as plan_rows says.
#pragma once

#include "reduction.cuh"

namespace tenon::cuda {

/// A thread's part of a row of n elements: E of them, in packs where rows fall into packs that can be read at once.
template <class T, int E>
struct RowPart {
  static constexpr int width = Values<T>::widest;
  std::int64_t n;
  int lanes, lane;
  bool packs;

  /// Where in the row element e is; n or more: nowhere.
  __device__ std::int64_t number(int e) const {
    return packs ? (std::int64_t{e / width} * lanes + lane) * width + e % width : std::int64_t{e} * lanes + lane;
  }
  /// What is nowhere reads as `missing`.
  __device__ void read(const T* row, T missing, T (&out_x)[E]) const {
    if (packs) {
#pragma unroll
      for (int e = 0; e < E; e += width) {
        Pack<T, width> pack;
#pragma unroll
        for (int v = 0; v < width; ++v) pack.at[v] = missing;
        if (number(e) < n) pack = *reinterpret_cast<const Pack<T, width>*>(row + number(e));
#pragma unroll
        for (int v = 0; v < width; ++v) out_x[e + v] = pack.at[v];
      }
    } else {
#pragma unroll
      for (int e = 0; e < E; ++e) out_x[e] = number(e) < n ? row[number(e)] : missing;
    }
  }
  __device__ void write(T* row, const T (&x)[E]) const {
    if (packs) {
#pragma unroll
      for (int e = 0; e < E; e += width) {
        Pack<T, width> pack;
#pragma unroll
        for (int v = 0; v < width; ++v) pack.at[v] = x[e + v];
        if (number(e) < n) *reinterpret_cast<Pack<T, width>*>(row + number(e)) = pack;
      }
    } else {
#pragma unroll
      for (int e = 0; e < E; ++e) {
        if (number(e) < n) row[number(e)] = x[e];
      }
    }
  }
};

/// The largest of what the threads of a row have.
template <class T>
struct Peak {
  using Partial = T;
  __device__ T combine(T a, T b) const { return functions::Max{}(a, b); }
};

/// x becomes exp(x - peak); a missing element, -inf, becomes 0.
/// Returns  peak and total of the row. Those of a row without a finite peak are not numbers, as in exp(x - peak) / total.
template <class T, int E>
__device__ Exponentials<T> exponentials_of_row(T (&x)[E], int lanes) {
  T peak = x[0];
#pragma unroll
  for (int e = 1; e < E; ++e) peak = functions::Max{}(peak, x[e]);
  peak = combine_lanes(Peak<T>{}, peak, lanes);
  T total = 0;
#pragma unroll
  for (int e = 0; e < E; ++e) {
    x[e] = std::exp(x[e] - peak);
    total += x[e];
  }
  total = combine_lanes(Sum<T>{}, total, lanes);
  return {peak, std::isfinite(peak) ? total : std::numeric_limits<T>::quiet_NaN()};
}

/// Blocks for rows that are held in registers.
inline Geometry rows_geometry(const RowPlan& plan, std::int64_t rows) {
  const std::int64_t at_once = reduction_threads / plan.lanes;
  return {std::min<std::int64_t>((rows + at_once - 1) / at_once, 8192), reduction_threads};
}

}  // namespace tenon::cuda
