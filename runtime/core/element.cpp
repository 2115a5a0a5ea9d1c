// SPDX-License-Identifier: Apache-2.0
// core/element.cpp - reading, writing and printing one element.
#include "core/element.h"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>

#include <tenon/error.h>

namespace tenon {
namespace {

template <class T>
T read(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void write(void* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

float f32_of_f16(std::uint16_t bits) {
  const float sign = (bits & 0x8000u) ? -1.0f : 1.0f;
  const int exponent = (bits >> 10) & 0x1f;
  const auto mantissa = static_cast<float>(bits & 0x3ffu);
  if (exponent == 0x1f) return mantissa != 0 ? std::numeric_limits<float>::quiet_NaN() : sign * std::numeric_limits<float>::infinity();
  if (exponent == 0) return sign * mantissa * 0x1p-24f;
  return sign * std::ldexp(1.0f + mantissa * 0x1p-10f, exponent - 15);
}

/// The nearest half float: its distance from zero in units of the last place, rounded, is the bit pattern itself.
std::uint16_t f16_of(double value) {
  const std::uint16_t sign = std::signbit(value) ? 0x8000u : 0;
  const double magnitude = std::abs(value);
  if (std::isnan(value)) return 0x7e00u;
  if (magnitude >= 65520) return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds to 2^16, which overflows
  if (magnitude < 0x1p-14) return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(std::nearbyint(magnitude * 0x1p24)));
  const int exponent = std::ilogb(magnitude);
  const auto mantissa = static_cast<std::uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));  // 1024 .. 2048
  return static_cast<std::uint16_t>(sign | ((static_cast<std::uint32_t>(exponent + 14) << 10) + mantissa));
}

std::uint16_t bf16_of(double value) {
  if (std::isnan(value)) return 0x7fc0u;
  // Rounding to odd first prevents double rounding: an inexact f32 has its last bit set.
  auto narrow = static_cast<float>(value);
  auto bits = read<std::uint32_t>(&narrow);
  if (std::isfinite(narrow) && static_cast<double>(narrow) != value) {
    if (std::abs(static_cast<double>(narrow)) > std::abs(value)) --bits;
    bits |= 1u;
  }
  if (std::isfinite(narrow)) bits += 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>(bits >> 16);
}

template <class T>
void write_integer(void* at, DType dtype, double value, const char* what) {
  // 2^digits is exact as a double ; max() is not.
  const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits);
  const double lowest = std::numeric_limits<T>::is_signed ? -beyond : 0.0;
  if (!(value >= lowest && value < beyond) || value != std::trunc(value)) {
    char text[64];
    std::snprintf(text, sizeof text, "%.17g", value);
    throw Error(std::string(what) + ": expected a value that fits " + name_of(dtype) + ", got " + text);
  }
  write(at, static_cast<T>(value));
}

std::string text_of(double value, int digits) {
  if (std::isnan(value)) return "nan";  // its sign means nothing
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string complex_text(double real, double imaginary, int digits) {
  const std::string second = text_of(imaginary, digits);
  return text_of(real, digits) + (second[0] == '-' ? "" : "+") + second + 'i';
}

/// A double that rounds to any narrower float as the integer does: what it cannot hold leaves its mark in the last bit.
double rounds_as(std::uint64_t magnitude) {
  if (magnitude >> 53 == 0) return static_cast<double>(magnitude);
  return std::ldexp(static_cast<double>((magnitude >> 11) | ((magnitude & 0x7ff) != 0 ? 1u : 0u)), 11);
}

template <class From>
void convert_integer(void* to, DType dtype, From value, const char* what) {
  if (visit_integer(dtype, [&](auto zero) { write(to, static_cast<decltype(zero)>(value)); })) return;
  if (dtype == DType::boolean) return write(to, static_cast<std::uint8_t>(value != 0));
  if (dtype == DType::f64) return write(to, static_cast<double>(value));
  const bool negative = value < 0;
  const auto bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
  const double magnitude = rounds_as(negative ? 0 - bits : bits);
  write_element(to, dtype, negative ? -magnitude : magnitude, what);
}

void convert_float(void* to, DType dtype, double value, const char* what) {
  const auto saturate = [&](auto zero) {
    using T = decltype(zero);
    const double beyond = std::ldexp(1.0, std::numeric_limits<T>::digits), whole = std::trunc(value);
    if (std::isnan(value)) return write(to, T{});
    if (whole >= beyond) return write(to, std::numeric_limits<T>::max());
    write(to, whole < static_cast<double>(std::numeric_limits<T>::min()) ? std::numeric_limits<T>::min() : static_cast<T>(whole));
  };
  if (visit_integer(dtype, saturate)) return;
  if (dtype == DType::boolean) return write(to, static_cast<std::uint8_t>(value != 0));
  write_element(to, dtype, value, what);
}

}  // namespace

