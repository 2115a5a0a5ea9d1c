// SPDX-License-Identifier: Apache-2.0
// ops/activation.cpp - leaky_relu, elu, softplus, mish, gelu, silu: f32 by vector code; f64 by the C library.
#include "simd/foreach_target.h"

#include <cmath>

#include "elementwise/strided_loop.h"
#include "simd/simd.h"
#include "simd/wide_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// c[0] + c[1] x + ..., by Horner's rule.
template <class D, class V, std::size_t n>
HWY_INLINE V polynomial_f32(D d, V x, const float (&c)[n]) {
  V y = hn::Set(d, c[n - 1]);
  for (std::size_t i = n - 1; i-- > 0;) y = hn::MulAdd(y, x, hn::Set(d, c[i]));
  return y;
}

template <class T>
struct LeakyRelu {
  T alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, hn::Set(d, alpha)));
  }
};

struct Elu {
  double alpha;
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(hn::Set(d, alpha), expm1_wide(d, x)));
  }
  double operator()(double x) const { return x > 0 ? x : alpha * std::expm1(x); }
};

/// max(x, 0) + log(1 + e^-|x|), whose exponential never overflows.
struct Softplus {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    const DoubleVector z = exp_within(d, hn::Neg(at_most(d, hn::Abs(x), far)));
    return hn::Add(at_least(d, x, 0), log1p_of_fraction(d, z));
  }
  double operator()(double x) const { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::abs(x))); }
};

/// With n = e^x: x n (n + 2) / (n (n + 2) + 2), which has no cancellation; the quotient is 1 for x > 30.
struct Mish {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    const DoubleVector low = at_least(d, x, -far), two = hn::Set(d, 2);
    const DoubleVector n = exp_within(d, at_most(d, low, 30));
    const DoubleVector w = hn::Mul(n, hn::Add(n, two));
    return hn::Mul(low, hn::Div(w, hn::Add(w, two)));
  }
  double operator()(double x) const {
    if (x > 20) return x;
    if (std::isinf(x)) return -0.0;
    const double n = std::exp(x), w = n * (n + 2);
    return x * (w / (w + 2));
  }
};

/// x sigmoid(u) for x and u of the same sign, |u| <= far, by e^-|u|, which never overflows.
HWY_INLINE DoubleVector gated(WideDouble d, DoubleVector x, DoubleVector magnitude_of_u) {
  const DoubleVector z = exp_within(d, hn::Neg(magnitude_of_u));
  const DoubleVector top = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(x, z), x);
  return hn::Div(top, hn::Add(z, hn::Set(d, 1)));
}
/// x / (1 + e^-u), with its limit at minus infinity.
HWY_INLINE double gated(double x, double u) {
  return std::isinf(x) && x < 0 ? -0.0 : x / (1 + std::exp(-u));
}

/// gated() with u = x; f32 within 2.5 ulp, except for results below 128 times the smallest normal number.
struct Silu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V low = hn::IfThenElse(hn::Lt(x, hn::Set(d, -110)), hn::Set(d, -110), x);  // avoids -inf times 0
    const V z = exp_of_minus_magnitude(d, low);
    const V top = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(low, z), x);
    return hn::Div(top, hn::Add(z, hn::Set(d, 1)));
  }
  double operator()(double x) const { return gated(x, x); }
};

/// x Phi(x) by the normal distribution's tail Q: x Q(-x) for x < 0, where 1 - Q would cancel, else x (1 - Q(x)). Within 7 ulp.
/// Q(t) = e^(-t^2/2) u p(u), u = 1 / (1 + 0.35 t). t^2 is the sum of an exact square and a rest, because e^-s turns an absolute error of s
/// into a relative one. Polynomials are fitted as in wide_math.h.
struct Gelu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    // (e^r - 1) / r on [-log(2)/2, log(2)/2], error 1.1e-8; p, error 1.7e-8, is at least 0.14
    constexpr float exponential[] = {1.000000011f, 0.5000000013f, 0.1666650526f, 0.04166646501f, 0.008369148491f, 0.001393364103f};
    constexpr float mills[] = {0.139619049f,  0.1399053337f,  0.1195033067f, 0.1068541165f,  -0.02636567981f,
                               0.1639751404f, -0.2599512453f, 0.1460276763f, -0.02956771403f};
    const hn::RebindToSigned<D> bits;
    const V one = hn::Set(d, 1), magnitude = hn::Abs(x), far_out = hn::Set(d, 13.25f);  // from here on x Q(|x|) is subnormal
    const auto is_far = hn::Gt(magnitude, far_out);
    const V t = hn::IfThenElse(is_far, far_out, magnitude);
    const V coarse = hn::BitCast(d, hn::And(hn::BitCast(bits, t), hn::Set(bits, ~0xFFF)));  // 12 bits: its square is exact
    const V square = hn::Mul(coarse, coarse), rest_of_square = hn::Mul(hn::Sub(t, coarse), hn::Add(t, coarse));
    const V to_whole_f32 = hn::Set(d, 12582912.0f);  // 1.5 * 2^23
    const V shifted = hn::MulAdd(square, hn::Set(d, -0.72134752f), to_whole_f32);
    const V n = hn::Sub(shifted, to_whole_f32);
    V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), hn::Mul(square, hn::Set(d, -0.5f)));  // log 2 in two parts
    r = hn::MulAdd(n, hn::Set(d, 2.12194440e-4f), r);
    r = hn::MulAdd(rest_of_square, hn::Set(d, -0.5f), r);
    const V scale = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::BitCast(bits, shifted), hn::Set(bits, 127))));
    const V u = hn::Div(one, hn::MulAdd(t, hn::Set(d, 0.35f), one));
    const V ratio = hn::Mul(u, polynomial_f32(d, u, mills));
    const V near_tail = hn::Mul(scale, hn::MulAdd(ratio, hn::Mul(r, polynomial_f32(d, r, exponential)), ratio));
    const V tail = hn::IfThenZeroElse(is_far, near_tail);
    const V low = hn::IfThenElse(hn::Lt(x, hn::Set(d, -16.0f)), hn::Set(d, -16.0f), x);  // avoids -inf times 0
    return hn::Mul(low, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), tail, hn::Sub(one, tail)));
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

