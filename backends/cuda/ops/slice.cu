// SPDX-License-Identifier: Apache-2.0
// Slicing and padding.
#include <tenon/sdk/element.h>
#include <tenon/sdk/kernel.h>

#include <bit>

#include "kernel/launch.h"
#include "kernel/thread_index.cuh"
#include "movement/movable.h"
#include "movement/strided_copy.h"

namespace tenon::cuda {
namespace {

/// y[i, ...] = x[starts + i steps, ...]
///
/// Attributes  starts, steps per dimension: all selected elements exist; steps may be negative.
template <class T>
void slice(const sdk::Call& call) {
  copy_strided(stream_of(call), sizeof(T), sdk::slice_copy(call));
}

/// The position of x within y, with as few dimensions as possible.
struct Frame {
  std::int64_t count = 1;  ///< elements of y
  std::int32_t rank = 0;
  std::int64_t outer[TENON_MAX_RANK] = {};  ///< sizes of y
  std::int64_t inner[TENON_MAX_RANK] = {};  ///< sizes of x
  std::int64_t before[TENON_MAX_RANK] = {};
  std::int64_t strides[TENON_MAX_RANK] = {};  ///< of x
};

/// Merges a dimension without padding into the one before it, if x is contiguous across them. For reflect and edge, whose padding repeats
/// single rows, that one must have no padding either.
Frame frame_of(const sdk::Operand& x, const sdk::Operand& y, const tenon_attributes_pad& attributes) {
  Frame frame;
  frame.count = y.count;
  bool padded = false;  // the last dimension of the frame
  for (std::uint32_t d = 0; d < y.rank; ++d) {
    const bool own_padding = x.shape[d] != y.shape[d];
    const int last = frame.rank - 1;
    if (last >= 0 && !own_padding && frame.strides[last] == x.strides[d] * x.shape[d] &&
        (!padded || attributes.mode == TENON_PAD_CONSTANT)) {
      frame.outer[last] *= y.shape[d];
      frame.inner[last] *= x.shape[d];
      frame.before[last] *= x.shape[d];
      frame.strides[last] = x.strides[d];
    } else {
      const int to = frame.rank++;
      frame.outer[to] = y.shape[d];
      frame.inner[to] = x.shape[d];
      frame.before[to] = attributes.before[d];
      frame.strides[to] = x.strides[d];
      padded = own_padding;
    }
  }
  return frame;
}

template <class Index, class T>
__device__ void put_frame(const Frame& frame, std::uint32_t mode, T value, const T* x, T* y) {
  for (std::int64_t i = thread_index(); i < frame.count; i += thread_count()) {
    auto rest = static_cast<Index>(i);
    std::int64_t offset = 0;
    bool inside = true;
    for (int d = frame.rank; d-- > 0;) {
      const auto size = static_cast<Index>(frame.outer[d]);
      const Index above = rest / size;
      const std::int64_t n = frame.inner[d];
      std::int64_t j = static_cast<std::int64_t>(rest - above * size) - frame.before[d];
      if (mode == TENON_PAD_REFLECT) j = j < 0 ? -j : j < n ? j : 2 * n - 2 - j;
      if (mode == TENON_PAD_EDGE) j = j < 0 ? 0 : j < n ? j : n - 1;
      inside = inside && j >= 0 && j < n;
      offset += j * frame.strides[d];
      rest = above;
    }
    y[i] = inside ? x[offset] : value;
  }
}

template <class T>
__global__ void pad_elements(Frame frame, std::uint32_t mode, T value, const T* x, T* y) {
  if (frame.count <= std::numeric_limits<std::int32_t>::max()) {
    put_frame<std::uint32_t>(frame, mode, value, x, y);
  } else {
    put_frame<std::uint64_t>(frame, mode, value, x, y);
  }
}

/// y[before + i, ...] = x[i, ...]; elsewhere the value (constant), x[|i|] mirrored at its ends (reflect), or the nearest x[i] (edge).
///
/// Attributes  mode; value: a value of the dtype; before: elements before each dimension. The padding after it follows from y's shape.
template <class T>
void pad(const sdk::Call& call) {
  using Bits = BitsOf<T>;
  const auto& attributes = call.attr<tenon_attributes_pad>();
  const Frame frame = frame_of(call.inputs[0], call.outputs[0], attributes);
  launch_over(call, frame.count, pad_elements<Bits>, frame, attributes.mode, std::bit_cast<Bits>(sdk::element_of<T>(attributes.value)),
              call.input<Bits>(0), call.output<Bits>(0));
}

constexpr sdk::Traits traits{.strided = true};

}  // namespace
TENON_KERNEL_WITH(slice, traits, TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(pad, traits, TENON_MOVABLE_TYPES)
}  // namespace tenon::cuda
