// SPDX-License-Identifier: Apache-2.0
// Scatter: updates to elements and slices selected by indices. Errors: an index outside [-n, n), when the work is waited for.
#include <tenon/sdk/element.h>

#include <array>

#include "kernel/copy.h"
#include "kernel/indices.h"

namespace tenon::opencl {
namespace {

static_assert(TENON_SCATTER_ADD == 1 && TENON_SCATTER_MUL == 2 && TENON_SCATTER_MAX == 3 && TENON_SCATTER_MIN == 4, "as in ops/scatter.cl");

template <class T>
std::string scatter_types() {
  return types<T>() + (std::is_same_v<T, bool> ? " -DT_BOOL" : "");
}

/// y = x, unless they are the same memory.
template <class T>
void begin_with_x(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  if (x.data == call.outputs[0].data) return;
  copy_strided<T>(call, {x.shape, x.rank, x.data, sdk::strides_of(x), call.outputs[0].data, sdk::strides_of(x)});
}

template <class T>
void check_only(const sdk::Call& call, tenon_op op, std::int64_t n) {
  Launch launch(call, sources::scatter, "check_indices", scatter_types<T>());
  add_indices(launch, call, op, n).over(call.inputs[1].count);
}

/// y = x, then y[..., indices[..., j, ...], ...] = updates[..., j, ...] along `axis`, or reduced with it.
template <class T>
void scatter_elements(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_scatter>();
  const sdk::Operand &x = call.inputs[0], &updates = call.inputs[2];
  const auto axis = static_cast<std::size_t>(attributes.axis);
  begin_with_x<T>(call);
  if (updates.count == 0) return;
  if (x.count == 0) return check_only<T>(call, TENON_OP_ScatterElements, x.shape[axis]);
  std::array<std::int64_t, TENON_MAX_RANK> shape{};
  for (std::uint32_t d = 0; d < updates.rank; ++d) shape[d] = d == axis ? 1 : updates.shape[d];
  const Layout lines = collapse<2>(shape.data(), updates.rank, {sdk::strides_of(updates), sdk::strides_of(x)});
  Launch launch(call, sources::scatter, "scatter_elements", scatter_types<T>());
  add_indices(launch, call, TENON_OP_ScatterElements, x.shape[axis])
      .value(lines)
      .value(updates.shape[axis])
      .value(updates.strides[axis])
      .value(x.strides[axis])
      .value(static_cast<cl_int>(attributes.reduction))
      .out(call, 0)
      .in(call, 2)
      .over(lines.count);
}

/// y = x, then y[o, indices[k], i] = updates[o, k, i] around the axis, or reduced with it, in the order of k.
template <class T>
void change_slices(const sdk::Call& call, tenon_op op, std::int64_t axis, std::uint32_t reduction) {
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], axis);
  begin_with_x<T>(call);
  if (call.inputs[2].count == 0 || call.inputs[0].count == 0) return check_only<T>(call, op, n);
  Launch launch(call, sources::scatter, "scatter_slices", scatter_types<T>());
  add_indices(launch, call, op, n)
      .value(outer * inner)
      .value(inner)
      .value(static_cast<cl_int>(reduction))
      .out(call, 0)
      .in(call, 2)
      .over(outer * inner);
}

template <class T>
void scatter_add(const sdk::Call& call) {
  change_slices<T>(call, TENON_OP_ScatterAdd, call.attr<tenon_attributes_axis>().axis, TENON_SCATTER_ADD);
}

template <class T>
void scatter_slices(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_scatter>();
  change_slices<T>(call, TENON_OP_ScatterSlices, attributes.axis, attributes.reduction);
}

}  // namespace
TENON_KERNEL(scatter_elements, TENON_COMPARABLE_TYPES)
TENON_KERNEL(scatter_add, float, double, std::int32_t, std::int64_t)
TENON_KERNEL(scatter_slices, TENON_COMPARABLE_TYPES)
}  // namespace tenon::opencl
