// SPDX-License-Identifier: Apache-2.0
#include "cli/difference.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <tenon/error.h>

namespace tenon::cli {

double largest_difference(const Tensor& expected, const Tensor& got, double min_scale, const char* what) {
  if (got.dtype() != expected.dtype() || !(got.shape() == expected.shape()))
    throw Error(fmt::format("{} computes {}, expected {}", what, got.str(), expected.str()));
  const std::vector<double> a = expected.to(DType::f64).to_vector<double>(), b = got.to(DType::f64).to_vector<double>();
  double largest = min_scale, difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (std::isfinite(a[i])) largest = std::max(largest, std::fabs(a[i]));
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double d = std::fabs(a[i] - b[i]);
    difference = std::isfinite(d) ? std::max(difference, d) : std::numeric_limits<double>::infinity();
  }
  return difference / largest;
}

}  // namespace tenon::cli
