// SPDX-License-Identifier: Apache-2.0
// Comparisons with NumPy broadcasting; the result is bool. f16 and bf16 are compared as f32.
#include <tenon/sdk/element.h>

#include "map.h"

namespace tenon::reference {
namespace {

/// y[i] = f(a[i], b[i])
template <class T, class Function>
void compare(const sdk::Call& call, Function f) {
  const T* a = call.input<T>(0);
  const T* b = call.input<T>(1);
  bool* y = call.output<bool>(0);
  sdk::for_each_element<2>(call, [&](std::int64_t i, const auto& at) { y[i] = f(a[at[0]], b[at[1]]); });
}

/// y = (a == b); NaN equals nothing, -0 equals 0.
template <class T>
void equal(const sdk::Call& call) {
  compare<T>(call, [](T a, T b) { return a == b; });
}

/// y = (a < b); false for NaN, as the others below.
template <class T>
void less(const sdk::Call& call) {
  compare<T>(call, [](T a, T b) { return a < b; });
}

/// y = (a <= b)
template <class T>
void less_equal(const sdk::Call& call) {
  compare<T>(call, [](T a, T b) { return a <= b; });
}

/// y = (a > b)
template <class T>
void greater(const sdk::Call& call) {
  compare<T>(call, [](T a, T b) { return a > b; });
}

/// y = (a >= b)
template <class T>
void greater_equal(const sdk::Call& call) {
  compare<T>(call, [](T a, T b) { return a >= b; });
}

}  // namespace
TENON_KERNEL_WITH(equal, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(less, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(less_equal, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(greater, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(greater_equal, elementwise_traits, TENON_COMPARABLE_TYPES)
}  // namespace tenon::reference
