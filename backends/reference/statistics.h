// SPDX-License-Identifier: Apache-2.0
// statistics.h - mean and variance in two passes.
#pragma once

#include <cmath>
#include <cstdint>

namespace tenon::reference {

/// Mean and variance (the mean squared distance from the mean) of x(0) ... x(n - 1).
struct Statistics {
  double mean = 0, variance = 0;

  /// Source  Chan, Golub, LeVeque: Algorithms for Computing the Sample Variance (1983), the corrected two-pass algorithm: the second pass
  ///         measures and subtracts the effect of rounding the mean.
  template <class X>
  Statistics(std::int64_t n, X&& x) {
    for (std::int64_t i = 0; i < n; ++i) mean += x(i);
    mean /= static_cast<double>(n);
    double off = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      const double deviation = x(i) - mean;
      off += deviation;
      variance += deviation * deviation;
    }
    off /= static_cast<double>(n);
    variance = variance / static_cast<double>(n) - off * off;
    if (variance < 0) variance = 0;  // NaN stays
    if (std::isfinite(off)) mean += off;
  }
  double inverse_std(double epsilon) const { return 1 / std::sqrt(variance + epsilon); }
};

}  // namespace tenon::reference
