// SPDX-License-Identifier: Apache-2.0
// Ops that rearrange elements. Where a view suffices, no kernel runs; these kernels materialize the result.
#include <tenon/sdk/element.h>

#include "kernel/copy.h"

namespace tenon::opencl {
namespace {

/// y = x's elements in row-major order; plans also use it for dense copies of strided operands.
template <class T>
void reshape(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  copy_strided(call, x.shape, x.rank, call.input<T>(0), sdk::strides_of(x), call.output<T>(0), dense_strides(x.shape, x.rank));
}

/// y (d0 ... d[axis-1], d[axis] ...) = x's elements in row-major order: only the shape differs from reshape.
template <class T>
void flatten(const sdk::Call& call) {
  reshape<T>(call);
}

/// y[j0, j1, ...] = x[i0, i1, ...] with i[axes[k]] = j[k]
template <class T>
void transpose(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_axes>();
  const sdk::Operand &x = call.inputs[0], &y = call.outputs[0];
  sdk::Strides strides{};
  for (std::uint32_t d = 0; d < y.rank; ++d) strides[d] = x.strides[attributes.axes[d]];
  copy_strided(call, y.shape, y.rank, call.input<T>(0), strides, call.output<T>(0), sdk::strides_of(y));
}

/// y = x broadcast to the shape of y, as NumPy does.
template <class T>
void expand(const sdk::Call& call) {
  const sdk::Operand &x = call.inputs[0], &y = call.outputs[0];
  copy_strided(call, y.shape, y.rank, call.input<T>(0), sdk::broadcast_strides(x, y.rank), call.output<T>(0), sdk::strides_of(y));
}

}  // namespace
TENON_KERNEL_WITH(reshape, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(flatten, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(transpose, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(expand, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
}  // namespace tenon::opencl
