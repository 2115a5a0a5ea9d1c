// SPDX-License-Identifier: Apache-2.0
#include "fma.h"

#ifdef __SIZEOF_INT128__  // Visual Studio has neither this type nor the need: its std::fma is exact

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <utility>

namespace tenon::sdk {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr int mantissa_bits = 53, top = 125;  ///< the highest bit of a normalised term: the sum of two fits 127 bits

/// A number greater than 0: bits * 2^exponent.
struct Term {
  Wide bits;
  int exponent;
};

int highest_bit(Wide bits) {
  const auto upper = static_cast<std::uint64_t>(bits >> 64);
  return upper != 0 ? 127 - std::countl_zero(upper) : 63 - std::countl_zero(static_cast<std::uint64_t>(bits));
}

/// The magnitude of a finite number that is not 0.
Term term_of(double x) {
  const auto bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> 52 & 0x7ff);
  const std::uint64_t fraction = bits & 0x000fffffffffffffu;
  return exponent == 0 ? Term{fraction, -1074} : Term{fraction | 0x0010000000000000u, exponent - 1075};
}

Term normalised(Term term) {
  const int shift = top - highest_bit(term.bits);
  return {term.bits << shift, term.exponent - shift};
}

/// Shifted to the right; the lowest bit also stands for all bits below it.
Wide shifted(Wide bits, int shift) {
  if (shift == 0) return bits;
  if (shift > top) return 1;
  const Wide rest = bits & ((Wide{1} << shift) - 1);
  return bits >> shift | static_cast<Wide>(rest != 0);
}

/// Rounds to nearest, ties to even.
double rounded(Term sum) {
  const int highest = highest_bit(sum.bits);
  const int kept = std::min(mantissa_bits, highest + sum.exponent + 1075);  // fewer for subnormal results
  if (kept < 0) return 0;
  const int shift = highest + 1 - kept;
  if (shift <= 0) return std::ldexp(static_cast<double>(static_cast<std::uint64_t>(sum.bits)), sum.exponent);
  const Wide rest = sum.bits & ((Wide{1} << shift) - 1), half = Wide{1} << (shift - 1);
  auto quotient = static_cast<std::uint64_t>(sum.bits >> shift);
  if (rest > half || (rest == half && (quotient & 1) != 0)) ++quotient;
  return std::ldexp(static_cast<double>(quotient), sum.exponent + shift);
}

}  // namespace

double fma_by_integers(double x, double y, double z) {
  if (!std::isfinite(x) || !std::isfinite(y) || x == 0 || y == 0) return x * y + z;
  if (!std::isfinite(z)) return z;  // also if x * y is too large
  if (z == 0) return x * y;         // x * y + z would lose the sign of a product that is rounded to 0
  const Term a = term_of(x), b = term_of(y);
  Term product = normalised({a.bits * b.bits, a.exponent + b.exponent}), added = normalised(term_of(z));
  const bool product_is_negative = std::signbit(x) != std::signbit(y);
  bool is_negative = product_is_negative;
  if (added.exponent > product.exponent || (added.exponent == product.exponent && added.bits > product.bits)) {
    std::swap(product, added);
    is_negative = std::signbit(z);
  }
  // At least 20 bits of each are 0, so that what a shift loses is never reached by the difference of two nearly equal terms.
  const Wide smaller = shifted(added.bits, product.exponent - added.exponent);
  const bool adds = product_is_negative == std::signbit(z);
  const Term sum{adds ? product.bits + smaller : product.bits - smaller, product.exponent};
  if (sum.bits == 0) return 0;
  const double magnitude = rounded(sum);
  return is_negative ? -magnitude : magnitude;
}

float fma_by_integers(float x, float y, float z) {
  const double product = static_cast<double>(x) * y;  // exact
  const double sum = product + z;
  // What the sum lost (Knuth, two-sum); if there is anything, an odd last bit keeps the second rounding from being a tie.
  const double from_z = sum - product;
  const double lost = (product - (sum - from_z)) + (z - from_z);
  auto bits = std::bit_cast<std::uint64_t>(sum);
  if (std::isfinite(sum) && lost != 0 && (bits & 1) == 0) bits += (lost > 0) == (sum > 0) ? 1u : ~std::uint64_t{0};
  return static_cast<float>(std::bit_cast<double>(bits));
}

}  // namespace tenon::sdk

#endif
