// SPDX-License-Identifier: Apache-2.0
// recurrent_cells.h - vectors of units for the elementwise part of a step, for one instruction set.
#if defined(TENON_OPENBLAS_RECURRENT_CELLS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_RECURRENT_CELLS_H
#undef TENON_OPENBLAS_RECURRENT_CELLS_H
#else
#define TENON_OPENBLAS_RECURRENT_CELLS_H
#endif

#include <cstdint>

#include "recurrent/recurrent.h"
#include "simd/bf16.h"
#include "simd/partial_vectors.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// Up to one vector of neighbouring units of one row, computed in T; memory may be bf16.
template <class T>
struct Units {
  using V = hn::Vec<Wide<T>>;
  std::int64_t row, unit, n;  ///< the first unit; the number of units from there to the end of the row
  std::int64_t units;         ///< of a gate

  template <class P>
  HWY_INLINE V load(const Rows<P>& x, std::int64_t gate = 0) const {
    return openblas::HWY_NAMESPACE::load(Wide<T>(), x.data + place(x.stride, gate), n);
  }
  template <class P>
  HWY_INLINE V load_or_zero(const Rows<P>& x) const {
    return x.data == nullptr ? hn::Zero(Wide<T>()) : load(x);
  }
  template <class P>
  HWY_INLINE void store(V v, const Rows<P>& x, std::int64_t gate = 0) const {
    openblas::HWY_NAMESPACE::store(v, Wide<T>(), x.data + place(x.stride, gate), n);
  }

 private:
  HWY_INLINE std::int64_t place(std::int64_t stride, std::int64_t gate) const { return row * stride + gate * units + unit; }
};

/// Calls cell(units) for all units of a part of a step.
template <class T, class Cell>
HWY_INLINE void for_each_unit(const Recurrent<T>& layer, const StepPart& part, const Cell& cell) {
  using S = SumOf<T>;
  const std::int64_t end = part.column + part.columns;
  for (std::int64_t row = 0; row < part.rows; ++row) {
    for (std::int64_t u = part.column; u < end; u += lanes(Wide<S>())) cell(Units<S>{row, u, end - u, layer.units});
  }
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
