// SPDX-License-Identifier: Apache-2.0
// ops/unary.cpp - vectorised neg, relu, sigmoid, tanh and their gradients.
#include "simd/foreach_target.h"

#include <cstdint>
#include <limits>
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

// Relu and its gradient take bf16 by its bits, as integers of 16 bits: those of NaN lie above infinity's, whose bits are 0x7f80, or, of
// negative numbers, above -128.
struct ReluOfBits {
  std::int16_t operator()(std::int16_t x) const { return x > std::numeric_limits<std::int16_t>::min() && x <= -128 ? std::int16_t{0} : x; }
};
struct ReluGradOfBits {
  std::int16_t operator()(std::int16_t dy, std::int16_t y) const {
    const bool is_nan = (y & 0x7fff) > 0x7f80;
    return is_nan ? y : y > 0 ? dy : std::int16_t{0};
  }
};
void relu_bf16(const sdk::BFloat16* x, sdk::BFloat16* y, std::int64_t n) {
  map(ReluOfBits{}, reinterpret_cast<const std::int16_t*>(x), reinterpret_cast<std::int16_t*>(y), n);
}
void relu_grad_bf16(const Segment<sdk::BFloat16, 2>& s, sdk::BFloat16* dx, std::int64_t n) {
  map(ReluGradOfBits{}, reinterpret_cast<const std::int16_t*>(s.x[0]), reinterpret_cast<const std::int16_t*>(s.x[1]),
      reinterpret_cast<std::int16_t*>(dx), n);
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
  if constexpr (std::is_same_v<T, sdk::BFloat16>) {
    elementwise<T, T>(call, cheap, TENON_DISPATCH(relu_bf16));
  } else {
    elementwise<T, T>(call, cheap, TENON_DISPATCH(map_all<Relu, T>));
  }
}

/// dx = dy where y > 0, else 0; NaN propagates
template <class T>
void relu_grad(const sdk::Call& call) {
  if constexpr (std::is_same_v<T, sdk::BFloat16>) {
    gradient<T>(call, TENON_DISPATCH(relu_grad_bf16));
  } else {
    gradient<T>(call, TENON_DISPATCH(map_gradient<ReluGrad, T>));
  }
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
TENON_KERNEL_WITH(relu, elementwise_traits, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(relu_grad, elementwise_traits, sdk::BFloat16, float, double)
TENON_KERNEL_WITH(sigmoid, elementwise_traits, float, double)
TENON_KERNEL_WITH(sigmoid_grad, elementwise_traits, float, double)
TENON_KERNEL_WITH(tanh, elementwise_traits, float, double)
TENON_KERNEL_WITH(tanh_grad, elementwise_traits, float, double)

}  // namespace tenon::openblas
#endif
