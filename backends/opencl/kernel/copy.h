// SPDX-License-Identifier: Apache-2.0
// copy.h - copies with strides: reshape, transpose, slices, parts of a concatenation.
#pragma once

#include <tenon/sdk/strided_copy.h>

#include "kernel/launch.h"
#include "kernel/layout.h"

namespace tenon::opencl {

/// Runs a copy of elements of T.
template <class T>
void copy_strided(const sdk::Call& call, const sdk::StridedCopy& copy) {
  const Layout layout = collapse<2>(copy.shape, copy.rank, {copy.from_strides, copy.to_strides});
  if (layout.count == 0) return;
  Launch(call, sources::copy, "copy", moved_types<T>()).value(layout).address(copy.to).address(copy.from).over(layout.count);
}

}  // namespace tenon::opencl
