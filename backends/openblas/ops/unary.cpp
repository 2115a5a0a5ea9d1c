// SPDX-License-Identifier: Apache-2.0
// ops/unary.cpp - vectorised neg, relu, sigmoid, tanh and their gradients.
#include "simd/foreach_target.h"

#include <type_traits>

#include "elementwise/strided_loop.h"
#include "simd/activations.h"
#include "simd/f32_math.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

struct Neg {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Neg(x);
  }
  template <class T>
  T operator()(T x) const {
    using U = std::make_unsigned_t<T>;  // wraps
    return static_cast<T>(U{0} - static_cast<U>(x));
  }
};

/// dx = dy y (1 - y)
struct SigmoidGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V y) const {
    return hn::Mul(dy, hn::Mul(y, hn::Sub(hn::Set(d, 1), y)));
  }
};

/// dx = dy (1 - y^2), factored because 1 - y y cancels near 1.
struct TanhGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V y) const {
    const V one = hn::Set(d, 1);
    return hn::Mul(dy, hn::Mul(hn::Sub(one, y), hn::Add(one, y)));
  }
};

template <class T>
void tanh_all(const T* x, T* y, std::int64_t n) {
  map(std::conditional_t<sizeof(T) == sizeof(float), TanhF32, Tanh>{}, x, y, n);
}

template <class F, class T>
void map_gradient(const Segment<T, 2>& s, T* dx, std::int64_t n) {
  map(F{}, s.x[0], s.x[1], dx, n);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Elements worth a thread of their own, about 20 us: cheap ones are bound by L2 bandwidth, the others by computation.
constexpr std::int64_t cheap = 128 * 1024;
constexpr std::int64_t costly = 48 * 1024;

template <class T>
void gradient(const sdk::Call& call, PairLoop<T, T> loop) {
  elementwise<T, T, 2>(call, cheap, 0, loop);
}

/// y = -x; the lowest integer is its own negative.
template <class T>
void neg(const sdk::Call& call) {
  elementwise<T, T>(call, cheap, TENON_DISPATCH(map_all<Neg, T>));
}

/// y = max(0, x); NaN propagates
template <class T>
void relu(const sdk::Call& call) {
  elementwise<T, T>(call, cheap, TENON_DISPATCH(map_all<Relu, T>));
}

/// dx = dy where y > 0, else 0; NaN propagates
template <class T>
void relu_grad(const sdk::Call& call) {
  gradient<T>(call, TENON_DISPATCH(map_gradient<ReluGrad, T>));
}

/// y = 1 / (1 + e^-x)
template <class T>
void sigmoid(const sdk::Call& call) {
  elementwise<T, T>(call, costly, TENON_DISPATCH(map_all<Sigmoid, T>));
}

/// dx = dy y (1 - y)
template <class T>
void sigmoid_grad(const sdk::Call& call) {
  gradient<T>(call, TENON_DISPATCH(map_gradient<SigmoidGrad, T>));
}

/// y = tanh x
template <class T>
void tanh(const sdk::Call& call) {
  elementwise<T, T>(call, costly, TENON_DISPATCH(tanh_all<T>));
}

/// dx = dy (1 - y^2)
template <class T>
void tanh_grad(const sdk::Call& call) {
  gradient<T>(call, TENON_DISPATCH(map_gradient<TanhGrad, T>));
}

}  // namespace

TENON_KERNEL_WITH(neg, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(relu, elementwise_traits, float, double)
TENON_KERNEL_WITH(relu_grad, elementwise_traits, float, double)
TENON_KERNEL_WITH(sigmoid, elementwise_traits, float, double)
TENON_KERNEL_WITH(sigmoid_grad, elementwise_traits, float, double)
TENON_KERNEL_WITH(tanh, elementwise_traits, float, double)
TENON_KERNEL_WITH(tanh_grad, elementwise_traits, float, double)

}  // namespace tenon::openblas
#endif
