// SPDX-License-Identifier: Apache-2.0
// call.h - runs a BLAS call of the program on the queue of its Place, with operands that the device can access. No exception escapes.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include <tenon/blas.h>

#include "carry.h"
#include "place.h"
#include "report.h"

namespace tenon::shim {

using blas::Layout, blas::Op, blas::Uplo, blas::Diag, blas::Side, blas::Real, blas::Routine;
namespace arguments = blas::arguments;

template <class Arguments>
using Function = void (*)(const blas::Queue&, const Arguments&);

/// Returns false after reporting an invalid argument; ends the program if the call fails otherwise. Interface: Fortran or Cblas.
template <class Interface, class Arguments>
inline bool call(const char* name, Routine routine, Function<Arguments> function, const Arguments& given) {
  try {
    const Place& here = place();
    if (here.host_addressable) {
      function(here.queue, given);
    } else {
      call_with_copies(here, routine, function, given);
    }
    return true;
  } catch (...) {
    keep_failure();
  }
  bool row_major = false;
  if constexpr (requires { given.layout; }) row_major = given.layout == Layout::row_major;
  Interface::report(name, row_major);
  return false;
}

/// The result of a function with an invalid argument: NaN.
template <class R>
R undefined() {
  if constexpr (std::is_same_v<R, Real<R>>) {
    return std::numeric_limits<R>::quiet_NaN();
  } else {
    return {undefined<Real<R>>(), undefined<Real<R>>()};
  }
}

/// dot, dotu, dotc, sdsdot (alpha + x'y), dsdot (Result is double).
template <class Interface, class R, class T>
R dot(const char* name, Routine routine, Function<arguments::dot<T>> function, int n, T alpha, const T* x, int incx, const T* y, int incy) {
  if (n <= 0) return R(alpha);
  R result{};
  arguments::dot<T> given{.n = n, .alpha = alpha, .x = x, .incx = incx, .y = y, .incy = incy};
  if constexpr (std::is_same_v<R, T>) {
    given.result = &result;
  } else {
    given.result_f64 = &result;
  }
  return call<Interface>(name, routine, function, given) ? result : undefined<R>();
}

/// swap, copy. A copy to increment 0 leaves the last element that it writes.
template <class Interface, class T>
void swap_or_copy(const char* name, Routine routine, Function<arguments::xy<T>> function, int n, T* x, int incx, T* y, int incy) {
  if (n <= 0) return;
  arguments::xy<T> given{.n = n, .x = x, .incx = incx, .y = y, .incy = incy};
  if (routine == Routine::copy && incy == 0) {
    if (incx > 0 && x != nullptr) given.x += std::int64_t{n - 1} * incx;
    given.n = given.incx = given.incy = 1;
  }
  call<Interface>(name, routine, function, given);
}

/// nrm2, asum. For nrm2, a negative increment is the same vector backwards, and an increment of 0 takes one element n times.
template <class Interface, class T>
Real<T> reduce(const char* name, Routine routine, Function<arguments::reduce<T>> function, int n, const T* x, int incx) {
  const bool norm = routine == Routine::nrm2;
  if (n <= 0 || (incx <= 0 && !norm)) return 0;
  const bool one = incx == 0;
  Real<T> result = 0;
  arguments::reduce<T> given{.n = one ? 1 : n, .x = x, .incx = one ? 1 : std::abs(std::int64_t{incx})};
  given.result = &result;
  if (!call<Interface>(name, routine, function, given)) return undefined<Real<T>>();
  return one ? result * std::sqrt(static_cast<Real<T>>(n)) : result;
}

/// iamax, counted from 0; -1 for an empty vector or after a failure.
template <class Interface, class T>
std::int64_t index_of_max(const char* name, Routine routine, Function<arguments::reduce<T>> function, int n, const T* x, int incx) {
  if (n <= 0 || incx <= 0) return -1;
  std::int64_t index = -1;
  arguments::reduce<T> given{.n = n, .x = x, .incx = incx};
  given.index = &index;
  return call<Interface>(name, routine, function, given) ? index : -1;
}

/// alpha and beta are real in some complex routines.
constexpr bool real_alpha(Routine routine) {
  return routine == Routine::rscal || routine == Routine::her || routine == Routine::hpr || routine == Routine::herk;
}
constexpr bool real_beta(Routine routine) {
  return routine == Routine::herk || routine == Routine::her2k;
}
template <Routine routine, class T>
using Alpha = std::conditional_t<real_alpha(routine), Real<T>, T>;
template <Routine routine, class T>
using Beta = std::conditional_t<real_beta(routine), Real<T>, T>;

}  // namespace tenon::shim
