// Magnitude, sign, whole numbers, roots, reciprocal and bounds. Computed in f64, rounded once; integers in their own type.
#include <cmath>
#include <limits>

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

/// y = the least whole number not below x
template <class T>
void ceil(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::ceil(x); });
}

/// y = the greatest whole number not above x
template <class T>
void floor(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::floor(x); });
}

/// y = the nearest whole number, halves to even: what rounding to nearest does wherever the environment is the usual one.
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
void inverse_sqrt(const sdk::Call& call) {
  map<T>(call, [](double x) { return 1.0 / std::sqrt(x); });
}

/// y = 1 / x
template <class T>
void inverse(const sdk::Call& call) {
  map<T>(call, [](double x) { return 1.0 / x; });
}

/// `value` as a T; beyond the range of an integer its nearest end.
template <class T>
T bound(double value) {
  if constexpr (std::is_integral_v<T>) {
    const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
    if (value >= above) return std::numeric_limits<T>::max();
    if (value <= -above) return std::numeric_limits<T>::lowest();
  }
  return static_cast<T>(value);
}

/// y = min(max(x, low), high); NaN stays.
///
/// Attributes  low, high: a bound of a fraction beside an integer x is drawn to the integers it leaves, low up and high down.
template <class T>
void clip(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_clip>();
  if constexpr (std::is_integral_v<T>) {
    const T low = bound<T>(std::ceil(attributes.low)), high = bound<T>(std::floor(attributes.high));
    map<T>(call, [=](T x) {
      const T raised = x < low ? low : x;
      return raised > high ? high : raised;
    });
  } else {
    // the bounds are numbers of T: what comes out is one of them or x
    const double low = static_cast<T>(attributes.low), high = static_cast<T>(attributes.high);
    map<T>(call, [=](double x) {
      const double raised = x < low ? low : x;
      return raised > high ? high : raised;
    });
  }
}

}  // namespace
TENON_KERNEL_WITH(abs, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(sign, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(ceil, elementwise_traits, float, double)
TENON_KERNEL_WITH(floor, elementwise_traits, float, double)
TENON_KERNEL_WITH(round, elementwise_traits, float, double)
TENON_KERNEL_WITH(sqrt, elementwise_traits, float, double)
TENON_KERNEL_WITH(inverse_sqrt, elementwise_traits, float, double)
TENON_KERNEL_WITH(inverse, elementwise_traits, float, double)
TENON_KERNEL_WITH(clip, elementwise_traits, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::reference
