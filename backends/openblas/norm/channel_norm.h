// SPDX-License-Identifier: Apache-2.0
// channel_norm.h - the vector code of batch normalisation: passes over rows whose columns each have their own coefficients.
#pragma once

#include <cstdint>

#include "gemm/product_types.h"

namespace tenon::openblas {

/// Columns that the summing passes process at a time: their sums stay in L1.
inline constexpr std::int64_t channel_strip = 256;

/// The extent of an operand: element (i, j) is at [i * stride + j], i < rows, j < columns.
struct StridedRows {
  std::int64_t rows, stride, columns;
};

/// For operands of T with coefficients of S, which is T, or f32 where T is bf16.
template <class T, class S = SumOf<T>>
struct ChannelNorm {
  /// The mean of each column and the sum of squared distances from it. At least one row, at most channel_strip columns.
  void (*statistics)(const T* x, const StridedRows& extent, double* out_mean, double* out_squares);
  /// sum(dy) and sum(dy (x - mean)) of each column. At most channel_strip columns.
  void (*gradient_sums)(const T* dy, const T* x, const StridedRows& extent, const S* mean, double* out_sum, double* out_product);
  /// y = (x - centre) factor + offset; y may be x.
  void (*normalise)(const T* x, T* y, const StridedRows& extent, const S* centre, const S* factor, const S* offset);
  /// dx = by_dy dy + by_x (x - mean) + constant
  void (*gradient)(const T* dy, const T* x, T* dx, const StridedRows& extent, const S* mean, const S* by_dy, const S* by_x,
                   const S* constant);
};

/// The functions for this machine.
template <class T>
ChannelNorm<T> channel_norm();

}  // namespace tenon::openblas
