// SPDX-License-Identifier: Apache-2.0
// copy.h - copies with strides: reshape, transpose, slices, parts of a concatenation.
#pragma once

#include <array>

#include "kernel/launch.h"
#include "kernel/layout.h"

namespace tenon::opencl {

/// The strides of a dense operand of this shape.
inline sdk::Strides dense_strides(const std::int64_t* shape, std::uint32_t rank) {
  sdk::Strides strides{};
  std::int64_t stride = 1;
  for (std::uint32_t d = rank; d-- > 0; stride *= shape[d]) strides[d] = stride;
  return strides;
}

/// y[i...] = x[i...] over a shape; strides in elements of T.
template <class T>
void copy_strided(const sdk::Call& call, const std::int64_t* shape, std::uint32_t rank, const T* x, const sdk::Strides& x_strides, T* y,
                  const sdk::Strides& y_strides) {
  const Layout layout = collapse<2>(shape, rank, {x_strides, y_strides});
  if (layout.count == 0) return;
  Launch(call, sources::copy, "copy", moved_types<T>()).value(layout).address(y).address(x).over(layout.count);
}

}  // namespace tenon::opencl
