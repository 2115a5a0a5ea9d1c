// SPDX-License-Identifier: Apache-2.0
// ops/pointwise.h - shape rules of y = f(x), element by element.
#pragma once

#include "graph/op.h"

namespace tenon::graph {

inline void infer_number(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_number(0);
  at.output(at.dtype(0), at.shape(0));
}

inline void infer_floating(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_floating(0);
  at.output(at.dtype(0), at.shape(0));
}

}  // namespace tenon::graph
