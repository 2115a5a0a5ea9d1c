// SPDX-License-Identifier: Apache-2.0
// ops/compare.cpp - comparisons with NumPy broadcasting, in plain loops: the compiler's vector code is bound by memory bandwidth.
#include <functional>

#include <tenon/sdk/element.h>

#include "elementwise/strided_loop.h"

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us from L2.
constexpr std::int64_t grain = 128 * 1024;

template <class F, class T>
void compare(const sdk::Call& call) {
  elementwise<T, bool, 2>(call, grain, 0b11, PairLoop<T, bool>(map_pairs<F>));
}

/// y = a == b; a NaN equals nothing, -0 equals 0.
template <class T>
void equal(const sdk::Call& call) {
  compare<std::equal_to<T>, T>(call);
}

/// y = a < b; false if either is NaN, as for the comparisons below.
template <class T>
void less(const sdk::Call& call) {
  compare<std::less<T>, T>(call);
}

/// y = a <= b
template <class T>
void less_equal(const sdk::Call& call) {
  compare<std::less_equal<T>, T>(call);
}

/// y = a > b
template <class T>
void greater(const sdk::Call& call) {
  compare<std::greater<T>, T>(call);
}

/// y = a >= b
template <class T>
void greater_equal(const sdk::Call& call) {
  compare<std::greater_equal<T>, T>(call);
}

}  // namespace

TENON_KERNEL_WITH(equal, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(less, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(less_equal, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(greater, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(greater_equal, elementwise_traits, TENON_COMPARABLE_TYPES)

}  // namespace tenon::openblas
