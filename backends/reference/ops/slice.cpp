// SPDX-License-Identifier: Apache-2.0
// Slicing and padding.
#include <tenon/sdk/element.h>
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/strided.h>

#include <algorithm>
#include <array>

namespace tenon::reference {
namespace {

/// y[i, ...] = x[starts + i steps, ...]
///
/// Attributes  starts, steps per dimension: all selected elements exist; steps may be negative.
template <class T>
void slice(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_slice>();
  const sdk::Operand &x = call.inputs[0], &y = call.outputs[0];
  if (y.count == 0) return;
  const T* from = call.input<T>(0);
  T* to = call.output<T>(0);
  std::array<sdk::Strides, 1> strides{};
  for (std::uint32_t d = 0; d < x.rank; ++d) {
    from += attributes.starts[d] * x.strides[d];
    strides[0][d] = attributes.steps[d] * x.strides[d];
  }
  sdk::for_each_element(y.shape, y.rank, strides, [&](std::int64_t i, const auto& at) { to[i] = from[at[0]]; });
}

/// y[before + i, ...] = x[i, ...]; elsewhere the value (constant), x[|i|] mirrored at its ends (reflect), or the nearest x[i] (edge).
///
/// Attributes  mode; value: a value of the dtype; before: elements before each dimension. The padding after it follows from y's shape.
template <class T>
void pad(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_pad>();
  const sdk::Operand &x = call.inputs[0], &y = call.outputs[0];
  const T* from = call.input<T>(0);
  T* to = call.output<T>(0);
  const T value = sdk::element_of<T>(attributes.value);
  for (std::int64_t i = 0; i < y.count; ++i) {
    std::int64_t rest = i, offset = 0;
    bool inside = true;
    for (std::uint32_t d = y.rank; d-- > 0; rest /= y.shape[d]) {
      const std::int64_t n = x.shape[d];
      std::int64_t j = rest % y.shape[d] - attributes.before[d];
      if (attributes.mode == TENON_PAD_REFLECT) j = j < 0 ? -j : j < n ? j : 2 * n - 2 - j;
      if (attributes.mode == TENON_PAD_EDGE) j = std::clamp<std::int64_t>(j, 0, n - 1);
      inside = inside && j >= 0 && j < n;
      offset += j * x.strides[d];
    }
    to[i] = inside ? from[offset] : value;
  }
}

constexpr sdk::Traits traits{.strided = true};

}  // namespace
TENON_KERNEL_WITH(slice, traits, TENON_MOVABLE_TYPES)
TENON_KERNEL_WITH(pad, traits, TENON_MOVABLE_TYPES)
}  // namespace tenon::reference
