// SPDX-License-Identifier: Apache-2.0
// Gather: elements selected by indices.
#include <tenon/sdk/element.h>
#include <tenon/sdk/indices.h>
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

#include <array>

namespace tenon::reference {
namespace {

/// y[o, k, i] = x[o, indices[k], i] around `axis`
///
/// Shapes  x, indices dense; y has the shape of indices in place of the axis.
/// Errors  an index outside [-n, n).
template <class T>
void gather(const sdk::Call& call) {
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], call.attr<tenon_attributes_axis>().axis);
  const T* x = call.input<T>(0);
  T* y = call.output<T>(0);
  const sdk::Indices indices("gather", call.inputs[1], n);
  for (std::int64_t o = 0; o < outer; ++o, x += n * inner) {
    for (std::int64_t k = 0; k < indices.count(); ++k) {
      for (std::int64_t i = 0; i < inner; ++i) *y++ = x[indices[k] * inner + i];
    }
  }
}

/// y[..., j, ...] = x[..., indices[..., j, ...], ...] along `axis`
///
/// Shapes  x, indices dense, y as indices.
/// Errors  an index outside [-n, n).
template <class T>
void gather_elements(const sdk::Call& call) {
  const std::int64_t axis = call.attr<tenon_attributes_axis>().axis;
  const sdk::Operand& y = call.outputs[0];
  const T* x = call.input<T>(0);
  T* to = call.output<T>(0);
  const sdk::Indices indices("gather_elements", call.inputs[1], call.inputs[0].shape[axis]);
  std::array<sdk::Strides, 1> strides{sdk::strides_of(call.inputs[0])};
  const std::int64_t step = strides[0][static_cast<std::size_t>(axis)];
  strides[0][static_cast<std::size_t>(axis)] = 0;  // along the axis, the indices select
  sdk::for_each_element(y.shape, y.rank, strides, [&](std::int64_t i, const auto& at) { to[i] = x[at[0] + indices[i] * step]; });
}

}  // namespace
TENON_KERNEL(gather, TENON_MOVABLE_TYPES)
TENON_KERNEL(gather_elements, TENON_MOVABLE_TYPES)
}  // namespace tenon::reference
