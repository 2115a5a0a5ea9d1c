// reduction_leaves.h - the vector code of the reductions, for this machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

#include "reduction.h"

namespace tenon::openblas {

/// What is added up, or multiplied, in f64.
enum class Term { value, magnitude, square, factor };
Leaves<float, double> sum_leaves(Term term, const float*);
Leaves<double, double> sum_leaves(Term term, const double*);

/// The largest or smallest; NaN if there is one.
template <class T>
Leaves<T, T> extreme_leaves(bool largest);

/// Sums and products of integers that wrap.
template <class T>
Leaves<T, T> wrapping_leaves(Term term);

/// sum exp(x - peak), as a pair that can be added to: peak is the largest x. Where that is no number or infinite, the sum counts for 1.
struct ScaledSum {
  double peak = -std::numeric_limits<double>::infinity();
  double sum = 0;
};
struct AddScaled {
  static ScaledSum neutral() { return {}; }
  ScaledSum operator()(const ScaledSum& a, const ScaledSum& b) const {
    const bool first = a.peak >= b.peak || std::isnan(a.peak);
    const ScaledSum &high = first ? a : b, &low = first ? b : a;
    if (!std::isfinite(high.peak) || low.sum == 0) return high;
    return {high.peak, high.sum + low.sum * std::exp(low.peak - high.peak)};
  }
};
Leaves<float, ScaledSum> exponential_leaves(const float*);
Leaves<double, ScaledSum> exponential_leaves(const double*);

}  // namespace tenon::openblas
