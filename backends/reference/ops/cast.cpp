// SPDX-License-Identifier: Apache-2.0
// Conversion of every element to another dtype.
#include <algorithm>
#include <cmath>
#include <limits>

#include <tenon/sdk/element.h>

#include "map.h"

namespace tenon::reference {
namespace {

/// The layout of a 16-bit float: bits of the fraction, and the exponent of the smallest normal number.
template <class T>
struct Layout;
template <>
struct Layout<sdk::Half> {
  static constexpr int fraction_bits = 10, lowest_exponent = -14;
};
template <>
struct Layout<sdk::BFloat16> {
  static constexpr int fraction_bits = 7, lowest_exponent = -126;
};
template <class T>
inline constexpr bool is_narrow = std::is_same_v<T, sdk::Half> || std::is_same_v<T, sdk::BFloat16>;
template <class T>
constexpr unsigned infinity_bits = 0x8000u - (1u << Layout<T>::fraction_bits);

/// The value of a 16-bit float.
template <class T>
double value_of(T x) {
  constexpr int fraction_bits = Layout<T>::fraction_bits;
  const unsigned magnitude = x.bits & 0x7fffu;
  const unsigned exponent = magnitude >> fraction_bits, fraction = magnitude & ((1u << fraction_bits) - 1);
  double value;
  if (magnitude >= infinity_bits<T>) {
    value = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  } else if (exponent == 0) {
    value = std::ldexp(fraction, Layout<T>::lowest_exponent - fraction_bits);
  } else {
    value = std::ldexp(fraction + (1u << fraction_bits), static_cast<int>(exponent) - 1 + Layout<T>::lowest_exponent - fraction_bits);
  }
  return (x.bits & 0x8000u) != 0 ? -value : value;
}

/// The nearest 16-bit float, ties to even; beyond the largest an infinity.
template <class T>
T nearest(double x) {
  constexpr int fraction_bits = Layout<T>::fraction_bits, lowest_exponent = Layout<T>::lowest_exponent;
  const unsigned sign = std::signbit(x) ? 0x8000u : 0;
  unsigned magnitude = 0;
  if (std::isnan(x)) {
    magnitude = infinity_bits<T> | 1u << (fraction_bits - 1);
  } else if (std::isinf(x)) {
    magnitude = infinity_bits<T>;
  } else if (x != 0) {
    const int exponent = std::max(std::ilogb(x), lowest_exponent);
    // In units of the last digit: an integer, which carries into the exponent's bits.
    const double digits = std::nearbyint(std::ldexp(std::abs(x), fraction_bits - exponent));
    const double bits = std::ldexp(exponent - lowest_exponent, fraction_bits) + digits;
    magnitude = bits < infinity_bits<T> ? static_cast<unsigned>(bits) : infinity_bits<T>;
  }
  return {static_cast<std::uint16_t>(sign | magnitude)};
}

/// x as a double that rounds to the same 16-bit float. A 64-bit integer can have more digits than a double: the lowest ones matter only as
/// a sticky bit and are merged into one.
template <class T>
double exact_enough(T x) {
  if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {
    const T rest = x & 4095;
    const bool large = std::abs(static_cast<double>(x)) >= 0x1p53;
    if (large && rest != 0) return static_cast<double>((x - rest) | 2048);
  }
  return static_cast<double>(x);
}

/// x as a U. Float to integer truncates toward zero and saturates, NaN becomes 0; integer to a narrower integer keeps the low bits;
/// anything to bool is x != 0; the rest rounds to nearest, once.
template <class U, class T>
U convert(T x) {
  if constexpr (is_narrow<T>) {
    return convert<U>(value_of(x));
  } else if constexpr (is_narrow<U>) {
    return nearest<U>(exact_enough(x));
  } else if constexpr (std::is_same_v<U, bool>) {
    return x != T(0);
  } else if constexpr (std::is_floating_point_v<T> && std::is_integral_v<U>) {
    const double above = std::ldexp(1.0, std::numeric_limits<U>::digits);  // max() + 1: exact, which max() itself need not be in f64
    const double lowest = std::is_signed_v<U> ? -above : 0.0;
    if (std::isnan(x)) return 0;
    if (x >= above) return std::numeric_limits<U>::max();
    if (x <= lowest) return std::numeric_limits<U>::min();
    return static_cast<U>(x);
  } else {
    return static_cast<U>(x);
  }
}

template <class T, class U>
void convert_all(const sdk::Call& call) {
  const T* x = call.input<T>(0);
  U* y = call.output<U>(0);
  sdk::for_each_element<1>(call, [&](std::int64_t i, const auto& at) { y[i] = convert<U>(x[at[0]]); });
}

/// y = (to) x
///
/// Dtypes      from and to every real one.
/// Attributes  to: the dtype of y.
template <class T>
void cast(const sdk::Call& call) {
  sdk::with_type<TENON_MOVABLE_TYPES>(call.attr<tenon_attributes_cast>().to, [&]<class U>() { convert_all<T, U>(call); });
}

}  // namespace
TENON_KERNEL_WITH(cast, (sdk::Traits{.strided = true, .in_place = true, .elementwise = true}), TENON_MOVABLE_TYPES)
}  // namespace tenon::reference
