// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/strided_copy.h - ops that rearrange elements as copies with strides, for backends with one
// kernel for all of them.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/strided.h>

namespace tenon::sdk {

/// to[i...] = from[i...] over a shape; strides in elements, any for `from`, nonzero for `to`. Without
/// elements the addresses mean nothing.
struct StridedCopy {
  const std::int64_t* shape = nullptr;
  std::uint32_t rank = 0;
  const void* from = nullptr;
  Strides from_strides{};
  void* to = nullptr;
  Strides to_strides{};
};

/// Reshape, Flatten: y = x's elements in row-major order.
inline StridedCopy reshape_copy(const Call& call) {
  const Operand& x = call.inputs[0];
  return {x.shape, x.rank, x.data, strides_of(x), call.outputs[0].data, dense_strides(x.shape, x.rank)};
}

/// Transpose: y[j0, j1, ...] = x[i0, i1, ...] with i[axes[k]] = j[k].
inline StridedCopy transpose_copy(const Call& call) {
  const Operand &x = call.inputs[0], &y = call.outputs[0];
  StridedCopy copy{y.shape, y.rank, x.data, {}, y.data, strides_of(y)};
  for (std::uint32_t d = 0; d < y.rank; ++d) copy.from_strides[d] = x.strides[call.attr<tenon_attributes_axes>().axes[d]];
  return copy;
}

/// Expand: y = x broadcast to the shape of y, as NumPy does.
inline StridedCopy expand_copy(const Call& call) {
  const Operand &x = call.inputs[0], &y = call.outputs[0];
  return {y.shape, y.rank, x.data, broadcast_strides(x, y.rank), y.data, strides_of(y)};
}

namespace detail {
/// The address of the element that is `offset` elements after the first one.
inline std::byte* address_in(const Operand& x, std::int64_t offset) {
  return x.as<std::byte>() + offset * size_of(x.dtype);
}
}  // namespace detail

/// Slice: y[i, ...] = x[starts + i steps, ...]. All selected elements exist; steps may be negative.
inline StridedCopy slice_copy(const Call& call) {
  const auto& attributes = call.attr<tenon_attributes_slice>();
  const Operand &x = call.inputs[0], &y = call.outputs[0];
  StridedCopy copy{y.shape, y.rank, nullptr, {}, y.data, strides_of(y)};
  std::int64_t first = 0;
  for (std::uint32_t d = 0; d < x.rank; ++d) {
    first += attributes.starts[d] * x.strides[d];
    copy.from_strides[d] = attributes.steps[d] * x.strides[d];
  }
  if (y.count > 0) copy.from = detail::address_in(x, first);
  return copy;
}

/// Concat: body(copy) for each input with elements, which becomes a part of y.
template <class Body>
void for_each_concat_copy(const Call& call, Body&& body) {
  const std::int64_t axis = call.attr<tenon_attributes_axis>().axis;
  const Operand& y = call.outputs[0];
  std::int64_t first = 0;
  for (std::uint32_t k = 0; k < call.input_count; ++k) {
    const Operand& x = call.inputs[k];
    if (x.count == 0) continue;  // if y is empty too, it has no address
    body(StridedCopy{x.shape, x.rank, x.data, strides_of(x), detail::address_in(y, first), strides_of(y)});
    first += x.shape[axis] * y.strides[axis];
  }
}

/// Split: body(copy) for each result with elements, which is a part of x.
template <class Body>
void for_each_split_copy(const Call& call, Body&& body) {
  const std::int64_t axis = call.attr<tenon_attributes_axis>().axis;
  const Operand& x = call.inputs[0];
  std::int64_t first = 0;
  for (std::uint32_t k = 0; k < call.output_count; ++k) {
    const Operand& y = call.outputs[k];
    if (y.count == 0) continue;
    body(StridedCopy{y.shape, y.rank, detail::address_in(x, first), strides_of(x), y.data, strides_of(y)});
    first += y.shape[axis] * x.strides[axis];
  }
}

}  // namespace tenon::sdk
