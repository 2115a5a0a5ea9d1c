// SPDX-License-Identifier: Apache-2.0
// And, Or, Xor, Not of bool; IsNaN, IsInf.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
namespace {

template <class T>
void logical_and(const sdk::Call& call) {
  map<T, T, T>(call, functions::And{});
}

template <class T>
void logical_or(const sdk::Call& call) {
  map<T, T, T>(call, functions::Or{});
}

template <class T>
void logical_xor(const sdk::Call& call) {
  map<T, T, T>(call, functions::Xor{});
}

template <class T>
void logical_not(const sdk::Call& call) {
  map<bool, T>(call, functions::Not{});
}

template <class T>
void is_nan(const sdk::Call& call) {
  map<bool, T>(call, functions::IsNaN{});
}

template <class T>
void is_inf(const sdk::Call& call) {
  map<bool, T>(call, functions::IsInf{});
}

}  // namespace
TENON_KERNEL_WITH(logical_and, elementwise_traits, bool)
TENON_KERNEL_WITH(logical_or, elementwise_traits, bool)
TENON_KERNEL_WITH(logical_xor, elementwise_traits, bool)
TENON_KERNEL_WITH(logical_not, elementwise_traits, bool)
TENON_KERNEL_WITH(is_nan, elementwise_traits, float, double)
TENON_KERNEL_WITH(is_inf, elementwise_traits, float, double)
}  // namespace tenon::cuda
