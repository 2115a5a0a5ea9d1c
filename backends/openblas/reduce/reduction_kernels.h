// SPDX-License-Identifier: Apache-2.0
// reduction_kernels.h - the vector code of the reductions, for this machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "reduce/reduction.h"

namespace tenon::openblas {

/// The terms of a sum (x, |x|, x^2) or product (factor: x), accumulated in f64.
enum class Term { value, magnitude, square, factor };
template <class T>
ReductionKernels<T, double> sum_kernels(Term term);

/// The largest or smallest element; NaN if any element is NaN.
template <class T>
ReductionKernels<T, T> extreme_kernels(bool largest);

/// Sums and products of integers with wrap-around.
template <class T>
ReductionKernels<T, T> wrapping_kernels(Term term);

/// sum exp(x - row_max) with row_max = max x, a pair that can be combined with others. Where row_max is NaN or infinite, the sum is 1.
struct ScaledSum {
  double row_max = -std::numeric_limits<double>::infinity();
  double sum = 0;
};
struct AddScaled {
  static ScaledSum neutral() { return {}; }
  ScaledSum operator()(const ScaledSum& a, const ScaledSum& b) const {
    const bool first = a.row_max >= b.row_max || std::isnan(a.row_max);
    const ScaledSum &high = first ? a : b, &low = first ? b : a;
    if (!std::isfinite(high.row_max) || low.sum == 0) return high;
    return {high.row_max, high.sum + low.sum * std::exp(low.row_max - high.row_max)};
  }
};
template <class T>
ReductionKernels<T, ScaledSum> exponential_kernels();

}  // namespace tenon::openblas
