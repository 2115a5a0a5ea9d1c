// SPDX-License-Identifier: Apache-2.0
// ops/dropout.cpp - drops random elements and scales the rest.
#include <fmt/format.h>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(2, 2);
  at.expect_floating(0);
  if (at.dtype(1) != DType::u64 || at.shape(1) != Shape{2}) at.fail(fmt::format("expected key as u64(2) (seed, step), got {}", at.str(1)));
  auto attributes = at.attributes.as<tenon_attributes_random>();
  if (!(attributes.a >= 0 && attributes.a < 1)) at.fail(fmt::format("p is {}, expected 0 <= p < 1", attributes.a));
  attributes.b = 0;
  attributes.dtype = static_cast<tenon_dtype>(at.dtype(0));
  at.attributes = Attributes::of(attributes);
  at.output(at.dtype(0), at.shape(0));
}

/// The same mask and scale on dy: Dropout is linear in x and its own adjoint.
void gradient(Gradient& at) {
  at.set(0, apply_op(TENON_OP_Dropout, {at.dy(), at.input(1)}, at.attributes));
}

}  // namespace

extern const OpRules rules_dropout;
const OpRules rules_dropout{"y = x mask / (1 - p), mask 0 with probability p, else 1: a function of key, stream and index.", infer,
                            PrecisionClass::inherits, per_element<2>, gradient};

}  // namespace graph

namespace ops {

Value dropout(Value x, Value key, double p, std::uint32_t stream) {
  if (p == 0) return x;
  tenon_attributes_random attributes{};
  attributes.stream = stream;
  attributes.a = p;
  return graph::apply_op(TENON_OP_Dropout, {x, key}, Attributes::of(attributes));
}

}  // namespace ops
}  // namespace tenon
