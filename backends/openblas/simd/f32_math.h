// SPDX-License-Identifier: Apache-2.0
// f32_math.h - functions of f32 computed in f32 lanes, for one instruction set: twice the lanes of wide_math.h, and half its conversions.
//
// Each function computes the vectors whose lanes all lie in its usual range by f32 code. Lanes outside, among them NaN and the infinities,
// take their result from the f64 function, so that no result depends on its neighbours.
//
// Polynomials are minimax fits (Lawson's iteration on Chebyshev nodes in 40 digits, mpmath) whose coefficients are rounded to f32 one after
// another, each before the rest is fitted; the errors stated are those of the rounded polynomials. Errors in ulp are the largest ones
// measured against the C library's vector functions of f64: of one operand of each seven neighbours with AVX-512, of each 97 with AVX2,
// SSE4 and the portable code, over all of f32.
#if defined(TENON_OPENBLAS_F32_MATH_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_F32_MATH_H
#undef TENON_OPENBLAS_F32_MATH_H
#else
#define TENON_OPENBLAS_F32_MATH_H
#endif

#include <cstdint>
#include <limits>

#include "simd/simd.h"
#include "simd/wide_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

using WideFloat = Wide<float>;
using FloatVector = hn::Vec<WideFloat>;
using FloatMask = hn::Mask<WideFloat>;

/// y where `usual` is set; elsewhere the f64 function f of x.
template <class F>
HWY_NOINLINE FloatVector with_f64(const F& f, FloatMask usual, FloatVector x, FloatVector y) {
  const WideFloat d;
  const WideDouble wide;
  const hn::Rebind<float, WideDouble> half;
  HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, buffer);
  for (std::int64_t i = 0; i < lanes(d); i += lanes(wide)) {
    hn::Store(rounded_to_f32(wide, f(wide, hn::PromoteTo(wide, hn::Load(half, buffer + i)))), half, buffer + i);
  }
  return hn::IfThenElse(usual, y, hn::Load(d, buffer));
}

/// A function of f32 from three of F: usual(d, x), the mask of operands of its f32 code; fast(d, x), which may be anything elsewhere; and
/// f(wide, x) in f64 vectors for the others. f(x) is the function of one f64 number.
template <class F>
struct FromF32 {
  HWY_INLINE FloatVector operator()(WideFloat d, FloatVector x) const {
    const F f;
    const FloatMask usual = f.usual(d, x);
    const FloatVector y = f.fast(d, x);
    return HWY_LIKELY(hn::AllTrue(d, usual)) ? y : with_f64(f, usual, x, y);
  }
};

// 1.5 * 2^23: adding it rounds to an integer, which is then in the lowest bits.
constexpr float to_whole_f32 = 12582912.0f;
/// log 2 in two parts, the first of 9 bits, so that its product with the exponent of an f32 is exact (Cody and Waite: Software Manual for
/// the Elementary Functions, 1980).
constexpr float log_2_high = 0.693359375f, log_2_low = -2.12194440e-4f;

/// e^x = 2^n (1 + rest) with rest = e^r - 1, |r| <= log(2)/2; |x| <= 2^16. `shifted` has n in its lowest bits.
template <class V>
struct SplitExpF32 {
  V shifted, rest;
};
template <class D, class V>
HWY_INLINE SplitExpF32<V> split_exp_f32(D d, V x) {
  // e^r = 1 + r + r^2 p(r), error 1.4e-8 of e^r - 1
  constexpr float series[] = {0.49999997f, 0.16666545f, 0.041667521f, 0.00836639199f, 0.00138627435f};
  const V whole = hn::Set(d, to_whole_f32);
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), whole);
  const V n = hn::Sub(shifted, whole);
  const V r = hn::NegMulAdd(n, hn::Set(d, log_2_low), hn::NegMulAdd(n, hn::Set(d, log_2_high), x));
  const V r2 = hn::Mul(r, r);
  return {shifted, hn::MulAdd(r2, estrin(d, r, r2, series), r)};
}
/// 2^n for -126 <= n <= 127.
template <class D, class V>
HWY_INLINE V scale_of(D d, V shifted) {
  const hn::RebindToSigned<D> bits;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::BitCast(bits, shifted), hn::Set(bits, 127))));
}
/// e^x for -87 <= x <= 88.
template <class D, class V>
HWY_INLINE V exp_within_f32(D d, V x) {
  const hn::RebindToSigned<D> bits;
  const SplitExpF32<V> e = split_exp_f32(d, x);
  const V y = hn::Add(e.rest, hn::Set(d, 1));  // the exponent of y is -1 or 0
  return hn::BitCast(d, hn::Add(hn::BitCast(bits, y), hn::ShiftLeft<23>(hn::BitCast(bits, e.shifted))));
}
/// e^x - 1 for |x| <= 87, but for the sign of 0.
template <class D, class V>
HWY_INLINE V expm1_within_f32(D d, V x) {
  const SplitExpF32<V> e = split_exp_f32(d, x);
  const V scale = scale_of(d, e.shifted);
  return hn::MulAdd(e.rest, scale, hn::Sub(scale, hn::Set(d, 1)));
}

