// SPDX-License-Identifier: Apache-2.0
// And, or, xor, not of bool with NumPy broadcasting, and classification of floats.
#include <cmath>

#include "map.h"

namespace tenon::reference {
namespace {

template <class T, class Function>
void combine(const sdk::Call& call, Function f) {
  const T* a = call.input<T>(0);
  const T* b = call.input<T>(1);
  T* y = call.output<T>(0);
  sdk::for_each_element<2>(call, [&](std::int64_t i, const auto& at) { y[i] = f(a[at[0]], b[at[1]]); });
}

template <class T, class Function>
void classify(const sdk::Call& call, Function f) {
  const T* x = call.input<T>(0);
  bool* y = call.output<bool>(0);
  sdk::for_each_element<1>(call, [&](std::int64_t i, const auto& at) { y[i] = f(x[at[0]]); });
}

/// y = a and b
template <class T>
void logical_and(const sdk::Call& call) {
  combine<T>(call, [](T a, T b) { return a && b; });
}

/// y = a or b
template <class T>
void logical_or(const sdk::Call& call) {
  combine<T>(call, [](T a, T b) { return a || b; });
}

/// y = a or b but not both
template <class T>
void logical_xor(const sdk::Call& call) {
  combine<T>(call, [](T a, T b) { return a != b; });
}

/// y = not x
template <class T>
void logical_not(const sdk::Call& call) {
  classify<T>(call, [](T x) { return !x; });
}

/// y = whether x is NaN
template <class T>
void is_nan(const sdk::Call& call) {
  classify<T>(call, [](T x) { return std::isnan(x); });
}

/// y = whether x is infinite, of either sign
template <class T>
void is_inf(const sdk::Call& call) {
  classify<T>(call, [](T x) { return std::isinf(x); });
}

}  // namespace
TENON_KERNEL_WITH(logical_and, elementwise_traits, bool)
TENON_KERNEL_WITH(logical_or, elementwise_traits, bool)
TENON_KERNEL_WITH(logical_xor, elementwise_traits, bool)
TENON_KERNEL_WITH(logical_not, elementwise_traits, bool)
TENON_KERNEL_WITH(is_nan, elementwise_traits, float, double)
TENON_KERNEL_WITH(is_inf, elementwise_traits, float, double)
}  // namespace tenon::reference
