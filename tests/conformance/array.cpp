// SPDX-License-Identifier: Apache-2.0
#include "array.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include <tenon/sdk/kernel.h>

#include "text/counted.h"

namespace tenon::conformance {
namespace {

/// A floating-point format: digits and exponents (IEEE 754's p, emin and emax).
struct Format {
  int digits, lowest_exponent, highest_exponent;
};
constexpr Format format_of(tenon_dtype dtype) {
  switch (dtype) {
    case TENON_DTYPE_F16:
      return {11, -14, 15};
    case TENON_DTYPE_BF16:
      return {8, -126, 127};
    case TENON_DTYPE_F32:
      return {24, -126, 127};
    default:
      return {53, -1022, 1023};
  }
}

/// 2^exponent, and the exponent of a number that is not 0 (for a denormal: one that is too low), from their bits: std::ldexp and std::ilogb
/// took a fifth of a run.
double power_of_two(int exponent) {
  const std::uint64_t bits = static_cast<std::uint64_t>(exponent + 1023) << 52;
  double value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}
int exponent_of(double value) {
  std::uint64_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<int>((bits >> 52) & 0x7ff) - 1023;
}

/// Rounds to the nearest number of the dtype, ties to even; what is too large becomes an infinity.
double rounded(double value, tenon_dtype dtype) {
  if (value == 0 || !std::isfinite(value)) return value;
  if (dtype != TENON_DTYPE_F16 && dtype != TENON_DTYPE_BF16) return dtype == TENON_DTYPE_F32 ? static_cast<float>(value) : value;
  const Format format = format_of(dtype);
  const int last_digit = std::max(exponent_of(value), format.lowest_exponent) - format.digits + 1;
  const double result = std::nearbyint(value * power_of_two(-last_digit)) * power_of_two(last_digit);
  return std::fabs(result) > largest(dtype) ? std::copysign(std::numeric_limits<double>::infinity(), value) : result;
}

/// f16 and bf16: sign, exponent and fraction, encoded and decoded by arithmetic.
template <tenon_dtype dtype>
struct Narrow {
  std::uint16_t bits = 0;

  static constexpr int fraction_bits = format_of(dtype).digits - 1;
  static constexpr std::uint16_t infinity = static_cast<std::uint16_t>(0x8000 - (1 << fraction_bits));

  Narrow() = default;
  explicit Narrow(double value) {
    const double magnitude = std::fabs(rounded(value, dtype));
    if (std::isnan(value)) {
      bits = static_cast<std::uint16_t>(infinity | 1 << (fraction_bits - 1));
    } else if (std::isinf(magnitude)) {
      bits = infinity;
    } else if (magnitude != 0) {
      // A subnormal has the exponent field 0 and lacks the leading digit; one more in the field supplies it.
      const int exponent = std::max(exponent_of(magnitude), format_of(dtype).lowest_exponent);
      const auto digits = static_cast<int>(magnitude * power_of_two(fraction_bits - exponent));
      bits = static_cast<std::uint16_t>(((exponent - format_of(dtype).lowest_exponent) << fraction_bits) + digits);
    }
    if (std::signbit(value)) bits = static_cast<std::uint16_t>(bits | 0x8000);
  }
  explicit operator double() const {
    const int field = (bits & 0x7fff) >> fraction_bits, fraction = bits & ((1 << fraction_bits) - 1);
    double magnitude = fraction * power_of_two(format_of(dtype).lowest_exponent - fraction_bits);
    if (field > 0)
      magnitude = (fraction + (1 << fraction_bits)) * power_of_two(field - 1 + format_of(dtype).lowest_exponent - fraction_bits);
    if ((bits & 0x7fff) >= infinity) {
      magnitude = fraction == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    }
    return (bits & 0x8000) != 0 ? -magnitude : magnitude;
  }
};

/// Calls f(T{}) for the dtypes that ops work on.
template <class F>
auto dispatch(tenon_dtype dtype, F&& f) {
  switch (dtype) {
    case TENON_DTYPE_F16:
      return f(Narrow<TENON_DTYPE_F16>{});
    case TENON_DTYPE_BF16:
      return f(Narrow<TENON_DTYPE_BF16>{});
    case TENON_DTYPE_F32:
      return f(float{});
    case TENON_DTYPE_I8:
      return f(std::int8_t{});
    case TENON_DTYPE_I16:
      return f(std::int16_t{});
    case TENON_DTYPE_I32:
      return f(std::int32_t{});
    case TENON_DTYPE_I64:
      return f(std::int64_t{});
    case TENON_DTYPE_U8:
    case TENON_DTYPE_BOOL:
      return f(std::uint8_t{});
    case TENON_DTYPE_U16:
      return f(std::uint16_t{});
    case TENON_DTYPE_U32:
      return f(std::uint32_t{});
    case TENON_DTYPE_U64:
      return f(std::uint64_t{});
    default:
      return f(double{});
  }
}

}  // namespace

std::int64_t count_of(const Dims& shape) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  std::int64_t count = 1;
  for (const std::int64_t size : shape) {
    if (__builtin_mul_overflow(count, size, &count)) return std::numeric_limits<std::int64_t>::max();
  }
  return count;
}

