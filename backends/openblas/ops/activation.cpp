// SPDX-License-Identifier: Apache-2.0
// ops/activation.cpp - leaky_relu, elu, softplus, mish, gelu, silu: f32 by vector code; f64 by the C library.
#include "simd/foreach_target.h"

#include <cmath>

#include "elementwise/strided_loop.h"
#include "simd/activations.h"
#include "simd/f32_math.h"
#include "simd/wide_math.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

template <class T>
struct LeakyRelu {
  T alpha;
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(d)), x, hn::Mul(x, hn::Set(d, alpha)));
  }
};

/// In f32 within 1.1 ulp for an alpha that is a power of two.
struct Elu {
  double alpha;
  HWY_INLINE FloatVector operator()(WideFloat d, FloatVector x) const {
    const FloatVector end = hn::Set(d, -87);  // e^x - 1 is -1 long before
    const FloatVector low = hn::IfThenElse(hn::Lt(x, end), end, x);
    const FloatVector negative = hn::Mul(hn::Set(d, static_cast<float>(alpha)), expm1_within_f32(d, low));
    return hn::IfThenElse(hn::Ge(x, hn::Zero(d)), x, negative);
  }
  double operator()(double x) const { return x > 0 ? x : alpha * std::expm1(x); }
};

/// max(x, 0) + log(1 + e^-|x|), whose exponential never overflows. In f32 within 1.7 ulp.
struct Softplus {
  HWY_INLINE FloatMask usual(WideFloat d, FloatVector x) const { return hn::Ge(x, hn::Set(d, -87)); }
  HWY_INLINE FloatVector fast(WideFloat d, FloatVector x) const {
    const FloatVector z = exp_within_f32(d, hn::Max(hn::Neg(hn::Abs(x)), hn::Set(d, -87)));
    return hn::Add(hn::Max(x, hn::Zero(d)), log1p_of_fraction_f32(d, z));
  }
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    const DoubleVector z = exp_within(d, hn::Neg(at_most(d, hn::Abs(x), far)));
    return hn::Add(at_least(d, x, 0), log1p_of_fraction(d, z));
  }
  double operator()(double x) const { return (x < 0 ? 0 : x) + std::log1p(std::exp(-std::abs(x))); }
};

/// With n = e^x: x n (n + 2) / (n (n + 2) + 2), which has no cancellation; the quotient is 1 for x > 30. In f32 within
/// 4.6 ulp.
struct Mish {
  HWY_INLINE FloatMask usual(WideFloat d, FloatVector x) const { return hn::Ge(x, hn::Set(d, -87)); }
  HWY_INLINE FloatVector fast(WideFloat d, FloatVector x) const {
    const FloatVector n = exp_within_f32(d, hn::Min(x, hn::Set(d, 30))), two = hn::Set(d, 2);
    const FloatVector w = hn::Mul(n, hn::Add(n, two));
    return hn::Mul(x, quotient(d, w, hn::Add(w, two)));
  }
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
/// x/2 (1 + tanh v) = x sigmoid(2 v), v = sqrt(2/pi) (x + 0.044715 x^3)
struct GeluTanh {
  HWY_INLINE DoubleVector operator()(WideDouble d, DoubleVector x) const {
    const DoubleVector low = at_least(d, x, -30), inner = at_most(d, low, 30);
    const DoubleVector cubic = hn::MulAdd(hn::Mul(inner, inner), hn::Set(d, 0.044715), hn::Set(d, 1));
    const DoubleVector u = hn::Mul(hn::Mul(inner, cubic), hn::Set(d, 1.5957691216057308));
    return gated(d, low, at_most(d, hn::Abs(u), far));
  }
  double operator()(double x) const { return gated_number(x, 1.5957691216057308 * (x + 0.044715 * x * x * x)); }
};

template <class T>
void leaky_relu_all(double alpha, const T* x, T* y, std::int64_t n) {
  map(LeakyRelu<T>{static_cast<T>(alpha)}, x, y, n);
}
template <class T>
void elu_all(double alpha, const T* x, T* y, std::int64_t n) {
  if constexpr (sizeof(T) == sizeof(float)) {
    map(Elu{alpha}, x, y, n);
  } else {
    map_wide(Elu{alpha}, x, y, n);
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
  elementwise<T, T>(call, costly, TENON_DISPATCH(map_from_f32<Softplus, T>));
}

/// y = x tanh(softplus x)
template <class T>
void mish(const sdk::Call& call) {
  elementwise<T, T>(call, costly, TENON_DISPATCH(map_from_f32<Mish, T>));
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
