// SPDX-License-Identifier: Apache-2.0
// Magnitude, sign, rounding, roots, reciprocal and bounds. Computed in f64, rounded once; integers in their own type.
#include <tenon/sdk/element.h>

#include <cmath>
#include <type_traits>

#include "map.h"

namespace tenon::reference {
namespace {

/// y = |x|; the lowest integer is its own magnitude.
template <class T>
void abs(const sdk::Call& call) {
  map<T>(call, [](auto x) {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? negated(x) : x;
    } else {
      return std::abs(x);
    }
  });
}

/// y = -1, 0 or 1 as x is negative, zero or positive; NaN stays, and so does -0.
template <class T>
void sign(const sdk::Call& call) {
  map<T>(call, [](auto x) {
    using X = decltype(x);
    return x > 0 ? X(1) : x < 0 ? X(-1) : x;
  });
}

/// y = the smallest integer >= x
template <class T>
void ceil(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::ceil(x); });
}

/// y = the largest integer <= x
template <class T>
void floor(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::floor(x); });
}

/// y = the nearest integer, halves to even: the default rounding mode.
template <class T>
void round(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::nearbyint(x); });
}

/// y = sqrt x; NaN below 0
template <class T>
void sqrt(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::sqrt(x); });
}

/// y = 1 / sqrt x
template <class T>
void rsqrt(const sdk::Call& call) {
  map<T>(call, [](double x) { return 1.0 / std::sqrt(x); });
}

/// y = 1 / x
template <class T>
void reciprocal(const sdk::Call& call) {
  map<T>(call, [](double x) { return 1.0 / x; });
}

/// y = min(max(x, low), high), with bounds of type T; NaN stays.
template <class T>
void clip(const sdk::Call& call) {
  using Wide = std::conditional_t<std::is_integral_v<T>, T, double>;
  const sdk::Bounds<T> bounds = sdk::bounds_of<T>(call.attr<tenon_attributes_clip>());
  map<T>(call, [low = Wide{bounds.low}, high = Wide{bounds.high}](Wide x) {
    const Wide raised = x < low ? low : x;
    return raised > high ? high : raised;
  });
}

}  // namespace
TENON_KERNEL_WITH(abs, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(sign, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(ceil, elementwise_traits, float, double)
TENON_KERNEL_WITH(floor, elementwise_traits, float, double)
TENON_KERNEL_WITH(round, elementwise_traits, float, double)
TENON_KERNEL_WITH(sqrt, elementwise_traits, float, double)
TENON_KERNEL_WITH(rsqrt, elementwise_traits, float, double)
TENON_KERNEL_WITH(reciprocal, elementwise_traits, float, double)
TENON_KERNEL_WITH(clip, elementwise_traits, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::reference
