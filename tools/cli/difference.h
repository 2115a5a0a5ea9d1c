// SPDX-License-Identifier: Apache-2.0
// cli/difference.h - how far results are from those of another computation.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/tensor.h>

namespace tenon::cli {

/// The largest difference of elements, as a fraction of the largest finite expected element or of `min_scale`, whichever is more. Equal
/// infinities and two NaN differ by 0; a NaN or an infinity on one side only by infinity.
/// Errors  another dtype or shape; `what` says of what: "the file".
inline double largest_difference(const Tensor& expected, const Tensor& got, double min_scale, const std::string& what) {
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
