// SPDX-License-Identifier: Apache-2.0
// Elementwise arithmetic of two operands with NumPy broadcasting: one operation in T per element, IEEE's or wrapping.
#include <cmath>
#include <limits>

#include "map.h"

namespace tenon::reference {
namespace {

/// y[i] = f(a[i], b[i]), a and b broadcast to the shape of y. y may alias an operand of the same shape: an element is read before it is
/// written.
template <class T, class Function>
void elementwise(const sdk::Call& call, Function f) {
  const T* a = call.input<T>(0);
  const T* b = call.input<T>(1);
  T* y = call.output<T>(0);
  sdk::for_each_element<2>(call, [&](std::int64_t i, const auto& at) { y[i] = f(a[at[0]], b[at[1]]); });
}

/// f on the unsigned counterparts of integers, on floats as they are.
template <class T, class Function>
void wrapping(const sdk::Call& call, Function f) {
  elementwise<T>(call, [f](T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(f(static_cast<Unsigned<T>>(a), static_cast<Unsigned<T>>(b)));
    } else {
      return f(a, b);
    }
  });
}

/// y = a + b
template <class T>
void add(const sdk::Call& call) {
  wrapping<T>(call, [](auto a, auto b) { return a + b; });
}

/// y = a - b
template <class T>
void sub(const sdk::Call& call) {
  wrapping<T>(call, [](auto a, auto b) { return a - b; });
}

/// y = a b
template <class T>
void mul(const sdk::Call& call) {
  wrapping<T>(call, [](auto a, auto b) { return a * b; });
}

/// y = a / b. Floats: x / 0 is an infinity, 0 / 0 is NaN. Integers: the fraction is truncated; the lowest value by -1 is the lowest value.
///
/// Errors  INVALID_ARGUMENT for an integer divided by zero.
template <class T>
void div(const sdk::Call& call) {
  elementwise<T>(call, [](T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      if (b == 0) throw sdk::Error(TENON_INVALID_ARGUMENT, "div: an integer divided by zero; expected divisors other than 0");
      if (b == -1) return negated(a);
    }
    return a / b;
  });
}

/// y = a^b, as IEEE 754's pow.
template <class T>
void pow(const sdk::Call& call) {
  elementwise<T>(call, [](T a, T b) { return static_cast<T>(std::pow(double{a}, double{b})); });
}

/// The operand that `wins(a, b)` or `wins(b, a)` names; NaN if either is.
template <class T, class Wins>
T chosen(T a, T b, Wins wins) {
  if (a != a) return a;
  if (b != b) return b;
  return wins(b, a) ? b : a;
}

/// y = the larger of a and b; NaN propagates.
template <class T>
void maximum(const sdk::Call& call) {
  elementwise<T>(call, [](T a, T b) { return chosen(a, b, [](T p, T q) { return p > q; }); });
}

/// y = the smaller of a and b; NaN propagates.
template <class T>
void minimum(const sdk::Call& call) {
  elementwise<T>(call, [](T a, T b) { return chosen(a, b, [](T p, T q) { return p < q; }); });
}

}  // namespace
TENON_KERNEL_WITH(add, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(sub, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(mul, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(div, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(pow, elementwise_traits, float, double)
TENON_KERNEL_WITH(maximum, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(minimum, elementwise_traits, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::reference
