// SPDX-License-Identifier: Apache-2.0
// Concatenation of tensors along an axis, and splitting.
#include <tenon/sdk/element.h>
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

#include <array>

namespace tenon::reference {
namespace {

/// to = from, element by element in the shape of `part`, each with its own strides.
template <class T>
void copy(const sdk::Operand& part, const T* from, const sdk::Operand& source, T* to, const sdk::Operand& target) {
  const std::array<sdk::Strides, 2> strides{sdk::strides_of(source), sdk::strides_of(target)};
  sdk::for_each_element(part.shape, part.rank, strides, [&](std::int64_t, const auto& at) { to[at[1]] = from[at[0]]; });
}

/// y = the operands concatenated along `axis`.
template <class T>
void concat(const sdk::Call& call) {
  const std::int64_t axis = call.attr<tenon_attributes_axis>().axis;
  const sdk::Operand& y = call.outputs[0];
  T* to = call.output<T>(0);
  for (std::uint32_t k = 0; k < call.input_count; ++k) {
    const sdk::Operand& x = call.inputs[k];
    if (x.count == 0) continue;  // if y is empty too, it has no address
    copy(x, call.input<T>(k), x, to, y);
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
    copy(y, from, x, call.output<T>(k), y);
    from += y.shape[axis] * x.strides[axis];
  }
}

}  // namespace
TENON_KERNEL_WITH(concat, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(split, (sdk::Traits{.strided = true, .refuse = sdk::refuse_absent_results}), TENON_MOVABLE_TYPES)
}  // namespace tenon::reference
