// SPDX-License-Identifier: Apache-2.0
// wide_math.h - functions of f32 computed in f64 lanes, for one instruction set. Relative errors are below 1e-8, so a result rounded to f32
// is the nearest number or one of its neighbours: no cancellation, no loss of digits near 0 or near the smallest numbers.
//
// Reductions  Muller: Elementary Functions (2016), chapter 11: e^x by n log 2, log x by the exponent, sin x by n pi/2 in two parts.
// Polynomials are fitted by interpolation at Chebyshev nodes in 50 digits (mpmath's chebyfit); each states its error. NaN propagates.
#if defined(TENON_OPENBLAS_WIDE_MATH_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_WIDE_MATH_H
#undef TENON_OPENBLAS_WIDE_MATH_H
#else
#define TENON_OPENBLAS_WIDE_MATH_H
#endif

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

using WideDouble = Wide<double>;
using DoubleVector = hn::Vec<WideDouble>;

/// v rounded to f32, infinite beyond its range, for which the portable target's DemoteTo has the largest finite number.
HWY_INLINE hn::Vec<hn::Rebind<float, WideDouble>> rounded_to_f32(WideDouble d, DoubleVector v) {
  const hn::Rebind<float, WideDouble> narrow;
#if HWY_TARGET == HWY_EMU128 || HWY_TARGET == HWY_SCALAR
  HWY_ALIGN double from[HWY_MAX_BYTES / sizeof(double)];
  HWY_ALIGN float to[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(v, d, from);
  for (std::int64_t i = 0; i < lanes(d); ++i) to[i] = static_cast<float>(from[i]);
  return hn::Load(narrow, to);
#else
  (void)d;
  return hn::DemoteTo(narrow, v);
#endif
}

/// y[i] = f(x[i]), where f computes in f64; y may be x.
template <class F>
HWY_INLINE void map_wide(const F& f, const float* x, float* y, std::int64_t n) {
  const WideDouble d;
  const hn::Rebind<float, WideDouble> narrow;
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    hn::StoreU(rounded_to_f32(d, f(d, hn::PromoteTo(d, hn::LoadU(narrow, x + i)))), narrow, y + i);
  }
  if (i < n) store_first(rounded_to_f32(d, f(d, hn::PromoteTo(d, load_first(narrow, x + i, n - i)))), narrow, y + i, n - i);
}

/// y[i] = f(x[i]) for f64, one by one: f has an overload for a number.
template <class F>
HWY_INLINE void map_wide(const F& f, const double* x, double* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
}
/// map_wide() for a function object without state, as a function for TENON_DISPATCH.
template <class F, class T>
void map_wide_all(const T* x, T* y, std::int64_t n) {
  map_wide(F{}, x, y, n);
}

/// Bounds that propagate NaN.
HWY_INLINE DoubleVector at_least(WideDouble d, DoubleVector x, double low) {
  return hn::IfThenElse(hn::Lt(x, hn::Set(d, low)), hn::Set(d, low), x);
}
HWY_INLINE DoubleVector at_most(WideDouble d, DoubleVector x, double high) {
  return hn::IfThenElse(hn::Gt(x, hn::Set(d, high)), hn::Set(d, high), x);
}

/// c[0] + c[1] x + ..., by Horner's rule.
template <std::size_t n>
HWY_INLINE DoubleVector polynomial(WideDouble d, DoubleVector x, const double (&c)[n]) {
  DoubleVector y = hn::Set(d, c[n - 1]);
  for (std::size_t i = n - 1; i-- > 0;) y = hn::MulAdd(y, x, hn::Set(d, c[i]));
  return y;
}

constexpr double log_2 = 0.6931471805599453;
// 1.5 * 2^52: adding it rounds to an integer, which is then in the lowest bits.
constexpr double to_whole = 6755399441055744.0;
constexpr std::int64_t to_whole_bits = 0x4338000000000000;
/// Beyond +-far, exponentials are 0 or infinite in f32.
constexpr double far = 200;

/// e^x = scale (1 + rest) with |rest| < 0.42; |x| <= far.
struct SplitExp {
  DoubleVector scale, rest;
};
HWY_INLINE SplitExp split_exp(WideDouble d, DoubleVector x) {
  // (e^r - 1) / r on [-log(2)/2, log(2)/2], error 2.5e-10
  constexpr double series[] = {1.0,
                               0.5000000047221047,
                               0.16666666719112208,
                               0.04166635243824799,
                               0.008333298432837545,
                               0.001394114659780266,
                               0.00019899316337192174};
  const hn::RebindToSigned<WideDouble> bits;
  const DoubleVector shifted = hn::MulAdd(x, hn::Set(d, 1.4426950408889634), hn::Set(d, to_whole));
  const DoubleVector n = hn::Sub(shifted, hn::Set(d, to_whole));
  const DoubleVector r = hn::NegMulAdd(n, hn::Set(d, log_2), x);
  const auto exponent = hn::Add(hn::BitCast(bits, shifted), hn::Set(bits, 1023));
  return {hn::BitCast(d, hn::ShiftLeft<52>(exponent)), hn::Mul(r, polynomial(d, r, series))};
}

