// parts.h - rows of any length in registers, the last one in part, for one instruction set.
#if defined(TENON_OPENBLAS_PARTS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_PARTS_H
#undef TENON_OPENBLAS_PARTS_H
#else
#define TENON_OPENBLAS_PARTS_H
#endif

#include "simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// n elements, all lanes if n is not less than their number; `fill` in the others.
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

/// body(i, m) for registers of m elements from i on; m is a constant for all but the last.
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
