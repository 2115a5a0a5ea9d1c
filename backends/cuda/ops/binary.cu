// SPDX-License-Identifier: Apache-2.0
// Arithmetic of two operands, NumPy broadcasting.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
namespace {

template <class T>
void add(const sdk::Call& call) {
  map<T, T, T>(call, functions::Add{});
}

template <class T>
void sub(const sdk::Call& call) {
  map<T, T, T>(call, functions::Sub{});
}

template <class T>
void mul(const sdk::Call& call) {
  map<T, T, T>(call, functions::Mul{});
}

/// Errors  INVALID_ARGUMENT for an integer divided by zero, when the work is waited for.
template <class T>
void div(const sdk::Call& call) {
  if constexpr (std::is_integral_v<T>) {
    map<T, T, T>(call, functions::IntegerDiv{fault_of(call, TENON_OP_Div)});
  } else {
    map<T, T, T>(call, functions::Div{});
  }
}

template <class T>
void pow(const sdk::Call& call) {
  map<T, T, T>(call, functions::Pow{});
}

template <class T>
void maximum(const sdk::Call& call) {
  map<T, T, T>(call, functions::Max{});
}

template <class T>
void minimum(const sdk::Call& call) {
  map<T, T, T>(call, functions::Min{});
}

}  // namespace
TENON_KERNEL_WITH(add, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(sub, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(mul, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(div, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(pow, elementwise_traits, float, double)
TENON_KERNEL_WITH(maximum, elementwise_traits, float, double, std::int32_t, std::int64_t)
TENON_KERNEL_WITH(minimum, elementwise_traits, float, double, std::int32_t, std::int64_t)
}  // namespace tenon::cuda
