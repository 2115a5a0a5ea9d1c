// SPDX-License-Identifier: Apache-2.0
// Exponentials, logarithms, erf.
#include "elementwise/map.cuh"
#include "kernel/functions.cuh"

namespace tenon::cuda {
namespace {

template <class T>
void exp(const sdk::Call& call) {
  map<T, T>(call, functions::Exp{});
}

template <class T>
void expm1(const sdk::Call& call) {
  map<T, T>(call, functions::Expm1{});
}

template <class T>
void log(const sdk::Call& call) {
  map<T, T>(call, functions::Log{});
}

template <class T>
void log2(const sdk::Call& call) {
  map<T, T>(call, functions::Log2{});
}

template <class T>
void log1p(const sdk::Call& call) {
  map<T, T>(call, functions::Log1p{});
}

template <class T>
void erf(const sdk::Call& call) {
  map<T, T>(call, functions::Erf{});
}

}  // namespace
TENON_KERNEL_WITH(exp, elementwise_traits, float, double)
TENON_KERNEL_WITH(expm1, elementwise_traits, float, double)
TENON_KERNEL_WITH(log, elementwise_traits, float, double)
TENON_KERNEL_WITH(log2, elementwise_traits, float, double)
TENON_KERNEL_WITH(log1p, elementwise_traits, float, double)
TENON_KERNEL_WITH(erf, elementwise_traits, float, double)
}  // namespace tenon::cuda
