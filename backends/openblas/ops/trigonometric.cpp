// SPDX-License-Identifier: Apache-2.0
// ops/trigonometric.cpp - sin, cos and atan: f32 by vector code; f64 and very large arguments of sin and cos by the C library, whose
// reduction is exact.
#include "simd/foreach_target.h"

#include <cmath>

#include "elementwise/strided_loop.h"
#include "simd/simd.h"
#include "simd/wide_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// x = n pi/2 + r; n selects the polynomial and the sign.
///
/// pi/2 is a sum of two parts, the first with 33 bits: its product with n, of up to 20 bits, is exact, and so is the difference from x,
/// which has 24. The second part leaves an error of 2^-66, and no f32 of this size is closer to a multiple of pi/2 than 2^-30.
template <bool cosine>
struct Sine {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    // sin(r) = r + r^3 p(r^2), cos(r) = 1 - r^2/2 + r^4 p(r^2) for |r| <= pi/4, errors 3e-14 and 2.4e-12
    constexpr double sine[] = {-0.16666666666663882, 0.008333333331077422, -0.0001984126691523504, 2.7555990399839905e-06,
                               -2.4805587179980646e-08};
    constexpr double cosine_rest[] = {0.04166666666431933, -0.0013888887671288108, 2.480059998353171e-05, -2.7300908167996537e-07};
    if (!hn::AllTrue(d, hn::Le(hn::Abs(x), hn::Set(d, 0x1p20)))) {
      return one_by_one(d, x, Sine{});
    }
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
    return hn::Xor(hn::IfThenElse(odd, c, s), hn::BitCast(d, sign));
  }
  double operator()(double x) const { return cosine ? std::cos(x) : std::sin(x); }
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
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_wide_all<Sine<false>, T>));
}

/// y = cos x
template <class T>
void cos(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_wide_all<Sine<true>, T>));
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
