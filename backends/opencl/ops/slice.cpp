// SPDX-License-Identifier: Apache-2.0
// Slicing and padding.
#include <tenon/sdk/element.h>

#include "kernel/copy.h"

namespace tenon::opencl {
namespace {

/// y[i, ...] = x[starts + i steps, ...]
///
/// Attributes  starts, steps per dimension: all selected elements exist; steps may be negative.
template <class T>
void slice(const sdk::Call& call) {
  copy_strided<T>(call, sdk::slice_copy(call));
}

/// The position of x within y. `Frame` of ops/slice.cl.
struct Frame {
  std::int64_t count;  ///< elements of y
  std::int32_t rank, mode;
  std::int64_t outer[TENON_MAX_RANK];  ///< sizes of y
  std::int64_t inner[TENON_MAX_RANK];  ///< sizes of x
  std::int64_t before[TENON_MAX_RANK];
  std::int64_t strides[TENON_MAX_RANK];  ///< of x
};
static_assert(TENON_PAD_REFLECT == 1 && TENON_PAD_EDGE == 2, "ops/slice.cl has these numbers");

/// y[before + i, ...] = x[i, ...]; elsewhere the value (constant), x[|i|] mirrored at its ends (reflect), or the nearest x[i] (edge).
///
/// Attributes  mode; value: a value of the dtype; before: elements before each dimension. The padding after it follows from y's shape.
template <class T>
void pad(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_pad>();
  const sdk::Operand &x = call.inputs[0], &y = call.outputs[0];
  if (y.count == 0) return;
  Frame frame{};
  frame.count = y.count;
  frame.rank = static_cast<std::int32_t>(y.rank);
  frame.mode = static_cast<std::int32_t>(attributes.mode);
  for (std::uint32_t d = 0; d < y.rank; ++d) {
    frame.outer[d] = y.shape[d];
    frame.inner[d] = x.shape[d];
    frame.before[d] = attributes.before[d];
    frame.strides[d] = x.strides[d];
  }
  Launch launch(call, sources::slice, "pad", moved_types<T>());
  launch.value(frame).out(call, 0);
  launch.in(call, 0).value(sdk::element_of<T>(attributes.value)).over(y.count);
}

constexpr sdk::Traits traits{.strided = true};

}  // namespace
TENON_KERNEL_WITH(slice, traits, TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(pad, traits, TENON_MOVABLE_TYPES)
}  // namespace tenon::opencl
