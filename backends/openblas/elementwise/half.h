// SPDX-License-Identifier: Apache-2.0
// half.h - conversions of f16 and bf16, written without branches so that the compiler vectorises loops over them.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include <tenon/sdk/kernel.h>

namespace tenon::openblas {

template <class T>
inline constexpr bool is_narrow = std::is_same_v<T, sdk::Half> || std::is_same_v<T, sdk::BFloat16>;

inline float to_float(sdk::BFloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

/// An addition moves the exponent's bias. It gives subnormal numbers a leading digit that they do not have; a subtraction removes it.
/// Source  Giesen: Half to float done quick (2012).
inline float to_float(sdk::Half x) {
  const std::uint32_t shifted = static_cast<std::uint32_t>(x.bits & 0x7fffu) << 13;
  const std::uint32_t exponent = shifted & 0x0f800000u;
  const std::uint32_t normal = shifted + (112u << 23);
  const std::uint32_t special = normal + (112u << 23);  // infinities and NaN
  const float subnormal = std::bit_cast<float>(normal + (1u << 23)) - std::bit_cast<float>(113u << 23);
  const std::uint32_t finite = exponent == 0 ? std::bit_cast<std::uint32_t>(subnormal) : normal;
  const std::uint32_t bits = exponent == 0x0f800000u ? special : finite;
  return std::bit_cast<float>(bits | static_cast<std::uint32_t>(x.bits & 0x8000u) << 16);
}

/// Rounds to nearest, ties to even: adds half of the last kept digit, minus one unit if that digit is even.
template <class Narrow>
Narrow from_float(float x) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t magnitude = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
  std::uint32_t result = 0;
  if constexpr (std::is_same_v<Narrow, sdk::BFloat16>) {
    const std::uint32_t rounded = (magnitude + 0x7fffu + (magnitude >> 16 & 1u)) >> 16;
    result = magnitude > 0x7f800000u ? 0x7fc0u : rounded;
  } else {
    const std::uint32_t rounded = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    // Below 2^-14: adding 1/2 aligns the last digit of a subnormal f16 with the last digit of the f32, and rounds to it.
    const std::uint32_t subnormal =
        std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
    const std::uint32_t finite = magnitude < (113u << 23) ? subnormal : rounded;
    const std::uint32_t large = magnitude > 0x7f800000u ? 0x7e00u : 0x7c00u;
    result = magnitude >= (143u << 23) ? large : finite;
  }
  return {static_cast<std::uint16_t>(result | sign)};
}

/// x as a float that may be rounded again: toward zero, with an odd last bit where digits were lost, so that no false tie appears.
/// Source  Boldo, Melquiond: Emulation of FMA and correctly rounded sums (2008).
inline float rounded_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  const bool inexact = static_cast<double>(nearest) != x && x == x;
  const bool away = std::abs(static_cast<double>(nearest)) > std::abs(x);
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest) - (inexact && away ? 1u : 0u);
  return std::bit_cast<float>(bits | (inexact ? 1u : 0u));
}

/// The nearest f16 or bf16 to a number of any other type, rounded once.
template <class Narrow, class From>
Narrow narrowed(From x) {
  if constexpr (std::is_same_v<From, float> || (std::is_integral_v<From> && sizeof(From) <= 2)) {
    return from_float<Narrow>(static_cast<float>(x));  // exact
  } else if constexpr (std::is_integral_v<From> && sizeof(From) == 8) {
    // A 64-bit integer has more digits than a double: the last ones are merged into a sticky bit.
    const From rest = x & 4095;
    const bool large = std::abs(static_cast<double>(x)) >= 0x1p53;
    return from_float<Narrow>(rounded_to_odd(static_cast<double>(large && rest != 0 ? ((x - rest) | 2048) : x)));
  } else {
    return from_float<Narrow>(rounded_to_odd(static_cast<double>(x)));
  }
}

/// An element as the type of a sum.
template <class T>
auto number_of(T x) {
  if constexpr (is_narrow<T>) {
    return to_float(x);
  } else {
    return x;
  }
}

/// A sum as the type of a result.
template <class T, class Sum>
T rounded_to(Sum x) {
  if constexpr (is_narrow<T>) {
    return from_float<T>(x);
  } else {
    return x;
  }
}

}  // namespace tenon::openblas