std::string str(const Dims& shape) {
  return fmt::format("({})", fmt::join(shape, ","));
}

Dims dense_strides(const Dims& shape) {
  Dims strides(shape.size());
  std::int64_t stride = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

std::string index_of(std::int64_t flat, const Dims& shape) {
  Dims index(shape.size());
  for (std::size_t d = shape.size(); d-- > 0;) {
    index[d] = flat % shape[d];
    flat /= shape[d];
  }
  return str(index);
}

Dims broadcast(const Dims& a, const Dims& b) {
  const Dims& longer = a.size() >= b.size() ? a : b;
  const Dims& shorter = a.size() >= b.size() ? b : a;
  Dims result = longer;
  const std::size_t added = longer.size() - shorter.size();
  for (std::size_t d = 0; d < shorter.size(); ++d) {
    if (result[added + d] == 1) result[added + d] = shorter[d];
  }
  return result;
}

bool is_float(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16 || dtype == TENON_DTYPE_F32 || dtype == TENON_DTYPE_F64;
}
bool is_narrow(tenon_dtype dtype) {
  return dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16;
}
double epsilon(tenon_dtype dtype) {
  return std::ldexp(1.0, 1 - format_of(dtype).digits);
}
double smallest(tenon_dtype dtype) {
  return std::ldexp(1.0, format_of(dtype).lowest_exponent - format_of(dtype).digits + 1);
}
double smallest_normal(tenon_dtype dtype) {
  return std::ldexp(1.0, format_of(dtype).lowest_exponent);
}
double largest(tenon_dtype dtype) {
  return std::ldexp(2.0 - epsilon(dtype), format_of(dtype).highest_exponent);
}

std::uint64_t Random::bits() {
  std::uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}
double Random::uniform(double low, double high) {
  return low + (high - low) * (static_cast<double>(bits() >> 11) * 0x1p-53);
}
std::int64_t Random::integer(std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(bits() % static_cast<std::uint64_t>(high - low));
}

std::uint64_t seed_for(std::uint64_t seed, const std::string& name) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return Random(hash ^ (seed * 0x9e3779b97f4a7c15u)).bits();
}

