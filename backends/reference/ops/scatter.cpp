// SPDX-License-Identifier: Apache-2.0
// Scatter: updates to elements and slices selected by indices. Updates are applied in row-major order, so results are deterministic.
#include <tenon/sdk/element.h>
#include <tenon/sdk/indices.h>
#include <tenon/sdk/strided.h>

#include <algorithm>
#include <array>
#include <type_traits>

namespace tenon::reference {
namespace {

/// An element after an update: integers wrap, NaN wins, of bools a sum is "or" and a product "and".
template <class T>
T reduced(std::uint32_t reduction, T a, T b) {
  switch (reduction) {
    case TENON_SCATTER_ADD:
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
      } else {
        return a + b;
      }
    case TENON_SCATTER_MUL:
      if constexpr (std::is_integral_v<T>) {
        return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
      } else {
        return a * b;
      }
    case TENON_SCATTER_MAX:
      return b > a || b != b ? b : a;
    case TENON_SCATTER_MIN:
      return b < a || b != b ? b : a;
    default:
      return b;
  }
}

/// y = x, then y[..., indices[..., j, ...], ...] = updates[..., j, ...] along `axis`, or reduced with it.
///
/// Shapes      all dense; indices as updates, y as x.
/// Dtypes      all; f16 and bf16 in f32, rounded at the end.
/// Attributes  axis; reduction: none (the last of several stays), add, mul, max, min.
/// Errors      an index outside [-n, n): nothing is written.
template <class T>
void scatter_elements(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_scatter>();
  const sdk::Operand &x = call.inputs[0], &updates = call.inputs[2];
  const auto axis = static_cast<std::size_t>(attributes.axis);
  const T* update = call.input<T>(2);
  T* y = call.output<T>(0);
  const sdk::Indices indices("scatter_elements", call.inputs[1], x.shape[axis]);
  std::copy_n(call.input<T>(0), x.count, y);
  std::array<sdk::Strides, 1> strides{sdk::strides_of(x)};
  const std::int64_t step = strides[0][axis];
  strides[0][axis] = 0;  // along the axis, the indices select
  sdk::for_each_element(updates.shape, updates.rank, strides, [&](std::int64_t i, const auto& at) {
    T& element = y[at[0] + indices[i] * step];
    element = reduced(attributes.reduction, element, update[i]);
  });
}

/// y = x, then y[o, indices[k], i] = updates[o, k, i] around the axis, or reduced with it, in the order of k.
///
/// Shapes  all dense; updates have the shape of indices in place of the axis.
/// Errors  an index outside [-n, n): nothing is written.
template <class T>
void change_slices(const sdk::Call& call, const char* op, std::int64_t axis, std::uint32_t reduction) {
  const auto [outer, n, inner] = sdk::around_axis(call.inputs[0], axis);
  const T* update = call.input<T>(2);
  T* y = call.output<T>(0);
  const sdk::Indices indices(op, call.inputs[1], n);
  std::copy_n(call.input<T>(0), call.inputs[0].count, y);
  for (std::int64_t o = 0; o < outer; ++o, y += n * inner) {
    for (std::int64_t k = 0; k < indices.count(); ++k) {
      for (std::int64_t i = 0; i < inner; ++i, ++update) {
        T& element = y[indices[k] * inner + i];
        element = reduced(reduction, element, *update);
      }
    }
  }
}

template <class T>
void scatter_add(const sdk::Call& call) {
  change_slices<T>(call, "scatter_add", call.attr<tenon_attributes_axis>().axis, TENON_SCATTER_ADD);
}

template <class T>
void scatter_slices(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_scatter>();
  change_slices<T>(call, "scatter_slices", attributes.axis, attributes.reduction);
}

}  // namespace
TENON_KERNEL(scatter_elements, TENON_COMPARABLE_TYPES)
TENON_KERNEL(scatter_add, float, double, std::int32_t, std::int64_t)
TENON_KERNEL(scatter_slices, TENON_COMPARABLE_TYPES)
}  // namespace tenon::reference
