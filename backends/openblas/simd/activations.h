// SPDX-License-Identifier: Apache-2.0
// activations.h - the activations of epilogues, as vector functions. A source file includes it after foreach_target.h, as it does simd.h.
#if defined(TENON_OPENBLAS_ACTIVATIONS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_ACTIVATIONS_H
#undef TENON_OPENBLAS_ACTIVATIONS_H
#else
#define TENON_OPENBLAS_ACTIVATIONS_H
#endif

#include <cmath>

#include <tenon/sdk/kernel.h>

#include "simd/normal_tail.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// NaN propagates; if the bounds cross, the upper one wins.
template <class T>
struct Clip {
  T low, high;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V lower = hn::Set(d, low), upper = hn::Set(d, high);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    return hn::Min(upper, hn::Max(lower, x));  // these instructions give the second operand where one is NaN, or both are zeros
#else
    const V raised = hn::IfThenElse(hn::Lt(x, lower), lower, x);
    return hn::IfThenElse(hn::Gt(raised, upper), upper, raised);
#endif
  }
  T operator()(T x) const {
    const T raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};

/// c[0] + c[1] x + ..., by Horner's rule.
template <class D, class V, std::size_t n>
HWY_INLINE V polynomial_f32(D d, V x, const float (&c)[n]) {
  V y = hn::Set(d, c[n - 1]);
  for (std::size_t i = n - 1; i-- > 0;) y = hn::MulAdd(y, x, hn::Set(d, c[i]));
  return y;
}

/// x / (1 + e^-u), with its limit at minus infinity.
HWY_INLINE double gated_number(double x, double u) {
  return std::isinf(x) && x < 0 ? -0.0 : x / (1 + std::exp(-u));
}

/// x / (1 + e^-x) by e^-|x|, which never overflows; f32 within 3.2 ulp, except for results below 128 times the smallest normal number.
struct Silu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V negative = minus_magnitude_f32(d, x);  // bounded: avoids -inf times 0
    const V z = exp_of_negative_f32(d, negative);
    const V top = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(negative, z), x);
    return hn::Div(top, hn::Add(z, hn::Set(d, 1)));
  }
  double operator()(double x) const { return gated_number(x, x); }
};

/// x Phi(x) by the normal distribution's tail Q: x Q(-x) for x < 0, where 1 - Q would cancel, else x (1 - Q(x)). Within 7 ulp; by AVX-512
/// within 3 ulp near 0, where normal_tail_near() computes Q. Elsewhere Q(t) = e^(-t^2/2) u p(u), u = 1 / (1 + 0.35 t). t^2 is the sum of a
/// number of 24 bits and a rest, because e^-s turns an absolute error of s into a relative one. Polynomials are fitted as in wide_math.h.
struct Gelu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
#if HWY_TARGET == HWY_AVX3
    // max(0, x) - |x| Q(|x|); of two zeros, or if one is NaN, vmaxps returns its second operand
    const V t = hn::Abs(x), near = hn::NegMulAdd(t, normal_tail_near(d, t), hn::Max(hn::Zero(d), x));
    const auto is_near = hn::Le(t, hn::Set(d, normal_tail_near_end));
    if (HWY_LIKELY(hn::AllTrue(d, is_near))) return near;
    return hn::IfThenElse(is_near, near, by_exponential(d, x));
#else
    return by_exponential(d, x);
#endif
  }

  /// x Phi(x) from Q(|x|).
  template <class D, class V>
  static HWY_INLINE V of_tail(D d, V x, V tail) {
    return hn::Mul(x, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(hn::Set(d, 1), tail)));
  }
  template <class D, class V>
  static HWY_INLINE V by_exponential(D d, V x) {
    // (e^r - 1) / r on [-log(2)/2, log(2)/2], error 1.1e-8; p, error 1.7e-8, is at least 0.14
    constexpr float exponential[] = {1.000000011f, 0.5000000013f, 0.1666650526f, 0.04166646501f, 0.008369148491f, 0.001393364103f};
    constexpr float mills[] = {0.139619049f,  0.1399053337f,  0.1195033067f, 0.1068541165f,  -0.02636567981f,
                               0.1639751404f, -0.2599512453f, 0.1460276763f, -0.02956771403f};
    const hn::RebindToSigned<D> bits;
    const V one = hn::Set(d, 1), t = hn::Abs(x);
#if HWY_NATIVE_FMA
    const V square = hn::Mul(t, t), rest_of_square = hn::MulSub(t, t, square);
#else
    const V coarse = hn::BitCast(d, hn::And(hn::BitCast(bits, t), hn::Set(bits, ~0xFFF)));  // 12 bits: its square is exact
    const V square = hn::Mul(coarse, coarse), rest_of_square = hn::Mul(hn::Sub(t, coarse), hn::Add(t, coarse));
#endif
    const V to_whole_f32 = hn::Set(d, 12582912.0f);  // 1.5 * 2^23
    const V shifted = hn::MulAdd(square, hn::Set(d, -0.72134752f), to_whole_f32);
    const V n = hn::Sub(shifted, to_whole_f32);
    V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), hn::Mul(square, hn::Set(d, -0.5f)));  // log 2 in two parts
    r = hn::MulAdd(n, hn::Set(d, 2.12194440e-4f), r);
    r = hn::MulAdd(rest_of_square, hn::Set(d, -0.5f), r);
    const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::BitCast(bits, shifted), hn::Set(bits, 127))));
    const V u = reciprocal(d, hn::MulAdd(t, hn::Set(d, 0.35f), one));
    const V ratio = hn::Mul(u, polynomial_f32(d, u, mills));
    const V tail = hn::Mul(scale, hn::MulAdd(ratio, hn::Mul(r, polynomial_f32(d, r, exponential)), ratio));
    const V y = of_tail(d, x, tail);
    const auto is_far = hn::Gt(t, hn::Set(d, 13.25f));  // from here on x Q(|x|) is subnormal
    if (HWY_LIKELY(hn::AllFalse(d, is_far))) return y;
    const V limit = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Set(d, -0.0f), x);
    return hn::IfThenElse(is_far, limit, y);
  }
  /// x/2 erfc(-x / sqrt 2). The argument's rounding error, which erfc amplifies z^2 times, is corrected by the derivative.
  double operator()(double x) const {
    if (std::isinf(x)) return x > 0 ? x : -0.0;
    constexpr double high = 0.7071067811865476, low = -4.833646656726457e-17;  // sqrt(1/2) as a sum
    const double z = -x * high;
    const double rest = std::fma(-x, high, -z) - x * low;
    return 0.5 * x * (std::erfc(z) - 1.1283791670955126 * std::exp(-z * z) * rest);
  }
};

/// The gradient of relu, from its result y: dy where y > 0, NaN where y is NaN, else 0.
struct ReluGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V y) const {
    return hn::IfThenElse(hn::IsNaN(y), y, hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), dy));
  }
};

/// body(function) for the activation, which is not clip, gelu or silu if T is double.
template <class T, class Body>
HWY_INLINE void with_activation(const sdk::Activation& activation, const Body& body) {
  if constexpr (std::is_same_v<T, float>) {
    if (activation == sdk::Activation::clip) return body(Clip<T>{activation.low, activation.high});
    if (activation == sdk::Activation::gelu) return body(Gelu{});
    if (activation == sdk::Activation::silu) return body(Silu{});
  }
  if (activation == sdk::Activation::relu) return body(Relu{});
  if (activation == sdk::Activation::sigmoid) return body(Sigmoid{});
  if (activation == sdk::Activation::tanh) return body(Tanh{});
  body(Identity{});
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
