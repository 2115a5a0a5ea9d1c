// SPDX-License-Identifier: Apache-2.0
// Ops that rearrange elements. Where a view suffices, no kernel runs; these kernels materialize the result.
#include <tenon/sdk/element.h>
#include <tenon/sdk/strided.h>

#include <array>

namespace tenon::reference {
namespace {

/// y = x's elements in row-major order; plans also use it for dense copies of strided operands.
template <class T>
void reshape(const sdk::Call& call) {
  const sdk::Operand& x = call.inputs[0];
  const T* from = call.input<T>(0);
  T* y = call.output<T>(0);
  const std::array<sdk::Strides, 1> strides{sdk::strides_of(x)};
  sdk::for_each_element(x.shape, x.rank, strides, [&](std::int64_t i, const auto& at) { y[i] = from[at[0]]; });
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
  const sdk::Operand& y = call.outputs[0];
  const T* x = call.input<T>(0);
  T* to = call.output<T>(0);
  std::array<sdk::Strides, 1> strides{};
  for (std::uint32_t d = 0; d < y.rank; ++d) strides[0][d] = call.inputs[0].strides[attributes.axes[d]];
  sdk::for_each_element(y.shape, y.rank, strides, [&](std::int64_t i, const auto& at) { to[i] = x[at[0]]; });
}

/// y = x broadcast to the shape of y, as NumPy does.
template <class T>
void expand(const sdk::Call& call) {
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  sdk::for_each_element<1>(call, [&](std::int64_t i, const auto& at) { y[i] = x[at[0]]; });
}

}  // namespace
TENON_KERNEL_WITH(reshape, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(flatten, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(transpose, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(expand, (sdk::Traits{.strided = true}), TENON_MOVABLE_TYPES)
}  // namespace tenon::reference
