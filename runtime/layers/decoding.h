// SPDX-License-Identifier: Apache-2.0
// layers/decoding.h - a pass over the next steps of one sequence, whose layers keep what they need of the steps before.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tenon/graph.h>

namespace tenon::layers {

/// Parameters of the graph that the pass updates. All zeros before the first step.
struct DecodingState {
  std::string name;  ///< "attention/keys"
  DType dtype = DType::f32;
  Shape shape;
};

struct Decoding {
  std::int64_t capacity = 0;  ///< the number of steps of a sequence
  Value steps;                ///< i64(n): the indices of the n steps of x, 0 to capacity - 1
  std::vector<DecodingState> states = {};
};

}  // namespace tenon::layers