void convert_elements(void* to, DType to_dtype, const void* from, DType from_dtype, std::int64_t count, const char* what) {
  for (const DType dtype : {to_dtype, from_dtype}) {
    if (dtype == DType::c64 || dtype == DType::c128 || dtype == DType::none)
      throw Error(std::string(what) + ": expected to convert between real dtypes, got " + name_of(from_dtype) + " to " + name_of(to_dtype));
  }
  auto* target = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  for (std::int64_t i = 0; i < count; ++i, target += size_of(to_dtype), source += size_of(from_dtype)) {
    if (visit_integer(from_dtype, [&](auto zero) { convert_integer(target, to_dtype, read<decltype(zero)>(source), what); })) continue;
    convert_float(target, to_dtype, element_as_double(source, from_dtype, what), what);
  }
}

double element_as_double(const void* at, DType dtype, const char* what) {
  switch (dtype) {
    case DType::f16:
      return static_cast<double>(f32_of_f16(read<std::uint16_t>(at)));
    case DType::bf16: {
      const std::uint32_t bits = static_cast<std::uint32_t>(read<std::uint16_t>(at)) << 16;
      return static_cast<double>(read<float>(&bits));
    }
    case DType::f32:
      return static_cast<double>(read<float>(at));
    case DType::f64:
      return read<double>(at);
    case DType::boolean:
      return read<std::uint8_t>(at);
    default:
      break;
  }
  double value = 0;
  if (visit_integer(dtype, [&](auto zero) { value = static_cast<double>(read<decltype(zero)>(at)); })) return value;
  throw Error(std::string(what) + ": a " + name_of(dtype) + " value is not a real number");
}

void write_element(void* at, DType dtype, double value, const char* what) {
  switch (dtype) {
    case DType::f16:
      return write(at, f16_of(value));
    case DType::bf16:
      return write(at, bf16_of(value));
    case DType::f32:
      return write(at, static_cast<float>(value));
    case DType::f64:
      return write(at, value);
    case DType::c64:
      write(static_cast<char*>(at) + sizeof(float), 0.0f);
      return write(at, static_cast<float>(value));
    case DType::c128:
      write(static_cast<char*>(at) + sizeof(double), 0.0);
      return write(at, value);
    case DType::boolean:
      if (value != 0 && value != 1) throw Error(std::string(what) + ": expected 0 or 1 for bool, got " + text_of(value, 17));
      return write(at, static_cast<std::uint8_t>(value));
    default:
      break;
  }
  if (visit_integer(dtype, [&](auto zero) { write_integer<decltype(zero)>(at, dtype, value, what); })) return;
  throw Error(std::string(what) + ": expected a dtype, got none");
}

std::string element_text(const void* at, DType dtype) {
  switch (dtype) {
    case DType::boolean:
      return read<std::uint8_t>(at) != 0 ? "true" : "false";
    case DType::i64:
      return std::to_string(read<std::int64_t>(at));
    case DType::u64:
      return std::to_string(read<std::uint64_t>(at));
    case DType::c64:
      return complex_text(static_cast<double>(read<float>(at)), static_cast<double>(read<float>(static_cast<const char*>(at) + 4)), 6);
    case DType::c128:
      return complex_text(read<double>(at), read<double>(static_cast<const char*>(at) + 8), 8);
    case DType::f64:
      return text_of(read<double>(at), 8);
    case DType::f16:
    case DType::bf16:
      return text_of(element_as_double(at, dtype, "Tensor::text"), 4);
    case DType::f32:
      return text_of(static_cast<double>(read<float>(at)), 6);
    default:  // integers of up to 32 bits are exact as doubles
      return text_of(element_as_double(at, dtype, "Tensor::text"), 10);
  }
}

}  // namespace tenon
