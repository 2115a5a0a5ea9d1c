// SPDX-License-Identifier: Apache-2.0
// thread_index.cuh - the index of a thread in the grid, divisions of indices, and the offsets of an element in strided operands.
#pragma once

#include <limits>

#include "kernel/layout.h"

namespace tenon::cuda {

/// The index of this thread in a 1-D grid, and the number of threads in the grid.
__device__ inline std::int64_t thread_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t thread_count() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

/// a / b for a, b >= 0, in 32 bits where they fit, which is ten times as fast.
__device__ inline std::int64_t quotient(std::int64_t a, std::int64_t b) {
  return (a | b) >> 32 == 0 ? static_cast<std::int64_t>(static_cast<std::uint32_t>(a) / static_cast<std::uint32_t>(b)) : a / b;
}

namespace detail {
template <class Index, std::size_t N>
__device__ void place(const Layout<N>& layout, std::int64_t element, std::int64_t (&out_at)[N]) {
  auto rest = static_cast<Index>(element);
  for (std::size_t k = 0; k < N; ++k) out_at[k] = 0;
  for (int d = layout.rank - 1; d > 0; --d) {
    const auto size = static_cast<Index>(layout.sizes[d]);
    const Index above = rest / size;
    const auto index = static_cast<std::int64_t>(rest - above * size);
    for (std::size_t k = 0; k < N; ++k) out_at[k] += index * layout.strides[k][d];
    rest = above;
  }
  if (layout.rank > 0) {
    for (std::size_t k = 0; k < N; ++k) out_at[k] += static_cast<std::int64_t>(rest) * layout.strides[k][0];
  }
}
}  // namespace detail

/// The offset of element i (row-major) in each operand. Divides in 32 bits where the count allows it, which is ten times as fast.
template <std::size_t N>
__device__ void place(const Layout<N>& layout, std::int64_t i, std::int64_t (&out_at)[N]) {
  if (layout.count <= std::numeric_limits<std::int32_t>::max()) {
    detail::place<std::uint32_t>(layout, i, out_at);
  } else {
    detail::place<std::uint64_t>(layout, i, out_at);
  }
}

/// The offset of element i (row-major).
__device__ inline std::int64_t place(const DividedLayout& layout, std::int64_t i) {
  std::int64_t rest = i, at = 0;
#pragma unroll 1  // most layouts have one dimension or two
  for (int d = layout.rank - 1; d > 0; --d) {
    const std::int64_t above = layout.by[d].quotient(rest);
    at += (rest - above * layout.sizes[d]) * layout.strides[0][d];
    rest = above;
  }
  return layout.rank > 0 ? at + rest * layout.strides[0][0] : 0;
}

}  // namespace tenon::cuda
