// SPDX-License-Identifier: Apache-2.0
// ops/trigonometric.cpp - sin, cos and atan: f32 by vector code; f64 and very large arguments of sin and cos by the C library, whose
// reduction is exact.
#include "simd/foreach_target.h"

#include <cmath>

#include "elementwise/strided_loop.h"
#include "simd/f32_math.h"
#include "simd/simd.h"
#include "simd/wide_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// In f32 |x| = n pi + r for the sine, (n + 1/2) pi + r for the cosine; the parity of n is the sign of sin r. Within 2.4 ulp.
///
/// pi is a sum of parts (Cody and Waite: Software Manual for the Elementary Functions, 1980). A fused multiply-add rounds only its result,
/// which near a zero of the function has no more than 24 bits. Without one, products of n, of 9 bits with its half, and 15 bits are exact.
///
/// In f64 x = n pi/2 + r; n selects the polynomial and the sign.
///
/// pi/2 is a sum of two parts, the first with 33 bits: its product with n, of up to 20 bits, is exact, and so is the difference from x,
/// which has 24. The second part leaves an error of 2^-66, and no f32 of this size is closer to a multiple of pi/2 than 2^-30.
template <bool cosine>
struct Sine {
  // Beyond these, n has more bits than the parts of pi leave for it.
  static constexpr float limit = HWY_NATIVE_FMA ? 32768 : 800;

  HWY_INLINE FloatMask usual(WideFloat d, FloatVector x) const { return hn::Le(hn::Abs(x), hn::Set(d, limit)); }
  HWY_INLINE FloatVector fast(WideFloat d, FloatVector x) const {
    // sin r = r + r^3 p(r^2) for |r| <= 1.001 pi/2, error 6.3e-9
    constexpr float series[] = {-0.166666597f, 0.00833306927f, -0.000198097696f, 2.60605998e-06f};
    constexpr float fused[] = {3.14159274f, -8.74227766e-08f, -3.43024902e-15f};
    constexpr float separate[] = {3.14160156f, -8.90903175e-06f, 1.2154544e-10f, -3.43024902e-15f};
    const hn::RebindToUnsigned<WideFloat> bits;
    const FloatVector magnitude = hn::Abs(x), whole = hn::Set(d, to_whole_f32), reciprocal = hn::Set(d, 0.318309886f);
    FloatVector shifted, n;
    if constexpr (cosine) {
      shifted = hn::Add(hn::MulAdd(magnitude, reciprocal, hn::Set(d, -0.5f)), whole);
      n = hn::Add(hn::Sub(shifted, whole), hn::Set(d, 0.5f));
    } else {
      shifted = hn::MulAdd(magnitude, reciprocal, whole);
      n = hn::Sub(shifted, whole);
    }
    FloatVector r = magnitude;
#if HWY_NATIVE_FMA
    for (const float part : fused) r = hn::NegMulAdd(n, hn::Set(d, part), r);
    (void)separate;
#else
    for (const float part : separate) r = hn::NegMulAdd(n, hn::Set(d, part), r);
    (void)fused;
#endif
    const FloatVector r2 = hn::Mul(r, r);
    const FloatVector s = hn::MulAdd(hn::Mul(r, r2), estrin(d, r2, hn::Mul(r2, r2), series), r);
    const auto parity = hn::ShiftLeft<31>(hn::BitCast(bits, shifted));
    const auto sign = cosine ? hn::Xor(parity, hn::Set(bits, 0x80000000u)) : hn::Xor(parity, hn::BitCast(bits, hn::Xor(x, magnitude)));
    return hn::Xor(s, hn::BitCast(d, sign));
  }
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    // sin(r) = r + r^3 p(r^2), cos(r) = 1 - r^2/2 + r^4 p(r^2) for |r| <= pi/4, errors 3e-14 and 2.4e-12
    constexpr double sine[] = {-0.16666666666663882, 0.008333333331077422, -0.0001984126691523504, 2.7555990399839905e-06,
                               -2.4805587179980646e-08};
    constexpr double cosine_rest[] = {0.04166666666431933, -0.0013888887671288108, 2.480059998353171e-05, -2.7300908167996537e-07};
    const auto usual_wide = hn::Le(hn::Abs(x), hn::Set(d, 0x1p20));
    const hn::RebindToUnsigned<WideDouble> bits;
    const DoubleVector shifted = hn::MulAdd(x, hn::Set(d, 0.6366197723675814), hn::Set(d, to_whole));
    const DoubleVector n = hn::Sub(shifted, hn::Set(d, to_whole));
    const DoubleVector near = hn::NegMulAdd(n, hn::Set(d, 1.5707963267341256), x);
    const DoubleVector r = hn::NegMulAdd(n, hn::Set(d, 6.077100506506192e-11), near);
    const DoubleVector v = hn::Mul(r, r);
    const DoubleVector s = hn::MulAdd(hn::Mul(r, v), polynomial(d, v, sine), r);
    const DoubleVector c = hn::MulAdd(hn::Mul(v, v), polynomial(d, v, cosine_rest), hn::NegMulAdd(v, hn::Set(d, 0.5), hn::Set(d, 1)));
    const auto quadrant = hn::Add(hn::BitCast(bits, shifted), hn::Set(bits, cosine ? 1u : 0u));
    const auto odd = hn::RebindMask(d, hn::TestBit(quadrant, hn::Set(bits, 1u)));
    const auto sign = hn::ShiftLeft<62>(hn::And(quadrant, hn::Set(bits, 2u)));
    const DoubleVector y = hn::Xor(hn::IfThenElse(odd, c, s), hn::BitCast(d, sign));
    return HWY_LIKELY(hn::AllTrue(d, usual_wide)) ? y : hn::IfThenElse(usual_wide, y, one_by_one(d, x, Sine{}));
  }
  double operator()(double x) const {
    return cosine ? std::cos(x) : std::sin(x);
  }
};

/// Beyond 1 a right angle less the arc tangent of 1 / |x|.
struct ArcTangent {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    // atan(w) / w in w^2 <= 1, error 4.5e-10
    constexpr double series[] = {0.9999999995535376,   -0.33333322488911593,  0.19999558100363982, -0.14278576024807985,
                                 0.1105077127584966,   -0.08785043282362845,  0.06685281517877424, -0.04392841073326746,
                                 0.021912945865448393, -0.007030669470424213, 0.001057607438057242};
    const DoubleVector one = hn::Set(d, 1), magnitude = hn::Abs(x);
    const auto beyond = hn::Gt(magnitude, one);
    const DoubleVector w = hn::IfThenElse(beyond, hn::Div(one, magnitude), magnitude);
    const DoubleVector angle = hn::Mul(w, polynomial(d, hn::Mul(w, w), series));
    return hn::CopySign(hn::IfThenElse(beyond, hn::Sub(hn::Set(d, 1.5707963267948966), angle), angle), x);
  }
  double operator()(double x) const { return std::atan(x); }
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own, about 20 us.
constexpr std::int64_t grain = 24 * 1024;

/// y = sin x
template <class T>
void sin(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_from_f32<Sine<false>, T>));
}

/// y = cos x
template <class T>
void cos(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_from_f32<Sine<true>, T>));
}

/// y = the angle in [-pi/2, pi/2] whose tangent is x
template <class T>
void atan(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_wide_all<ArcTangent, T>));
}

}  // namespace

TENON_KERNEL_WITH(sin, elementwise_traits, float, double)
TENON_KERNEL_WITH(cos, elementwise_traits, float, double)
TENON_KERNEL_WITH(atan, elementwise_traits, float, double)

}  // namespace tenon::openblas
#endif
