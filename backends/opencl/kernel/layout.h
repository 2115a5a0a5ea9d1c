// SPDX-License-Identifier: Apache-2.0
// layout.h - the strides of operands over a shape, with as few dimensions as possible; passed to kernels by value.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tenon/sdk/strided.h>

namespace tenon::opencl {

/// Up to three operands over one shape, outermost dimension first. `Layout` of kernel/common.cl.
struct Layout {
  std::int64_t count = 1;  ///< elements of the shape
  std::int32_t rank = 0;
  std::int32_t dense = 0;  ///< 1: element i of each operand is at i
  std::int64_t sizes[TENON_MAX_RANK] = {};
  std::int64_t strides[3][TENON_MAX_RANK] = {};  ///< in elements; 0 repeats, negative runs backwards
};

/// Drops dimensions of size 1 and merges neighbours that have one common stride in every operand.
template <std::size_t N>
Layout collapse(const std::int64_t* shape, std::uint32_t rank, const std::array<sdk::Strides, N>& strides) {
  static_assert(N <= 3);
  Layout layout;
  sdk::collapse(shape, rank, strides, layout);
  layout.dense = layout.rank <= 1;
  for (std::size_t k = 0; k < N; ++k) layout.dense = layout.dense != 0 && (layout.rank == 0 || layout.strides[k][0] == 1);
  return layout;
}

/// The first N inputs of a call, broadcast to the shape of its first output.
template <std::size_t N>
Layout layout_of_inputs(const sdk::Call& call) {
  return collapse<N>(call.outputs[0].shape, call.outputs[0].rank, sdk::strides_of_inputs<N>(call));
}

}  // namespace tenon::opencl
