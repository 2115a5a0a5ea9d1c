// SPDX-License-Identifier: Apache-2.0
// ops/compare.cpp - comparisons with NumPy broadcasting, in plain loops: the compiler's vector code is bound by memory bandwidth.
#include <functional>

#include "elementwise/strided_loop.h"

namespace tenon::openblas {
namespace {

// Elements worth a thread of their own: about 20 us from L2.
constexpr std::int64_t grain = 128 * 1024;

template <class T, class Function>
void compare(const sdk::Call& call, Function f) {
  elementwise<T, bool, 2>(call, grain, 0b11, [f](const Segment<T, 2>& s, bool* y, std::int64_t n) {
    const T *a = s.x[0], *b = s.x[1];
    if (s.scalars == 0) {
      for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
    } else if (s.scalars == 1) {
      const T one = *a;
      for (std::int64_t i = 0; i < n; ++i) y[i] = f(one, b[i]);
    } else {
      const T one = *b;
      for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], one);
    }
  });
}

/// y = a == b; a NaN equals nothing, -0 equals 0.
template <class T>
void equal(const sdk::Call& call) {
  compare<T>(call, std::equal_to<T>{});
}

/// y = a < b; false if either is NaN, as for the comparisons below.
template <class T>
void less(const sdk::Call& call) {
  compare<T>(call, std::less<T>{});
}

/// y = a <= b
template <class T>
void less_equal(const sdk::Call& call) {
  compare<T>(call, std::less_equal<T>{});
}

/// y = a > b
template <class T>
void greater(const sdk::Call& call) {
  compare<T>(call, std::greater<T>{});
}

/// y = a >= b
template <class T>
void greater_equal(const sdk::Call& call) {
  compare<T>(call, std::greater_equal<T>{});
}

}  // namespace

TENON_KERNEL_WITH(equal, elementwise_traits, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                  std::uint16_t, std::uint32_t, std::uint64_t, bool)
TENON_KERNEL_WITH(less, elementwise_traits, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                  std::uint16_t, std::uint32_t, std::uint64_t, bool)
TENON_KERNEL_WITH(less_equal, elementwise_traits, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                  std::uint16_t, std::uint32_t, std::uint64_t, bool)
TENON_KERNEL_WITH(greater, elementwise_traits, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                  std::uint16_t, std::uint32_t, std::uint64_t, bool)
TENON_KERNEL_WITH(greater_equal, elementwise_traits, float, double, std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t,
                  std::uint16_t, std::uint32_t, std::uint64_t, bool)

}  // namespace tenon::openblas
