// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/element.h>

#include "kernel/copy.h"

namespace tenon::opencl {
namespace {

/// y = the operands concatenated along `axis`.
template <class T>
void concat(const sdk::Call& call) {
  const std::int64_t axis = call.attr<tenon_attributes_axis>().axis;
  const sdk::Operand& y = call.outputs[0];
  T* to = call.output<T>(0);
  for (std::uint32_t k = 0; k < call.input_count; ++k) {
    const sdk::Operand& x = call.inputs[k];
    if (x.count == 0) continue;  // if y is empty too, it has no address
    copy_strided(call, x.shape, x.rank, call.input<T>(k), sdk::strides_of(x), to, sdk::strides_of(y));
    to += x.shape[axis] * y.strides[axis];
  }
}

/// The results are consecutive slices of x along `axis`.
template <class T>
void split(const sdk::Call& call) {
  const std::int64_t axis = call.attr<tenon_attributes_axis>().axis;
  const sdk::Operand& x = call.inputs[0];
  const T* from = call.input<T>(0);
  for (std::uint32_t k = 0; k < call.output_count; ++k) {
    const sdk::Operand& y = call.outputs[k];
    if (y.count == 0) continue;
    copy_strided(call, y.shape, y.rank, from, sdk::strides_of(x), call.output<T>(k), sdk::strides_of(y));
    from += y.shape[axis] * x.strides[axis];
  }
}

/// The sizes of absent results are unknown.
const char* refuse_absent(const sdk::Call& call) {
  for (std::uint32_t k = 0; k < call.output_count; ++k) {
    if (!call.has_output(k)) return "every result is required: their sizes determine the offsets";
  }
  return nullptr;
}

}  // namespace
TENON_KERNEL_WITH(concat, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(split, (sdk::Traits{.strided = true, .refuse = refuse_absent}), TENON_MOVABLE_TYPES)
}  // namespace tenon::opencl
