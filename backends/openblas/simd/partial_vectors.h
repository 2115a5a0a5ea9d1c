// SPDX-License-Identifier: Apache-2.0
// partial_vectors.h - loads, stores and loops over rows of any length, whose last vector may be partial, for one instruction set.
#if defined(TENON_OPENBLAS_PARTIAL_VECTORS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_PARTIAL_VECTORS_H
#undef TENON_OPENBLAS_PARTIAL_VECTORS_H
#else
#define TENON_OPENBLAS_PARTIAL_VECTORS_H
#endif

#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// Loads min(n, lanes) elements; the remaining lanes hold `fill`.
template <class D>
HWY_INLINE hn::Vec<D> load(D d, const hn::TFromD<D>* p, std::int64_t n, hn::TFromD<D> fill = 0) {
  return n < lanes(d) ? load_first(d, p, n, fill) : hn::LoadU(d, p);
}
template <class D>
HWY_INLINE void store(hn::Vec<D> v, D d, hn::TFromD<D>* p, std::int64_t n) {
  if (n < lanes(d)) {
    store_first(v, d, p, n);
  } else {
    hn::StoreU(v, d, p);
  }
}

/// Calls body(i, m) for vectors of m elements starting at i; m is the number of lanes for all but the last.
template <class T, class Body>
HWY_INLINE void across(std::int64_t n, const Body& body) {
  const std::int64_t step = lanes(Wide<T>());
  std::int64_t i = 0;
  for (; i + step <= n; i += step) body(i, step);
  if (i < n) body(i, n - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
