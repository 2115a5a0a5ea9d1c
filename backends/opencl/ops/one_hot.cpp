// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/element.h>

#include "kernel/launch.h"

namespace tenon::opencl {
namespace {

/// y[o, j, i] = on if indices[o, i] is j or j - depth, else off, around `axis` of y.
///
/// Dtypes  y any, indices i32 or i64. An index outside [-depth, depth) gives only `off`.
template <class T>
void one_hot(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_one_hot>();
  const auto [outer, depth, inner] = sdk::around_axis(call.outputs[0], attributes.axis);
  const std::int64_t count = call.outputs[0].count;
  if (count == 0) return;
  const std::string options = moved_types<T>() + (call.inputs[0].dtype == TENON_DTYPE_I64 ? " -DINDEX=long" : " -DINDEX=int");
  Launch(call, sources::one_hot, "one_hot", options)
      .out(call, 0)
      .in(call, 0)
      .value(count)
      .value(depth)
      .value(inner)
      .value(sdk::element_of<T>(attributes.off))
      .value(sdk::element_of<T>(attributes.on))
      .over(count);
}

}  // namespace
TENON_KERNEL(one_hot, TENON_MOVABLE_TYPES)
}  // namespace tenon::opencl
