// SPDX-License-Identifier: Apache-2.0
// ops/cast.cpp - conversion between dtypes.
#include <fmt/format.h>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(1, 1);
  const auto to = static_cast<DType>(at.attributes.as<tenon_attributes_cast>().to);
  if (size_of(to) == 0) at.fail(fmt::format("expected a dtype to cast {1} to, got {0}", static_cast<tenon_dtype>(to), at.str(0)));
  at.output(to, at.shape(0));
}

void gradient(Gradient& at) {
  at.set(0, ops::cast(at.dy(), at.input(0).dtype()));
}

}  // namespace

extern const OpRules rules_cast;
const OpRules rules_cast{
    "y = x converted to another real dtype. Float to integer truncates and saturates, NaN becomes 0; integer to a narrower one keeps the "
    "low "
    "bits; to bool is x != 0; to a float rounds once, to nearest, ties to even. Between floats the gradient is cast back; integers have "
    "no gradient.",
    infer, PrecisionClass::fp32, per_element<0>, gradient};

}  // namespace graph

namespace ops {

Value cast(Value x, DType to) {
  tenon_attributes_cast attributes{};
  attributes.to = static_cast<tenon_dtype>(to);
  return graph::apply_op(TENON_OP_Cast, {x}, Attributes::of(attributes));
}

}  // namespace ops
}  // namespace tenon
