// SPDX-License-Identifier: Apache-2.0
// ops/exponential.cpp - exp, expm1, log, log2, log1p, erf: f32 and exp by vector code, the rest of f64 by the C library.
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

// Beyond 87 exponentials are close to the ends of f32's normal range.
constexpr float moderate = 87;

/// f64 vectors for f64.
struct ExpF64 {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return exp_of(d, x);
  }
};
/// Within 1.1 ulp.
struct Exp {
  HWY_INLINE FloatMask usual(WideFloat d, FloatVector x) const { return hn::Le(hn::Abs(x), hn::Set(d, moderate)); }
  HWY_INLINE FloatVector fast(WideFloat d, FloatVector x) const { return exp_within_f32(d, x); }
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const { return exp_wide(d, x); }
};
template <class T>
void exp_all(const T* x, T* y, std::int64_t n) {
  map(std::conditional_t<sizeof(T) == sizeof(float), FromF32<Exp>, ExpF64>{}, x, y, n);
}

/// In f32 within 1.7 ulp.
struct Expm1 {
  HWY_INLINE FloatMask usual(WideFloat d, FloatVector x) const { return hn::Le(hn::Abs(x), hn::Set(d, moderate)); }
  HWY_INLINE FloatVector fast(WideFloat d, FloatVector x) const { return hn::CopySign(expm1_within_f32(d, x), x); }
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const { return expm1_wide(d, x); }
  double operator()(double x) const { return std::expm1(x); }
};

/// In f32 within 0.9 ulp.
struct Log {
  HWY_INLINE FloatMask usual(WideFloat d, FloatVector x) const { return is_positive_normal(d, x); }
  HWY_INLINE FloatVector fast(WideFloat d, FloatVector x) const {
    const SplitFloat split = split_float(d, x);
    return sum_of_log(d, split.exponent, hn::Sub(split.m, hn::Set(d, 1)));
  }
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const { return with_ends_of_log(d, x, log_wide(d, x)); }
  double operator()(double x) const { return std::log(x); }
};

/// In f32 within 1.8 ulp, without fused multiply-add 2.1.
struct Log2 {
  HWY_INLINE FloatMask usual(WideFloat d, FloatVector x) const { return is_positive_normal(d, x); }
  HWY_INLINE FloatVector fast(WideFloat d, FloatVector x) const {
    const SplitFloat split = split_float(d, x);
    const FloatVector f = hn::Sub(split.m, hn::Set(d, 1));
    const LogSeries s = log_series_f32(d, f);
    const FloatVector log_m = hn::Add(f, hn::Sub(s.rest, s.half_square));
    return hn::Add(split.exponent, hn::MulAdd(log_m, hn::Set(d, 0.44269504f), log_m));  // 1 / log 2 - 1
  }
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    const SplitLog split = split_log(d, x);
    return with_ends_of_log(d, x, hn::MulAdd(split.log_m, hn::Set(d, 1.4426950408889634), split.exponent));
  }
  double operator()(double x) const { return std::log2(x); }
};

/// log(1 + x). In f32, 1 + x is rounded only to find its exponent k: 2^-k (1 + x) - 1 = 2^-k x + (2^-k - 1) loses nothing of x; within 1.5
/// ulp. In f64, for |x| < 2^-18, where adding 1 would lose digits of x, x - x^2/2, whose relative error is x^2/3.
struct Log1p {
  HWY_INLINE FloatMask usual(WideFloat d, FloatVector x) const {
    return hn::And(hn::Gt(x, hn::Set(d, -1)), hn::Lt(x, hn::Set(d, 0x1p60f)));
  }
  HWY_INLINE FloatVector fast(WideFloat d, FloatVector x) const {
    const hn::RebindToSigned<WideFloat> bits;
    const FloatVector one = hn::Set(d, 1);
    const SplitFloat split = split_float(d, hn::Add(x, one));
    const FloatVector scale = hn::BitCast(d, hn::Sub(hn::BitCast(bits, one), split.bits_of_exponent));
    return hn::CopySign(sum_of_log(d, split.exponent, hn::MulAdd(x, scale, hn::Sub(scale, one))), x);
  }
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    const DoubleVector one = hn::Set(d, 1), sum = hn::Add(x, one);
    const DoubleVector tiny = hn::Mul(x, hn::NegMulAdd(x, hn::Set(d, 0.5), one));
    return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-18)), tiny, with_ends_of_log(d, sum, log_wide(d, sum)));
  }
  double operator()(double x) const { return std::log1p(x); }
};

/// For |x| < 0.93 x + x p(x^2), else 1 - erfc |x| with the sign of x, where erfc t = e^(-t - t q(t)). In f32 within
/// 1.2 ulp.
/// Source  the two forms and their boundary: N. Juffa, "Vectorizable implementation of error function erff()", Stack Overflow, 2016.
struct Erf {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    // error 1.8e-8; error 3e-9 for 0.92 <= t <= 4, where erf rounds to 1
    constexpr float small_series[] = {0.128379151f, -0.376124889f, 0.11281731f, -0.0267629661f, 0.00498735206f, -0.000595957856f};
    constexpr float large_series[] = {0.128514513f, 0.63571775f, 0.105262659f, -0.0228905361f, 0.00321514998f, -0.000214010593f};
    const V magnitude = hn::Abs(x), end = hn::Set(d, 4), one = hn::Set(d, 1);
    const V t = hn::IfThenElse(hn::Gt(magnitude, end), end, magnitude);
    const V square = hn::Mul(t, t), fourth = hn::Mul(square, square);
    const V small = hn::MulAdd(estrin(d, square, fourth, small_series), t, t);
    const SplitExpF32<V> e = split_exp_f32(d, hn::Neg(hn::MulAdd(estrin(d, t, square, large_series), t, t)));
    const V large = hn::NegMulAdd(hn::Add(e.rest, one), scale_of(d, e.shifted), one);
    return hn::CopySign(hn::IfThenElse(hn::Lt(t, hn::Set(d, 0.93f)), small, large), x);
  }
  double operator()(double x) const { return std::erf(x); }
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

/// y = e^x
template <class T>
void exp(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(exp_all<T>));
}

/// y = e^x - 1
template <class T>
void expm1(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_from_f32<Expm1, T>));
}

/// y = log x; -inf at 0, NaN below
template <class T>
void log(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_from_f32<Log, T>));
}

/// y = log x / log 2
template <class T>
void log2(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_from_f32<Log2, T>));
}

/// y = log(1 + x)
template <class T>
void log1p(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_from_f32<Log1p, T>));
}

/// y = 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x
template <class T>
void erf(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_f32_all<Erf, T>));
}

}  // namespace

TENON_KERNEL_WITH(exp, elementwise_traits, float, double)
TENON_KERNEL_WITH(expm1, elementwise_traits, float, double)
TENON_KERNEL_WITH(log, elementwise_traits, float, double)
TENON_KERNEL_WITH(log2, elementwise_traits, float, double)
TENON_KERNEL_WITH(log1p, elementwise_traits, float, double)
TENON_KERNEL_WITH(erf, elementwise_traits, float, double)

}  // namespace tenon::openblas
#endif