/// u = 2^exponent m with m in [sqrt 1/2, sqrt 2); u is positive, finite and normal. `bits_of_exponent` is the exponent, shifted left by 23.
struct SplitFloat {
  hn::VFromD<hn::RebindToSigned<WideFloat>> bits_of_exponent;
  FloatVector exponent, m;
};
HWY_INLINE SplitFloat split_float(WideFloat d, FloatVector u) {
  const hn::RebindToSigned<WideFloat> bits;
  const auto pattern = hn::BitCast(bits, u);
  const auto root_of_half = hn::Set(bits, 0x3F3504F3);
  const auto k = hn::ShiftRight<23>(hn::Sub(pattern, root_of_half));
  const auto high = hn::ShiftLeft<23>(k);
  return {high, hn::ConvertTo(d, k), hn::BitCast(d, hn::Sub(pattern, high))};
}
/// log(1 + f) = f - f^2/2 + rest for 1 + f in [sqrt 1/2, sqrt 2]; `rest` is f^3 p(f).
/// Source  Cephes, logf: this sum of three terms, added from the smallest on.
struct LogSeries {
  FloatVector half_square, rest;
};
HWY_INLINE LogSeries log_series_f32(WideFloat d, FloatVector f) {
  // error 5.9e-9 of log(1 + f)
  constexpr float series[] = {0.333333313f, -0.250008225f, 0.20001246f,  -0.166233256f,
                              0.142014489f, -0.131602064f, 0.127631754f, -0.0763603523f};
  const FloatVector f2 = hn::Mul(f, f);
  return {hn::Mul(f2, hn::Set(d, 0.5f)), hn::Mul(hn::Mul(f2, f), estrin(d, f, f2, series))};
}
/// exponent log 2 + log(1 + f), in the order of growing terms.
HWY_INLINE FloatVector sum_of_log(WideFloat d, FloatVector exponent, FloatVector f) {
  const LogSeries s = log_series_f32(d, f);
  const FloatVector low = hn::Sub(hn::MulAdd(exponent, hn::Set(d, log_2_low), s.rest), s.half_square);
  return hn::MulAdd(exponent, hn::Set(d, log_2_high), hn::Add(f, low));
}
/// log(1 + z) for z in [0, 1].
HWY_INLINE FloatVector log1p_of_fraction_f32(WideFloat d, FloatVector z) {
  const auto halved = hn::Ge(z, hn::Set(d, 0.41421356f));  // 1 + z = 2 (1 + (z - 1) / 2)
  const FloatVector f = hn::IfThenElse(halved, hn::MulAdd(z, hn::Set(d, 0.5f), hn::Set(d, -0.5f)), z);
  return sum_of_log(d, hn::IfThenElseZero(halved, hn::Set(d, 1)), f);
}
/// tanh x for every x by e^(2 |x|) - 1, which loses no digits near 0. Within 2.6 ulp.
struct TanhF32 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V magnitude = hn::Abs(x), end = hn::Set(d, 10);  // from 9.02 on the result is 1
    const V t = hn::IfThenElse(hn::Gt(magnitude, end), end, magnitude);
    const V e = expm1_within_f32(d, hn::Add(t, t));
    return hn::CopySign(quotient(d, e, hn::Add(e, hn::Set(d, 2))), x);
  }
};

/// F's vectors are f32 for f32; f64 goes one by one.
template <class F, class T>
void map_f32_all(const T* x, T* y, std::int64_t n) {
  if constexpr (sizeof(T) == sizeof(float)) {
    map(F{}, x, y, n);
  } else {
    map_wide(F{}, x, y, n);
  }
}
/// y[i] = f(x[i]): f32 by FromF32<F>, f64 by F number by number.
template <class F, class T>
void map_from_f32(const T* x, T* y, std::int64_t n) {
  if constexpr (sizeof(T) == sizeof(float)) {
    map(FromF32<F>{}, x, y, n);
  } else {
    map_wide(F{}, x, y, n);
  }
}

/// Whether log x is that of split_float(): x is positive, finite and normal.
HWY_INLINE FloatMask is_positive_normal(WideFloat d, FloatVector x) {
  const hn::RebindToUnsigned<WideFloat> bits;
  const auto pattern = hn::Sub(hn::BitCast(bits, x), hn::Set(bits, 0x00800000u));
  return hn::RebindMask(d, hn::Lt(pattern, hn::Set(bits, 0x7F000000u)));
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
