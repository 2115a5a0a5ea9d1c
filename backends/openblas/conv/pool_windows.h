// SPDX-License-Identifier: Apache-2.0
// pool_windows.h - vectors of the channels of a pixel, and the elements of a window, for the kernels of pooling. A source file includes it
// after foreach_target.h, as it does simd.h.
#if defined(TENON_OPENBLAS_POOL_WINDOWS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_POOL_WINDOWS_H
#undef TENON_OPENBLAS_POOL_WINDOWS_H
#else
#define TENON_OPENBLAS_POOL_WINDOWS_H
#endif

#include <cstdint>

#include "conv/pool_geometry.h"
#include "elementwise/half.h"
#include "simd/bf16.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// for_each_part calls body(part, c) for vectors of channels that cover [0, channels): four vectors at a time (WholeVectors<4>), then one
/// (WholeVectors<1>), then a partial one (PartialVector).
template <int N>
struct WholeVectors {
  static constexpr int count = N;
  template <class D, class T>
  HWY_INLINE hn::Vec<D> load(D d, const T* p) const {
    return load_stored(d, p);
  }
  template <class D, class T>
  HWY_INLINE void store(hn::Vec<D> v, D d, T* p) const {
    store_rounded(v, d, p);
  }
};
struct PartialVector {
  static constexpr int count = 1;
  std::int64_t n;  ///< active lanes, fewer than a vector has
  template <class D, class T>
  HWY_INLINE hn::Vec<D> load(D d, const T* p) const {
    return load_stored_first(d, p, n);
  }
  template <class D, class T>
  HWY_INLINE void store(hn::Vec<D> v, D d, T* p) const {
    store_rounded_first(v, d, p, n);
  }
};
template <class D, class Body>
HWY_INLINE void for_each_part(D d, std::int64_t channels, const Body& body) {
  const std::int64_t step = lanes(d);
  std::int64_t c = 0;
  for (; c + 4 * step <= channels; c += 4 * step) body(WholeVectors<4>(), c);
  for (; c + step <= channels; c += step) body(WholeVectors<1>(), c);
  if (c < channels) body(PartialVector{channels - c}, c);
}

/// The elements of x in one window.
template <class T>
struct PoolWindow {
  PoolTaps rows, columns;
  const T* first;
  std::int64_t row_step, column_step;  ///< elements from one to the next

  PoolWindow(const PoolGeometry& g, const T* image, PoolTaps row_taps, std::int64_t column)
      : rows(row_taps),
        columns(g.w.taps(column)),
        first(image + (rows.first * g.w.size + columns.first) * g.channels),
        row_step(g.h.dilation * g.w.size * g.channels),
        column_step(g.w.dilation * g.channels) {}

  bool empty() const { return rows.count == 0 || columns.count == 0; }
  template <class Body>
  HWY_INLINE void for_each(const Body& body) const {
    for (std::int64_t i = 0; i < rows.count; ++i) {
      const T* at = first + i * row_step;
      for (std::int64_t k = 0; k < columns.count; ++k, at += column_step) body(at, i, k);
    }
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
