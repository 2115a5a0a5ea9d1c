// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/element.h - single elements of every dtype, for kernels that move and clip them:
// constants, and the list of types.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <tenon/sdk/kernel.h>

/// The types of TENON_DTYPES_MOVE, to register kernels that only move elements.
#define TENON_MOVABLE_TYPES ::tenon::sdk::Half, ::tenon::sdk::BFloat16, TENON_COMPARABLE_TYPES
/// Those of them that C++ compares.
#define TENON_COMPARABLE_TYPES \
  float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t, std::uint64_t, bool

namespace tenon::sdk {

/// function.operator()<T>() for that one of the listed types which has this dtype, such as
/// with_type<float, double>(dtype, [&]<class T>() { ... }). Errors: none has.
template <class T, class... Others, class Function>
auto with_type(tenon_dtype dtype, const Function& function) {
  if (dtype == dtype_of<T>) return function.template operator()<T>();
  if constexpr (sizeof...(Others) > 0) {
    return with_type<Others...>(dtype, function);
  } else {
    throw Error(TENON_INTERNAL, std::string("got ") + name_of(dtype) + ", a dtype that the schema of the op excludes");
  }
}

namespace detail {
/// The bits of the nearest 16-bit float with `fraction_bits` whose smallest normal number is
/// 2^lowest_exponent; ties to even, infinity on overflow.
inline std::uint16_t nearest_16_bits(double value, int fraction_bits, int lowest_exponent) {
  const unsigned sign = std::signbit(value) ? 0x8000u : 0u;
  const unsigned infinity = 0x8000u - (1u << fraction_bits);
  unsigned magnitude = 0;
  if (std::isnan(value)) {
    magnitude = infinity | 1u << (fraction_bits - 1);
  } else if (std::isinf(value)) {
    magnitude = infinity;
  } else if (value != 0) {
    const int exponent = std::ilogb(value) < lowest_exponent ? lowest_exponent : std::ilogb(value);
    // In units of the last digit; a fraction that rounds up carries into the exponent.
    const double digits = std::nearbyint(std::ldexp(std::fabs(value), fraction_bits - exponent));
    const double bits = std::ldexp(exponent - lowest_exponent, fraction_bits) + digits;
    magnitude = bits < infinity ? static_cast<unsigned>(bits) : infinity;
  }
  return static_cast<std::uint16_t>(sign | magnitude);
}
}  // namespace detail

/// An attribute as an element of T: the nearest number of a floating type; integers and bool
/// represent it exactly, as the core checks.
template <class T>
T element_of(double value) {
  if constexpr (std::is_same_v<T, Half>) {
    return {detail::nearest_16_bits(value, 10, -14)};
  } else if constexpr (std::is_same_v<T, BFloat16>) {
    return {detail::nearest_16_bits(value, 7, -126)};
  } else if constexpr (std::is_same_v<T, bool>) {
    return value != 0;
  } else {
    return static_cast<T>(value);
  }
}

/// The bounds of Clip for elements of T.
template <class T>
struct Bounds {
  T low, high;
};

/// The bounds of Clip as numbers of T. For integers a fractional bound is rounded inwards, low up
/// and high down, and one outside the range of T becomes the nearest end of it.
template <class T>
Bounds<T> bounds_of(const tenon_attributes_clip& attributes) {
  if constexpr (std::is_integral_v<T>) {
    const auto within = [](double value) {
      const double above = std::ldexp(1.0, std::numeric_limits<T>::digits);
      if (value >= above) return std::numeric_limits<T>::max();
      if (value <= -above) return std::numeric_limits<T>::lowest();
      return static_cast<T>(value);
    };
    return {within(std::ceil(attributes.low)), within(std::floor(attributes.high))};
  } else {
    return {static_cast<T>(attributes.low), static_cast<T>(attributes.high)};
  }
}

}  // namespace tenon::sdk
