// SPDX-License-Identifier: Apache-2.0
// ops/softsign.cpp - an elementwise activation that saturates more slowly than tanh.
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon::graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_floating(0);
  at.output(at.dtype(0), at.shape(0));
}

/// 1 / (1 + |x|)^2
void gradient(Gradient& at) {
  at.set(0, ops::div(at.dy(), ops::square(ops::add(ops::abs(at.input(0)), 1))));
}

}  // namespace

extern const OpRules rules_softsign;
const OpRules rules_softsign{"y = x / (1 + |x|); NaN for infinite x.", infer, PrecisionClass::inherits, per_element<1>, gradient};

}  // namespace tenon::graph
