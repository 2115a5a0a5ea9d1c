// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/strided.h - iterates over operands of any strides in the row-major order of a result,
// for kernels that declare Traits::strided.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <tenon/sdk/kernel.h>

namespace tenon::sdk {

/// One stride per dimension of the iterated shape, in elements.
using Strides = std::array<std::int64_t, TENON_MAX_RANK>;

inline Strides strides_of(const Operand& x) {
  Strides strides{};
  for (std::uint32_t d = 0; d < x.rank; ++d) strides[d] = x.strides[d];
  return strides;
}

/// The strides of a dense operand of this shape.
inline Strides dense_strides(const std::int64_t* shape, std::uint32_t rank) {
  Strides strides{};
  std::int64_t stride = 1;
  for (std::uint32_t d = rank; d-- > 0; stride *= shape[d]) strides[d] = stride;
  return strides;
}

/// x's strides in a shape of `rank` dimensions to which it broadcasts as in NumPy: dimensions are
/// aligned at the last one; a dimension that is missing or of size 1 repeats.
inline Strides broadcast_strides(const Operand& x, std::uint32_t rank) {
  Strides strides{};
  const std::uint32_t missing = rank - x.rank;
  for (std::uint32_t d = missing; d < rank; ++d) strides[d] = x.shape[d - missing] == 1 ? 0 : x.strides[d - missing];
  return strides;
}

/// The strides of the first N inputs of a call, broadcast to the shape of its first output.
template <std::size_t N>
std::array<Strides, N> strides_of_inputs(const Call& call) {
  std::array<Strides, N> strides;
  for (std::size_t k = 0; k < N; ++k) strides[k] = broadcast_strides(call.inputs[k], call.outputs[0].rank);
  return strides;
}

/// body(i, offsets) for each element i of a shape, in row-major order; offsets[k] is the element's
/// offset in operand k.
template <std::size_t N, class Body>
void for_each_element(const std::int64_t* shape, std::uint32_t rank, const std::array<Strides, N>& strides, Body&& body) {
  std::int64_t count = 1;
  for (std::uint32_t d = 0; d < rank; ++d) count *= shape[d];
  Strides index{};
  std::array<std::int64_t, N> offsets{};
  for (std::int64_t i = 0; i < count; ++i) {
    body(i, offsets);
    for (std::uint32_t d = rank; d-- > 0;) {  // next element, carrying over to outer dimensions
      for (std::size_t k = 0; k < N; ++k) offsets[k] += strides[k][d];
      if (++index[d] < shape[d]) break;
      for (std::size_t k = 0; k < N; ++k) offsets[k] -= shape[d] * strides[k][d];
      index[d] = 0;
    }
  }
}

/// The same for the first N inputs of a call, broadcast to the shape of its first output.
template <std::size_t N, class Body>
void for_each_element(const Call& call, Body&& body) {
  const Operand& y = call.outputs[0];
  for_each_element(y.shape, y.rank, strides_of_inputs<N>(call), body);
}

/// Writes a shape and the strides of N operands over it with as few dimensions as possible: those of
/// size 1 are dropped, neighbours with one common stride in every operand are merged. A Layout has
/// `count` (1 at first, the number of elements afterwards), `rank` (0 at first), sizes[TENON_MAX_RANK]
/// and strides[N or more][TENON_MAX_RANK].
template <std::size_t N, class Layout>
void collapse(const std::int64_t* shape, std::uint32_t rank, const std::array<Strides, N>& strides, Layout& out_layout) {
  for (std::uint32_t d = 0; d < rank; ++d) {
    out_layout.count *= shape[d];
    if (shape[d] == 1) continue;
    bool merges = out_layout.rank > 0;
    const int last = out_layout.rank - 1;
    for (std::size_t k = 0; merges && k < N; ++k) merges = out_layout.strides[k][last] == strides[k][d] * shape[d];
    const int to = merges ? last : out_layout.rank++;
    out_layout.sizes[to] = merges ? out_layout.sizes[to] * shape[d] : shape[d];
    for (std::size_t k = 0; k < N; ++k) out_layout.strides[k][to] = strides[k][d];
  }
}

}  // namespace tenon::sdk