Array::Array(tenon_dtype dtype, Dims shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      count_(count_of(shape_)),
      element_size_(sdk::size_of(dtype)),
      bytes_(static_cast<std::size_t>(count_ * element_size_)) {}

Array::Array(tenon_dtype dtype, Dims shape, const std::vector<double>& values) : Array(dtype, std::move(shape)) {
  for (std::int64_t i = 0; i < count_; ++i) set(i, values[static_cast<std::size_t>(i)]);
}

double Array::at(std::int64_t i) const {
  return dispatch(dtype_, [&](auto zero) { return static_cast<double>(get<decltype(zero)>(i)); });
}

namespace {

/// Converts as the ops do: a value that does not fit an integer type keeps its low bits, as from a wider integer; NaN becomes 0.
template <class T>
T converted(double value) {
  if constexpr (!std::is_integral_v<T>) {
    return static_cast<T>(value);
  } else {
    constexpr double limit = 9223372036854775808.0;  // 2^63
    if (!(value > -limit)) return static_cast<T>(std::isnan(value) ? 0 : std::numeric_limits<std::int64_t>::min());
    if (value < limit) return static_cast<T>(static_cast<std::int64_t>(value));
    return static_cast<T>(value < 2 * limit ? static_cast<std::uint64_t>(value) : std::numeric_limits<std::uint64_t>::max());
  }
}

}  // namespace

void Array::set(std::int64_t i, double value) {
  if (dtype_ == TENON_DTYPE_BOOL) value = value != 0 ? 1 : 0;
  dispatch(dtype_, [&](auto zero) { put(i, converted<decltype(zero)>(value)); });
}

std::string Array::str(std::int64_t i) const {
  if (dtype_ == TENON_DTYPE_F64) return fmt::format("{:.17g}", at(i));
  if (is_float(dtype_)) return fmt::format("{:.9g}", at(i));
  if (dtype_ == TENON_DTYPE_BOOL && get<std::uint8_t>(i) < 2) return at(i) != 0 ? "true" : "false";
  if (dtype_ == TENON_DTYPE_U64) return fmt::format("{}", get<std::uint64_t>(i));
  if (dtype_ == TENON_DTYPE_I64) return fmt::format("{}", get<std::int64_t>(i));
  return fmt::format("{}", at(i));
}

std::string Array::str() const {
  return sdk::name_of(dtype_) + conformance::str(shape_);
}

Array Array::as(tenon_dtype dtype) const {
  if (dtype == dtype_) return *this;
  Array result(dtype, shape_);
  for (std::int64_t i = 0; i < count_; ++i) result.set(i, at(i));
  return result;
}

Wrong difference(const Array& expected, const Array& got, const Bound& bound) {
  if (expected.shape() != got.shape()) return {"expected the shape " + str(expected.shape()) + ", got " + got.str(), {}};
  std::int64_t wrong = 0, first = 0;
  double first_error = 0, first_bound = 0;
  for (std::int64_t i = 0; i < got.count(); ++i) {
    double error = 0, allowed = 0;
    if (!is_float(got.dtype())) {
      const bool same = expected.dtype() == got.dtype()
                            ? std::memcmp(expected.bytes() + i * expected.element_size(), got.bytes() + i * got.element_size(),
                                          static_cast<std::size_t>(got.element_size())) == 0
                            : expected.at(i) == got.at(i);
      if (same) continue;
      error = std::fabs(expected.at(i) - got.at(i));
    } else {
      const double g = got.at(i);
      double w = expected.at(i);
      const double narrow = rounded(w, got.dtype());
      if (std::isinf(narrow)) w = narrow;  // a value that overflows becomes an infinity
      if (std::isnan(w) && std::isnan(g)) continue;
      const bool wrong_zero = bound.signed_zeros && narrow == 0 && g == 0 && std::signbit(narrow) != std::signbit(g);
      if (w == g && !wrong_zero) continue;
      error = std::fabs(w - g);
      if (bound.relative == 0 && bound.absolute == 0) {
        if (narrow == g && !wrong_zero) continue;
      } else if (std::isfinite(w) && std::isfinite(g)) {
        // Rounding to a denormal has an absolute error, whatever the relative bound.
        const double relative = bound.relative + (is_narrow(got.dtype()) ? bound.rounding : 0);
        allowed = bound.absolute + relative * std::fabs(w) + 4 * smallest(got.dtype());
        if (error <= allowed && !wrong_zero) continue;
      }
    }
    if (wrong++ == 0) {
      first = i;
      first_error = error;
      first_bound = allowed;
    }
  }
  if (wrong == 0) return {};
  Wrong found;
  found.facts.element = index_of(first, got.shape());
  found.facts.expected = expected.str(first);
  found.facts.got = got.str(first);
  found.facts.error = fmt::format("{:.3g}", first_error);
  found.facts.bound = fmt::format("{:.3g}", first_bound);
  found.text =
      fmt::format("element {} is wrong: expected {}, got {}; error {}, at most {} allowed; {} of {} wrong", found.facts.element,
                  found.facts.expected, found.facts.got, found.facts.error, found.facts.bound, wrong, counted(got.count(), "element"));
  return found;
}

std::string compare(const Array& expected, const Array& got, const Bound& bound) {
  return difference(expected, got, bound).text;
}

}  // namespace tenon::conformance
