// SPDX-License-Identifier: Apache-2.0
// ops/unary.cpp - vectorised neg, relu, sigmoid, tanh and their gradients.
#include "simd/instruction_set.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/unary.cpp"
#include <hwy/foreach_target.h>

#include "elementwise/strided_loop.h"
#include "simd/simd.h"

#ifndef TENON_OPENBLAS_UNARY_OPS
#define TENON_OPENBLAS_UNARY_OPS
namespace tenon::openblas {
namespace {
enum class UnaryOp { neg, relu, sigmoid, tanh, relu_grad, sigmoid_grad, tanh_grad };
}  // namespace
}  // namespace tenon::openblas
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

struct Neg {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return hn::Neg(x);
  }
};

/// dx = dy where y > 0, NaN where y is NaN, else 0.
struct ReluGrad {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V dy, V y) const {
    return hn::IfThenElse(hn::IsNaN(y), y, hn::IfThenElseZero(hn::Gt(y, hn::Zero(d)), dy));
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
void run(UnaryOp op, const T* a, const T* b, T* y, std::int64_t n) {
  switch (op) {
    case UnaryOp::neg:
      return map(Neg{}, a, y, n);
    case UnaryOp::relu:
      return map(Relu{}, a, y, n);
    case UnaryOp::sigmoid:
      return map(Sigmoid{}, a, y, n);
    case UnaryOp::tanh:
      return map(Tanh{}, a, y, n);
    case UnaryOp::relu_grad:
      return map(ReluGrad{}, a, b, y, n);
    case UnaryOp::sigmoid_grad:
      return map(SigmoidGrad{}, a, b, y, n);
    case UnaryOp::tanh_grad:
      return map(TanhGrad{}, a, b, y, n);
  }
}

}  // namespace

void unary_f32(UnaryOp op, const float* a, const float* b, float* y, std::int64_t n) {
  run(op, a, b, y, n);
}
void unary_f64(UnaryOp op, const double* a, const double* b, double* y, std::int64_t n) {
  run(op, a, b, y, n);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <type_traits>

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own, about 20 us: cheap ones are bound by L2 bandwidth, the others by computation.
constexpr std::int64_t cheap = 128 * 1024;
constexpr std::int64_t costly = 48 * 1024;

void run(UnaryOp op, const float* a, const float* b, float* y, std::int64_t n) {
  TENON_DISPATCH(unary_f32)(op, a, b, y, n);
}
void run(UnaryOp op, const double* a, const double* b, double* y, std::int64_t n) {
  TENON_DISPATCH(unary_f64)(op, a, b, y, n);
}

template <class T>
void one_operand(const sdk::Call& call, UnaryOp op, std::int64_t grain) {
  elementwise<T, T, 1>(call, grain, 0, [op](const Segment<T, 1>& s, T* y, std::int64_t n) { run(op, s.x[0], nullptr, y, n); });
}

template <class T>
void gradient(const sdk::Call& call, UnaryOp op) {
  elementwise<T, T, 2>(call, cheap, 0, [op](const Segment<T, 2>& s, T* dx, std::int64_t n) { run(op, s.x[0], s.x[1], dx, n); });
}

/// y = -x; the lowest integer is its own negative.
template <class T>
void neg(const sdk::Call& call) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;  // wraps
    elementwise<T, T, 1>(call, cheap, 0, [](const Segment<T, 1>& s, T* y, std::int64_t n) {
      for (std::int64_t i = 0; i < n; ++i) y[i] = static_cast<T>(U{0} - static_cast<U>(s.x[0][i]));
    });
  } else {
    one_operand<T>(call, UnaryOp::neg, cheap);
  }
}

/// y = max(0, x); NaN propagates
template <class T>
void relu(const sdk::Call& call) {
  one_operand<T>(call, UnaryOp::relu, cheap);
}

/// dx = dy where y > 0, else 0; NaN propagates
template <class T>
void relu_grad(const sdk::Call& call) {
  gradient<T>(call, UnaryOp::relu_grad);
}

/// y = 1 / (1 + e^-x)
template <class T>
void sigmoid(const sdk::Call& call) {
  one_operand<T>(call, UnaryOp::sigmoid, costly);
}

/// dx = dy y (1 - y)
template <class T>
void sigmoid_grad(const sdk::Call& call) {
  gradient<T>(call, UnaryOp::sigmoid_grad);
}

/// y = tanh x
template <class T>
void tanh(const sdk::Call& call) {
  one_operand<T>(call, UnaryOp::tanh, costly);
}

/// dx = dy (1 - y^2)
template <class T>
void tanh_grad(const sdk::Call& call) {
  gradient<T>(call, UnaryOp::tanh_grad);
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
