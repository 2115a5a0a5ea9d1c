// SPDX-License-Identifier: Apache-2.0
// ops/logic.cpp - and, or, xor, not, is_nan, is_inf, in plain loops: the compiler's vector code is bound by memory bandwidth.
#include <cmath>
#include <functional>
#include <limits>

#include "elementwise/strided_loop.h"

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us from L2.
constexpr std::int64_t grain = 256 * 1024;

/// A bool is one byte, 0 or 1. Bitwise operations on bytes are vectorised; short-circuit operations on bool are not.
using Byte = std::uint8_t;

template <class F>
void combine(const sdk::Call& call) {
  elementwise<Byte, Byte, 2>(call, grain, 0b11, PairLoop<Byte, Byte>(map_pairs<F>));
}

template <class T, class Function>
void classify(const sdk::Call& call, Function f) {
  elementwise<T, bool, 1>(call, grain, 0, [f](const Segment<T, 1>& s, bool* y, std::int64_t n) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(s.x[0][i]);
  });
}

/// y = a and b
template <class T>
void logical_and(const sdk::Call& call) {
  combine<std::bit_and<Byte>>(call);
}

/// y = a or b
template <class T>
void logical_or(const sdk::Call& call) {
  combine<std::bit_or<Byte>>(call);
}

/// y = a or b but not both
template <class T>
void logical_xor(const sdk::Call& call) {
  combine<std::bit_xor<Byte>>(call);
}

/// y = not x
template <class T>
void logical_not(const sdk::Call& call) {
  classify<T>(call, [](T x) { return !x; });
}

/// y = whether x is NaN
template <class T>
void is_nan(const sdk::Call& call) {
  classify<T>(call, [](T x) { return x != x; });
}

/// y = whether x is infinite, of either sign
template <class T>
void is_inf(const sdk::Call& call) {
  classify<T>(call, [](T x) { return std::abs(x) == std::numeric_limits<T>::infinity(); });
}

}  // namespace

TENON_KERNEL_WITH(logical_and, elementwise_traits, bool)
TENON_KERNEL_WITH(logical_or, elementwise_traits, bool)
TENON_KERNEL_WITH(logical_xor, elementwise_traits, bool)
TENON_KERNEL_WITH(logical_not, elementwise_traits, bool)
TENON_KERNEL_WITH(is_nan, elementwise_traits, float, double)
TENON_KERNEL_WITH(is_inf, elementwise_traits, float, double)

}  // namespace tenon::openblas
