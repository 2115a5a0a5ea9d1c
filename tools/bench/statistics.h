// SPDX-License-Identifier: Apache-2.0
// bench/statistics.h - median and spread of samples.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace tenon::bench {

/// The value below which `fraction` of the samples lie, with linear interpolation. Requires at least one sample.
inline double quantile(std::vector<double> samples, double fraction) {
  std::sort(samples.begin(), samples.end());
  const double position = fraction * static_cast<double>(samples.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const std::size_t above = std::min(below + 1, samples.size() - 1);
  return samples[below] + (position - static_cast<double>(below)) * (samples[above] - samples[below]);
}

inline double median(const std::vector<double>& samples) {
  return quantile(samples, 0.5);
}

/// Distance between the quartiles.
inline double interquartile_range(const std::vector<double>& samples) {
  return quantile(samples, 0.75) - quantile(samples, 0.25);
}

/// y = base + slope x with the least sum of squared relative errors, so that small and large y count equally. Requires two different x and
/// no y = 0.
struct Line {
  double base = 0, slope = 0;
};
inline Line fit_line(const std::vector<double>& x, const std::vector<double>& y) {
  double sum = 0, sum_x = 0, sum_y = 0, sum_xx = 0, sum_xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double weight = 1 / (y[i] * y[i]);
    sum += weight;
    sum_x += weight * x[i], sum_y += weight * y[i];
    sum_xx += weight * x[i] * x[i], sum_xy += weight * x[i] * y[i];
  }
  Line line;
  line.slope = (sum * sum_xy - sum_x * sum_y) / (sum * sum_xx - sum_x * sum_x);
  line.base = (sum_y - line.slope * sum_x) / sum;
  return line;
}

}  // namespace tenon::bench
