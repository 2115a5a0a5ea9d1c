// SPDX-License-Identifier: Apache-2.0
// Gather: elements selected by indices. Errors: an index outside [-n, n), when the work is waited for.
#include <tenon/sdk/element.h>

#include <array>

#include "kernel/indices.h"
#include "kernel/layout.h"

namespace tenon::opencl {
namespace {

/// y[o, k, i] = x[o, indices[k], i] around `axis`; y has the shape of indices in place of the axis.
template <class T>
void gather(const sdk::Call& call) {
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) {
    Launch launch(call, sources::gather, "check_indices", moved_types<T>());
    add_indices(launch, call, TENON_OP_Gather, n).over(call.inputs[1].count);
    return;
  }
  Launch launch(call, sources::gather, "gather", moved_types<T>());
  add_indices(launch, call, TENON_OP_Gather, n).value(count).value(inner).out(call, 0);
  launch.in(call, 0).over(count);
}

/// y[..., j, ...] = x[..., indices[..., j, ...], ...] along `axis`; y as indices.
template <class T>
void gather_elements(const sdk::Call& call) {
  const auto axis = static_cast<std::size_t>(call.attr<tenon_attributes_axis>().axis);
  const sdk::Operand &x = call.inputs[0], &y = call.outputs[0];
  if (y.count == 0) return;
  std::array<sdk::Strides, 1> strides{sdk::strides_of(x)};
  const std::int64_t step = strides[0][axis];
  strides[0][axis] = 0;
  Launch launch(call, sources::gather, "gather_elements", moved_types<T>());
  add_indices(launch, call, TENON_OP_GatherElements, x.shape[axis]).value(collapse<1>(y.shape, y.rank, strides)).value(step).out(call, 0);
  launch.in(call, 0).over(y.count);
}

}  // namespace
TENON_KERNEL(gather, TENON_MOVABLE_TYPES)
TENON_KERNEL(gather_elements, TENON_MOVABLE_TYPES)
}  // namespace tenon::opencl
