// SPDX-License-Identifier: Apache-2.0
// line_operands.cuh - what the normalisation of lines, and its gradient, read and write.
#pragma once

#include <cstdint>

#include "elementwise/epilogue.cuh"
#include "kernel/wide.cuh"

namespace tenon::cuda {

/// The operands of a call, scale, bias and statistics NULL where they are absent.
template <class T>
struct LineNorm {
  std::int64_t n;  ///< elements of a line
  Wide<T> epsilon;
  const T *x, *scale, *bias;
  T *y, *mean, *inverse;
};
template <class T>
struct LineNormGrad {
  std::int64_t n;
  const T *dy, *x, *scale, *mean, *inverse;  ///< mean: NULL if not centred
  T *dx, *dscale, *dbias;
  ElementEpilogue<T> epilogue = {};  ///< of dx, without an activation
};

}  // namespace tenon::cuda
