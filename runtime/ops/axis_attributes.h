// SPDX-License-Identifier: Apache-2.0
// ops/axis_attributes.h - the attributes of ops along one axis.
#pragma once

#include <cstdint>

#include "graph/op.h"

namespace tenon::graph {

inline Attributes axis_attributes(std::int64_t axis, bool keepdims = false) {
  tenon_attributes_axis attributes{};
  attributes.axis = axis;
  attributes.keepdims = keepdims ? 1 : 0;
  return Attributes::of(attributes);
}

}  // namespace tenon::graph
