// SPDX-License-Identifier: Apache-2.0
// unit.cuh - the indices of a unit of a layer at a time step, and operands that may be absent: NULL is read as 0.
#pragma once

#include <cstdint>

#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"
#include "recurrent/recurrent.h"

namespace tenon::cuda {

/// One unit of one row of one direction, and the indices of its elements.
struct Unit {
  std::int64_t unit;       ///< u
  std::int64_t direction;  ///< d
  std::int64_t row;        ///< row of a (D, B), for temporaries of a step
  std::int64_t line;       ///< row of a (T, B, D)
  std::int64_t state;      ///< element of a (D, B, H)
  std::int64_t sequence;   ///< element of a (T, D, B, H)
  std::int64_t before;     ///< the same at the previous step; negative: none
};

__device__ inline Unit unit_at(const Step& step, std::int64_t i) {
  const std::int64_t row = quotient(i, step.units), d = row < step.batch ? 0 : 1;
  const std::int64_t time = d == 0 ? step.time[0] : step.time[1], before = d == 0 ? step.before[0] : step.before[1];
  return {i - row * step.units,
          d,
          row,
          (time * step.batch + (row - d * step.batch)) * step.directions + d,
          i,
          time * step.elements + i,
          step.index > 0 ? before * step.elements + i : -1};
}

template <class T>
__device__ Wide<T> read_or_zero(const T* x, std::int64_t i) {
  return x == nullptr ? Wide<T>(0) : widen(x[i]);
}
template <class T>
__device__ void write_if(T* y, std::int64_t i, Wide<T> value) {
  if (y != nullptr) y[i] = narrow<T>(value);
}

}  // namespace tenon::cuda
