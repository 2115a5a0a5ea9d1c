// SPDX-License-Identifier: Apache-2.0
// ops/concat.cpp - concatenation of tensors along an axis, and its inverse, split.
#include <tenon/sdk/element.h>

#include "elementwise/strided_copy.h"

namespace tenon::openblas {
namespace {

/// A view of `whole` with the shape of `part`, from element `first` of the axis on.
template <class T>
sdk::Operand place_in(const sdk::Operand& whole, const sdk::Operand& part, std::int64_t axis, std::int64_t first) {
  sdk::Operand place = part;
  if (part.count != 0) place.data = whole.as<T>() + first * whole.strides[axis];  // an empty operand may have no address
  place.strides = whole.strides;
  place.dense = false;
  return place;
}

/// y = the operands concatenated along `axis`
template <class T>
void concat(const sdk::Call& call) {
  const std::int64_t axis = call.attr<tenon_attributes_axis>().axis;
  std::int64_t first = 0;
  for (std::uint32_t k = 0; k < call.input_count; ++k) {
    const sdk::Operand& x = call.inputs[k];
    copy_elements(call.host, x, place_in<T>(call.outputs[0], x, axis, first), sizeof(T));
    first += x.shape[axis];
  }
}

/// the results are x split along `axis`
template <class T>
void split(const sdk::Call& call) {
  const std::int64_t axis = call.attr<tenon_attributes_axis>().axis;
  std::int64_t first = 0;
  for (std::uint32_t k = 0; k < call.output_count; ++k) {
    const sdk::Operand& y = call.outputs[k];
    copy_strided(call.host, place_in<T>(call.inputs[0], y, axis, first), y, sizeof(T));
    first += y.shape[axis];
  }
}

}  // namespace

TENON_KERNEL_WITH(concat, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(split, (sdk::Traits{.strided = true, .refuse = sdk::refuse_absent_results}), TENON_MOVABLE_TYPES)

}  // namespace tenon::openblas