/// x/2 (1 + tanh v) = x sigmoid(2 v), v = sqrt(2/pi) (x + 0.044715 x^3)
struct GeluTanh {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    const DoubleVector low = at_least(d, x, -30), inner = at_most(d, low, 30);
    const DoubleVector cubic = hn::MulAdd(hn::Mul(inner, inner), hn::Set(d, 0.044715), hn::Set(d, 1));
    const DoubleVector u = hn::Mul(hn::Mul(inner, cubic), hn::Set(d, 1.5957691216057308));
    return gated(d, low, at_most(d, hn::Abs(u), far));
  }
  double operator()(double x) const { return gated(x, 1.5957691216057308 * (x + 0.044715 * x * x * x)); }
};

template <class T>
void leaky_relu_all(double alpha, const T* x, T* y, std::int64_t n) {
  map(LeakyRelu<T>{static_cast<T>(alpha)}, x, y, n);
}
template <class T>
void elu_all(double alpha, const T* x, T* y, std::int64_t n) {
  map_wide(Elu{alpha}, x, y, n);
}
/// F's vectors are f32 for f32; f64 goes one by one.
template <class F, class T>
void map_f32_all(const T* x, T* y, std::int64_t n) {
  if constexpr (sizeof(T) == sizeof(float)) {
    map(F{}, x, y, n);
  } else {
    map_wide(F{}, x, y, n);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own, about 20 us: leaky_relu is bound by L2 bandwidth, the others by computation.
constexpr std::int64_t cheap = 128 * 1024;
constexpr std::int64_t costly = 24 * 1024;

template <class T>
void with_alpha(const sdk::Call& call, std::int64_t grain, void (*loop)(double alpha, const T* x, T* y, std::int64_t n)) {
  const double alpha = call.attr<tenon_attributes_alpha>().alpha;
  elementwise<T, T, 1>(call, grain, 0, [loop, alpha](const Segment<T, 1>& s, T* y, std::int64_t n) { loop(alpha, s.x[0], y, n); });
}

/// y = x where x > 0, else alpha x
template <class T>
void leaky_relu(const sdk::Call& call) {
  with_alpha<T>(call, cheap, TENON_DISPATCH(leaky_relu_all<T>));
}

/// y = x where x > 0, else alpha (e^x - 1)
template <class T>
void elu(const sdk::Call& call) {
  with_alpha<T>(call, costly, TENON_DISPATCH(elu_all<T>));
}

/// y = log(1 + e^x)
template <class T>
void softplus(const sdk::Call& call) {
  elementwise<T, T>(call, costly, TENON_DISPATCH(map_wide_all<Softplus, T>));
}

/// y = x tanh(softplus x)
template <class T>
void mish(const sdk::Call& call) {
  elementwise<T, T>(call, costly, TENON_DISPATCH(map_wide_all<Mish, T>));
}

/// y = x Phi(x), or its approximation with tanh
template <class T>
void gelu(const sdk::Call& call) {
  const bool approximate = call.attr<tenon_attributes_gelu>().approximate_tanh == 1;
  elementwise<T, T>(call, costly, approximate ? TENON_DISPATCH(map_wide_all<GeluTanh, T>) : TENON_DISPATCH(map_f32_all<Gelu, T>));
}

/// y = x sigmoid x
template <class T>
void silu(const sdk::Call& call) {
  elementwise<T, T>(call, costly, TENON_DISPATCH(map_f32_all<Silu, T>));
}

}  // namespace

TENON_KERNEL_WITH(leaky_relu, elementwise_traits, float, double)
TENON_KERNEL_WITH(elu, elementwise_traits, float, double)
TENON_KERNEL_WITH(softplus, elementwise_traits, float, double)
TENON_KERNEL_WITH(mish, elementwise_traits, float, double)
TENON_KERNEL_WITH(gelu, elementwise_traits, float, double)
TENON_KERNEL_WITH(silu, elementwise_traits, float, double)

}  // namespace tenon::openblas
#endif
