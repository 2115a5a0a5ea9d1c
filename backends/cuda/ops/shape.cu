// SPDX-License-Identifier: Apache-2.0
// Ops that rearrange elements. Where a view suffices, no kernel runs; these kernels materialize the result.
#include <tenon/sdk/element.h>
#include <tenon/sdk/kernel.h>

#include "kernel/launch.h"
#include "movement/strided_copy.h"

namespace tenon::cuda {
namespace {

/// The strides of a dense operand of this shape.
sdk::Strides dense_strides(const std::int64_t* shape, std::uint32_t rank) {
  sdk::Strides strides{};
  std::int64_t stride = 1;
  for (std::uint32_t d = rank; d-- > 0; stride *= shape[d]) strides[d] = stride;
  return strides;
}

/// y = x's elements in row-major order; plans also use it for dense copies of strided operands.
template <class T>
void reshape(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  copy_strided(stream_of(call), sizeof(T),
               StridedCopy{x.shape, x.rank, x.data, sdk::strides_of(x), call.outputs[0].data, dense_strides(x.shape, x.rank)});
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
  copy_strided(stream_of(call), sizeof(T), StridedCopy{y.shape, y.rank, x.data, strides, y.data, sdk::strides_of(y)});
}

/// y = x broadcast to the shape of y, as NumPy does.
template <class T>
void expand(const sdk::Call& call) {
  const sdk::Operand &x = call.inputs[0], &y = call.outputs[0];
  copy_strided(stream_of(call), sizeof(T),
               StridedCopy{y.shape, y.rank, x.data, sdk::broadcast_strides(x, y.rank), y.data, sdk::strides_of(y)});
}

}  // namespace
TENON_KERNEL_WITH(reshape, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(flatten, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(transpose, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(expand, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
}  // namespace tenon::cuda
