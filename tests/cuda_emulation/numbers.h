// SPDX-License-Identifier: Apache-2.0
// numbers.h - elements of NVIDIA's types as f64, for emulated vendor libraries: widened exactly, rounded once.
#pragma once

#include <library_types.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace tenon::emulation {

inline double from_half(std::uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction != 0 ? std::nan("") : INFINITY)
                      : exponent == 0 ? std::ldexp(fraction, -24)
                                      : std::ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}
inline double from_bfloat(std::uint16_t bits) {
  return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
}
/// E4M3 has no infinities; its NaN are the codes with all other bits set. E5M2 is as f16, with 2 fraction bits.
///
/// Source  OCP 8-bit Floating Point Specification (OFP8), 1.0
inline double from_e4m3(std::uint8_t code) {
  const int exponent = code >> 3 & 15, fraction = code & 7;
  const double size = (code & 0x7f) == 0x7f ? std::nan("")
                      : exponent == 0       ? std::ldexp(fraction, -9)
                                            : std::ldexp(8 + fraction, exponent - 10);
  return (code & 0x80) != 0 ? -size : size;
}
inline double from_e5m2(std::uint8_t code) {
  return from_half(static_cast<std::uint16_t>(code << 8));
}
/// x rounded to `bits` fraction bits, with 2^lowest the smallest normal number: to nearest even.
inline double rounded(double x, int bits, int lowest) {
  if (x == 0 || !std::isfinite(x)) return x;
  const int exponent = std::max(std::ilogb(x), lowest);
  return std::ldexp(std::nearbyint(std::ldexp(x, bits - exponent)), exponent - bits);
}
inline std::uint16_t to_half(double x) {
  const double y = rounded(x, 10, -14);
  const std::uint16_t sign = std::signbit(y) ? 0x8000 : 0;
  const double size = std::fabs(y);
  if (std::isnan(y)) return 0x7e00;
  if (size >= 65536) return sign | 0x7c00;
  if (size < std::ldexp(1.0, -14)) return static_cast<std::uint16_t>(sign | static_cast<int>(std::ldexp(size, 24)));
  const int exponent = std::ilogb(size);
  return static_cast<std::uint16_t>(sign | (exponent + 15) << 10 | (static_cast<int>(std::ldexp(size, 10 - exponent)) & 1023));
}
inline std::uint16_t to_bfloat(double x) {
  if (std::isnan(x)) return 0x7fc0;
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(rounded(x, 7, -126))) >> 16);
}

inline double load(cudaDataType type, const void* data, std::int64_t i) {
  switch (type) {
    case CUDA_R_8F_E4M3:
      return from_e4m3(static_cast<const std::uint8_t*>(data)[i]);
    case CUDA_R_8F_E5M2:
      return from_e5m2(static_cast<const std::uint8_t*>(data)[i]);
    case CUDA_R_16F:
      return from_half(static_cast<const std::uint16_t*>(data)[i]);
    case CUDA_R_16BF:
      return from_bfloat(static_cast<const std::uint16_t*>(data)[i]);
    case CUDA_R_32F:
      return static_cast<double>(static_cast<const float*>(data)[i]);
    default:
      return static_cast<const double*>(data)[i];
  }
}
inline void store(cudaDataType type, void* data, std::int64_t i, double x) {
  switch (type) {
    case CUDA_R_16F:
      static_cast<std::uint16_t*>(data)[i] = to_half(x);
      break;
    case CUDA_R_16BF:
      static_cast<std::uint16_t*>(data)[i] = to_bfloat(x);
      break;
    case CUDA_R_32F:
      static_cast<float*>(data)[i] = static_cast<float>(x);
      break;
    default:
      static_cast<double*>(data)[i] = x;
  }
}

}  // namespace tenon::emulation
