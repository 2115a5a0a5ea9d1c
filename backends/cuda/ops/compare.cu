// SPDX-License-Identifier: Apache-2.0
// Comparisons; a NaN is unequal to everything.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"
#include "movement/movable.h"

namespace tenon::cuda {
namespace {

/// Integers are equal if their bits are.
template <class T>
void equal(const sdk::Call& call) {
  using Bits = std::conditional_t<std::is_floating_point_v<T>, T, BitsOf<T>>;
  map<bool, Bits, Bits>(call, functions::Equal{});
}

template <class T>
void less(const sdk::Call& call) {
  map<bool, T, T>(call, functions::Less{});
}

template <class T>
void less_equal(const sdk::Call& call) {
  map<bool, T, T>(call, functions::LessOrEqual{});
}

/// a > b is b < a, and runs its kernel.
struct Swapped {
  sdk::Operand inputs[2];
  sdk::Call call;
  explicit Swapped(const sdk::Call& of) : inputs{of.inputs[1], of.inputs[0]}, call(of) { call.inputs = inputs; }
};

template <class T>
void greater(const sdk::Call& call) {
  less<T>(Swapped(call).call);
}

template <class T>
void greater_equal(const sdk::Call& call) {
  less_equal<T>(Swapped(call).call);
}

}  // namespace
TENON_KERNEL_WITH(equal, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(less, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(less_equal, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(greater, elementwise_traits, TENON_COMPARABLE_TYPES)
TENON_KERNEL_WITH(greater_equal, elementwise_traits, TENON_COMPARABLE_TYPES)
}  // namespace tenon::cuda
