// SPDX-License-Identifier: Apache-2.0
// map.h - functions of one element, computed in f64 and rounded once; of integers in their own type.
#pragma once

#include <cstdint>
#include <type_traits>

#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

namespace tenon::reference {

/// The traits of elementwise kernels.
inline constexpr sdk::Traits elementwise_traits{.strided = true, .in_place = true, .elementwise = true};

/// y[i] = f(x[i]); y may be x.
template <class T, class Function>
void map(const sdk::Call& call, Function f) {
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  sdk::for_each_element<1>(call, [&](std::int64_t i, const auto& at) {
    if constexpr (std::is_integral_v<T>) {
      y[i] = f(x[at[0]]);
    } else {
      y[i] = static_cast<T>(f(double{x[at[0]]}));
    }
  });
}

/// For arithmetic that wraps: overflow of a signed type is undefined, of its unsigned counterpart it is not.
template <class T>
using Unsigned = std::make_unsigned_t<T>;

/// -x; the lowest value is its own negative.
template <class T>
T negated(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(x));
  } else {
    return -x;
  }
}

}  // namespace tenon::reference
