// SPDX-License-Identifier: Apache-2.0
// ops/exponential.cpp - exp, expm1, log, log2, log1p, erf: f32 and exp by vector code, the rest of f64 by the C library.
#include "simd/foreach_target.h"

#include <cmath>

#include "elementwise/strided_loop.h"
#include "simd/simd.h"
#include "simd/wide_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

struct Exp {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return exp_of(d, x);
  }
};

struct Expm1 {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const { return expm1_wide(d, x); }
  double operator()(double x) const { return std::expm1(x); }
};

struct Log {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const { return with_ends_of_log(d, x, log_wide(d, x)); }
  double operator()(double x) const { return std::log(x); }
};

struct Log2 {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    const SplitLog split = split_log(d, x);
    return with_ends_of_log(d, x, hn::MulAdd(split.log_m, hn::Set(d, 1.4426950408889634), split.exponent));
  }
  double operator()(double x) const { return std::log2(x); }
};

/// log(1 + x); for |x| < 2^-18, where adding 1 would lose digits of x, x - x^2/2, whose relative error is x^2/3.
struct Log1p {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    const DoubleVector one = hn::Set(d, 1), sum = hn::Add(x, one);
    const DoubleVector tiny = hn::Mul(x, hn::NegMulAdd(x, hn::Set(d, 0.5), one));
    return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 0x1p-18)), tiny, with_ends_of_log(d, sum, log_wide(d, sum)));
  }
  double operator()(double x) const { return std::log1p(x); }
};

/// 1 - 2 Q(sqrt(2) |x|) with the sign of x; for |x| < 1/2, where that cancels, a polynomial.
struct Erf {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    // erf(x) / x in x^2 <= 1/4, error 1.1e-13
    constexpr double series[] = {1.1283791670954115,   -0.37612638899222695,   0.11283791417078554,   -0.02686610953797284,
                                 0.005223275687173556, -0.0008506764816853653, 0.00010822775559285537};
    const DoubleVector magnitude = hn::Abs(x);
    const DoubleVector tail = upper_tail(d, at_most(d, hn::Mul(magnitude, hn::Set(d, 1.4142135623730951)), 16));
    const DoubleVector large = hn::CopySign(hn::NegMulAdd(tail, hn::Set(d, 2), hn::Set(d, 1)), x);
    const DoubleVector small = hn::Mul(x, polynomial(d, hn::Mul(x, x), series));
    return hn::IfThenElse(hn::Lt(magnitude, hn::Set(d, 0.5)), small, hn::IfThenElse(hn::IsNaN(x), x, large));
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
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_all<Exp, T>));
}

/// y = e^x - 1
template <class T>
void expm1(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_wide_all<Expm1, T>));
}

/// y = log x; -inf at 0, NaN below
template <class T>
void log(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_wide_all<Log, T>));
}

/// y = log x / log 2
template <class T>
void log2(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_wide_all<Log2, T>));
}

/// y = log(1 + x)
template <class T>
void log1p(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_wide_all<Log1p, T>));
}

/// y = 2 / sqrt(pi) times the integral of e^(-t^2) from 0 to x
template <class T>
void erf(const sdk::Call& call) {
  elementwise<T, T>(call, grain, TENON_DISPATCH(map_wide_all<Erf, T>));
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
