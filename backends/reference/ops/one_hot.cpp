// SPDX-License-Identifier: Apache-2.0
// One-hot encoding of class indices.
#include <tenon/sdk/element.h>
#include <tenon/sdk/kernel.h>

#include <algorithm>

namespace tenon::reference {
namespace {

template <class T, class Index>
void mark(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_one_hot>();
  const auto [outer, depth, inner] = sdk::around_axis(call.outputs[0], attributes.axis);
  const Index* index = call.input<Index>(0);
  T* y = call.output<T>(0);
  std::fill_n(y, call.outputs[0].count, sdk::element_of<T>(attributes.off));
  const T on = sdk::element_of<T>(attributes.on);
  for (std::int64_t o = 0; o < outer; ++o, y += depth * inner) {
    for (std::int64_t i = 0; i < inner; ++i, ++index) {
      const std::int64_t at = *index < 0 ? *index + depth : *index;
      if (at >= 0 && at < depth) y[at * inner + i] = on;
    }
  }
}

/// y[o, j, i] = on if indices[o, i] is j or j - depth, else off, around `axis` of y.
///
/// Shapes      indices dense; y has one dimension more, at the axis: its size is the depth.
/// Dtypes      y any, indices i32 or i64. An index outside [-depth, depth) gives only `off`.
/// Attributes  axis; off and on: values of y's dtype.
template <class T>
void one_hot(const sdk::Call& call) {
  if (call.inputs[0].dtype == TENON_DTYPE_I64)
    mark<T, std::int64_t>(call);
  else
    mark<T, std::int32_t>(call);
}

}  // namespace
TENON_KERNEL(one_hot, TENON_MOVABLE_TYPES)
}  // namespace tenon::reference
