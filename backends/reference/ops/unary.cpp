// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of one operand and their gradients, which take the function's result y. Computed in f64, rounded once.
#include <cmath>

#include "map.h"

namespace tenon::reference {
namespace {

/// dx[i] = f(dy[i], y[i]); dx may be dy or y.
template <class T, class Function>
void map_gradient(const sdk::Call& call, Function f) {
  const T* dy = call.input<T>(0);
  const T* y = call.input<T>(1);
  T* dx = call.output<T>(0);
  sdk::for_each_element<2>(call, [&](std::int64_t i, const auto& at) { dx[i] = static_cast<T>(f(double{dy[at[0]]}, double{y[at[1]]})); });
}

/// y = -x
///
/// Dtypes  f32, f64, i32, i64; integers wrap.
template <class T>
void neg(const sdk::Call& call) {
  map<T>(call, [](auto x) { return negated(x); });
}

/// y = max(0, x); NaN stays NaN.
template <class T>
void relu(const sdk::Call& call) {
  map<T>(call, [](double x) { return x <= 0 ? 0.0 : x; });
}

/// dx = dy where y > 0, 0 where y = 0 (so the derivative at 0 is 0), NaN where y is NaN.
template <class T>
void relu_grad(const sdk::Call& call) {
  map_gradient<T>(call, [](double dy, double y) { return y > 0 ? dy : (std::isnan(y) ? y : 0.0); });
}

/// y = 1 / (1 + exp(-x)), written so that exp never overflows.
template <class T>
void sigmoid(const sdk::Call& call) {
  map<T>(call, [](double x) {
    const double e = std::exp(-std::abs(x));
    return (x < 0 ? e : 1.0) / (1.0 + e);
  });
}

/// dx = dy y (1 - y)
template <class T>
void sigmoid_grad(const sdk::Call& call) {
  map_gradient<T>(call, [](double dy, double y) { return dy * y * (1.0 - y); });
}

/// y = tanh x
template <class T>
void tanh(const sdk::Call& call) {
  map<T>(call, [](double x) { return std::tanh(x); });
}

/// dx = dy (1 - y^2), as (1 - y)(1 + y), which does not cancel near |y| = 1.
template <class T>
void tanh_grad(const sdk::Call& call) {
  map_gradient<T>(call, [](double dy, double y) { return dy * ((1.0 - y) * (1.0 + y)); });
}

}  // namespace
TENON_KERNEL_WITH(neg, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(relu, elementwise_traits, float, double)
TENON_KERNEL_WITH(relu_grad, elementwise_traits, float, double)
TENON_KERNEL_WITH(sigmoid, elementwise_traits, float, double)
TENON_KERNEL_WITH(sigmoid_grad, elementwise_traits, float, double)
TENON_KERNEL_WITH(tanh, elementwise_traits, float, double)
TENON_KERNEL_WITH(tanh_grad, elementwise_traits, float, double)
}  // namespace tenon::reference
