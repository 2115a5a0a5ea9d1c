// SPDX-License-Identifier: Apache-2.0
// recurrent_cells.h - helpers for the elementwise part of a step, for one instruction set. Operands that are NULL are 0.
#if defined(TENON_OPENBLAS_RECURRENT_CELLS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_RECURRENT_CELLS_H
#undef TENON_OPENBLAS_RECURRENT_CELLS_H
#else
#define TENON_OPENBLAS_RECURRENT_CELLS_H
#endif

#include <cstdint>

#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// Up to one vector of neighbouring units of one row.
template <class T>
struct Units {
  using D = Wide<T>;
  using V = hn::Vec<Wide<T>>;
  std::int64_t at, left;  ///< the first unit; the number of units from there to the end of the row

  HWY_INLINE V load(const T* row) const {
    const D d;
    return left < lanes(d) ? load_first(d, row + at, left) : hn::LoadU(d, row + at);
  }
  HWY_INLINE V load_or_zero(const T* row) const { return row == nullptr ? hn::Zero(D()) : load(row); }
  HWY_INLINE void store(V v, T* row) const {
    const D d;
    if (left < lanes(d)) {
      store_first(v, d, row + at, left);
    } else {
      hn::StoreU(v, d, row + at);
    }
  }
  HWY_INLINE void store_if(V v, T* row) const {
    if (row != nullptr) store(v, row);
  }
};

/// Calls cell(row, units) for the units [begin, end) of each row.
template <class T, class Cell>
HWY_INLINE void for_each_unit(std::int64_t rows, std::int64_t begin, std::int64_t end, const Cell& cell) {
  const std::int64_t step = lanes(Wide<T>());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t u = begin; u < end; u += step) cell(row, Units<T>{u, end - u});
  }
}

template <class T>
HWY_INLINE T* row_of(T* rows, std::int64_t row, std::int64_t step) {
  return rows == nullptr ? nullptr : rows + row * step;
}

/// The derivatives y (1 - y) and 1 - y^2; the latter is factored because it cancels near 1.
template <class V>
HWY_INLINE V slope_of_sigmoid(V one, V y) {
  return hn::Mul(y, hn::Sub(one, y));
}
template <class V>
HWY_INLINE V slope_of_tanh(V one, V y) {
  return hn::Mul(hn::Sub(one, y), hn::Add(one, y));
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
