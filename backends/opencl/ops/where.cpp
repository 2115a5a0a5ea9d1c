// SPDX-License-Identifier: Apache-2.0
#include <tenon/sdk/element.h>

#include "kernel/map.h"

namespace tenon::opencl {
namespace {

/// y = condition ? a : b, by element size only.
template <class T>
void where(const sdk::Call& call) {
  map<3>(call, sources::where, "op_where", moved_types<T>());
}

}  // namespace
TENON_KERNEL_WITH(where, elementwise_traits, TENON_MOVABLE_TYPES)
}  // namespace tenon::opencl
