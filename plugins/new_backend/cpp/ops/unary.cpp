// ops/unary.cpp - Neg, Relu, Sigmoid, Tanh and their gradients: the ops of the family "unary" in tenon/ops.def.
#include <cmath>
#include <cstdint>
#include <type_traits>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

namespace tenon::my_backend {
namespace {

/// These kernels take operands of any strides, may write over operands, and work element by element.
constexpr sdk::Traits traits{.strided = true, .in_place = true, .elementwise = true};

/// y[i] = f(x[i])
template <class T, class Function>
void map(const sdk::Call& call, Function f) {
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  sdk::for_each_element<1>(call, [&](std::int64_t i, const auto& at) { y[i] = static_cast<T>(f(x[at[0]])); });
}

/// dx[i] = f(dy[i], y[i])
template <class T, class Function>
void map_gradient(const sdk::Call& call, Function f) {
  const T* dy = call.input<T>(0);
  const T* y = call.input<T>(1);
  T* dx = call.output<T>(0);
  sdk::for_each_element<2>(call, [&](std::int64_t i, const auto& at) { dx[i] = f(dy[at[0]], y[at[1]]); });
}

/// y = -x; the lowest integer is its own negative.
template <class T>
void neg(const sdk::Call& call) {
  map<T>(call, [](T x) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(std::make_unsigned_t<T>{0} - static_cast<std::make_unsigned_t<T>>(x));
    } else {
      return -x;
    }
  });
}

/// y = max(0, x); a NaN stays one.
template <class T>
void relu(const sdk::Call& call) {
  map<T>(call, [](T x) { return x <= 0 ? T(0) : x; });
}

/// dx = dy where y > 0, else 0; a NaN in y stays one.
template <class T>
void relu_grad(const sdk::Call& call) {
  map_gradient<T>(call, [](T dy, T y) { return y > 0 ? dy : (std::isnan(y) ? y : T(0)); });
}

/// y = 1 / (1 + exp(-x)), in a form in which exp never overflows.
template <class T>
void sigmoid(const sdk::Call& call) {
  map<T>(call, [](T x) {
    const T e = std::exp(-std::abs(x));
    return (x < 0 ? e : T(1)) / (T(1) + e);
  });
}

/// dx = dy y (1 - y)
template <class T>
void sigmoid_grad(const sdk::Call& call) {
  map_gradient<T>(call, [](T dy, T y) { return dy * y * (T(1) - y); });
}

/// y = tanh x
template <class T>
void tanh(const sdk::Call& call) {
  map<T>(call, [](T x) { return std::tanh(x); });
}

/// dx = dy (1 - y^2)
template <class T>
void tanh_grad(const sdk::Call& call) {
  map_gradient<T>(call, [](T dy, T y) { return dy * ((T(1) - y) * (T(1) + y)); });
}

}  // namespace
TENON_KERNEL_WITH(neg, traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(relu, traits, float, double)
TENON_KERNEL_WITH(relu_grad, traits, float, double)
TENON_KERNEL_WITH(sigmoid, traits, float, double)
TENON_KERNEL_WITH(sigmoid_grad, traits, float, double)
TENON_KERNEL_WITH(tanh, traits, float, double)
TENON_KERNEL_WITH(tanh_grad, traits, float, double)
}  // namespace tenon::my_backend