/// e^x; |x| <= far.
HWY_INLINE DoubleVector exp_within(WideDouble d, DoubleVector x) {
  const SplitExp e = split_exp(d, x);
  return hn::MulAdd(e.rest, e.scale, e.scale);
}
/// e^x for all x.
HWY_INLINE DoubleVector exp_wide(WideDouble d, DoubleVector x) {
  return exp_within(d, at_most(d, at_least(d, x, -far), far));
}

/// e^x - 1, with the sign of x, also for -0.
HWY_INLINE DoubleVector expm1_wide(WideDouble d, DoubleVector x) {
  const SplitExp e = split_exp(d, at_most(d, at_least(d, x, -far), far));
  return hn::CopySign(hn::MulAdd(e.rest, e.scale, hn::Sub(e.scale, hn::Set(d, 1))), x);
}

/// log m = 2 s + s^3 (2/3 + 2/5 s^2 + ...) with s = (m - 1) / (m + 1).
template <std::size_t n>
HWY_INLINE DoubleVector log_series(WideDouble d, DoubleVector s, const double (&series)[n]) {
  const DoubleVector v = hn::Mul(s, s);
  return hn::MulAdd(hn::Mul(s, v), polynomial(d, v, series), hn::Add(s, s));
}

/// x = 2^exponent m, log_m the logarithm of m in [sqrt 1/2, sqrt 2); x > 0, finite and normal, as every f32 is in f64.
struct SplitLog {
  DoubleVector exponent, log_m;
};
HWY_INLINE SplitLog split_log(WideDouble d, DoubleVector x) {
  // s^2 <= (sqrt 2 - 1)^4, error 8e-12
  constexpr double series[] = {0.6666666666738277, 0.39999998786883284, 0.28571756668146314, 0.22191265599171967, 0.19365278421757223};
  constexpr std::int64_t root_of_half = 0x3FE6A09E667F3BCD;
  const hn::RebindToSigned<WideDouble> bits;
  const auto pattern = hn::BitCast(bits, x);
  const auto k = hn::ShiftRight<52>(hn::Sub(pattern, hn::Set(bits, root_of_half)));
  const DoubleVector m = hn::BitCast(d, hn::Sub(pattern, hn::ShiftLeft<52>(k)));
  const DoubleVector one = hn::Set(d, 1);
  const DoubleVector exponent = hn::Sub(hn::BitCast(d, hn::Add(k, hn::Set(bits, to_whole_bits))), hn::Set(d, to_whole));
  return {exponent, log_series(d, hn::Div(hn::Sub(m, one), hn::Add(m, one)), series)};
}
HWY_INLINE DoubleVector log_wide(WideDouble d, DoubleVector x) {
  const SplitLog split = split_log(d, x);
  return hn::MulAdd(split.exponent, hn::Set(d, log_2), split.log_m);
}

/// y = log x where x is positive and finite; the special values of the logarithm elsewhere.
HWY_INLINE DoubleVector with_ends_of_log(WideDouble d, DoubleVector x, DoubleVector y) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  const DoubleVector zero = hn::Zero(d);
  const DoubleVector low = hn::IfThenElse(hn::Eq(x, zero), hn::Set(d, -inf), hn::Set(d, std::numeric_limits<double>::quiet_NaN()));
  return hn::IfThenElse(hn::Gt(x, zero), hn::IfThenElse(hn::Eq(x, hn::Set(d, inf)), x, y), low);
}

/// log(1 + z) for z in [0, 1]; accurate for small z.
HWY_INLINE DoubleVector log1p_of_fraction(WideDouble d, DoubleVector z) {
  // s^2 <= 1/9, error 1.3e-13
  constexpr double series[] = {0.6666666666665524,  0.4000000001314103,  0.28571426099734804, 0.22222398655759784,
                               0.18175665903116606, 0.15500132085881055, 0.12151139681483959, 0.17814450004747195};
  return log_series(d, hn::Div(z, hn::Add(z, hn::Set(d, 2))), series);
}

/// f lane by lane, for arguments that the vector code does not handle.
template <class F>
HWY_NOINLINE DoubleVector one_by_one(WideDouble d, DoubleVector x, F f) {
  HWY_ALIGN double buffer[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(x, d, buffer);
  for (std::int64_t i = 0; i < lanes(d); ++i) buffer[i] = f(buffer[i]);
  return hn::Load(d, buffer);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
