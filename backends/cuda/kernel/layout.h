// SPDX-License-Identifier: Apache-2.0
// layout.h - the strides of operands over a shape, with as few dimensions as possible. Host side; kernels index it with thread_index.cuh.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tenon/sdk/strided.h>

#include "kernel/divisor.h"

namespace tenon::cuda {

/// N operands over one shape, outermost dimension first. Passed to kernels by value.
template <std::size_t N>
struct Layout {
  std::int64_t count = 1;  ///< elements of the shape
  std::int32_t rank = 0;
  std::int64_t sizes[TENON_MAX_RANK] = {};
  std::int64_t strides[N][TENON_MAX_RANK] = {};  ///< in elements; 0 repeats, negative runs backwards
};

/// A layout whose sizes kernels divide by without divisions.
struct DividedLayout : Layout<1> {
  Divisor by[TENON_MAX_RANK];

  /// The sizes do not change any more.
  void settle() {
    for (int d = 1; d < rank; ++d) by[d] = Divisor(sizes[d]);  // nothing divides by the outermost size
  }
};

/// Drops dimensions of size 1 and merges neighbours that have one common stride in every operand.
template <std::size_t N>
Layout<N> collapse(const std::int64_t* shape, std::uint32_t rank, const std::array<sdk::Strides, N>& strides) {
  Layout<N> layout;
  sdk::collapse(shape, rank, strides, layout);
  return layout;
}

/// Traits::channels_last_when of every op on images: tensor cores need channels last, the f32 and f64 units have no preference, and
/// transposing images is expensive. All ops share this rule so that images are not transposed between them.
inline bool images_last(const sdk::Call& call) {
  const tenon_dtype dtype = call.inputs[0].dtype;
  return dtype == TENON_DTYPE_F16 || dtype == TENON_DTYPE_BF16 || (dtype == TENON_DTYPE_F32 && call.math != TENON_MATH_STRICT);
}

/// The first N inputs of a call, broadcast to the shape of its first output.
template <std::size_t N>
Layout<N> layout_of_inputs(const sdk::Call& call) {
  return collapse<N>(call.outputs[0].shape, call.outputs[0].rank, sdk::strides_of_inputs<N>(call));
}

/// True if operand k is one element for the whole shape.
template <std::size_t N>
bool is_scalar(const Layout<N>& layout, std::size_t k) {
  for (int d = 0; d < layout.rank; ++d) {
    if (layout.strides[k][d] != 0) return false;
  }
  return true;
}

/// True if operand k is dense and row-major.
template <std::size_t N>
bool is_dense(const Layout<N>& layout, std::size_t k) {
  std::int64_t stride = 1;
  for (int d = layout.rank; d-- > 0;) {
    if (layout.strides[k][d] != stride) return false;
    stride *= layout.sizes[d];
  }
  return true;
}

}  // namespace tenon::cuda
