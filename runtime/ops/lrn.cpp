// SPDX-License-Identifier: Apache-2.0
// ops/lrn.cpp - local response normalisation over neighbouring channels.
#include <fmt/format.h>

#include <cmath>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void check(Inference& at, std::size_t x) {
  at.expect_floating(x);
  if (at.shape(x).rank() < 2) at.fail(fmt::format("expected x (N, C, d...), got {}", at.str(x)));
  const auto& a = at.attributes.as<tenon_attributes_lrn>();
  if (a.size < 1) at.fail(fmt::format("size is {}, expected a window of 1 channel or more", a.size));
  // these make the base of the power positive for every x
  if (!(a.alpha >= 0)) at.fail(fmt::format("alpha is {}, expected alpha >= 0", a.alpha));
  if (!(a.bias > 0)) at.fail(fmt::format("bias is {}, expected bias > 0", a.bias));
  if (!std::isfinite(a.beta)) at.fail(fmt::format("beta is {}, expected a number", a.beta));
}

void infer(Inference& at) {
  at.expect_inputs(1, 1);
  check(at, 0);
  at.output(at.dtype(0), at.shape(0));
}

/// dy, x -> dx
void infer_gradient(Inference& at) {
  at.expect_inputs(2, 2);
  at.expect_same_dtype(1, 0);
  at.expect_same_shape(1, 0);
  check(at, 1);
  at.output(at.dtype(1), at.shape(1));
}

void gradient(Gradient& at) {
  at.set(0, apply_op(TENON_OP_LRNGrad, {at.dy(), at.input(0)}, at.attributes));
}

template <std::int64_t per_channel, std::int64_t once>
std::int64_t flops(const Graph& graph, const NodeInfo& node) {
  return graph.info(node.inputs[0]).shape.count() * (per_channel * node.attributes.as<tenon_attributes_lrn>().size + once);
}

}  // namespace

extern const OpRules rules_lrn, rules_lrn_grad;
const OpRules rules_lrn{
    "y = x / (bias + alpha / size sum x^2)^beta, the sum over the channels c - floor((size - 1) / 2) ... c + ceil((size - 1) / 2).", infer,
    PrecisionClass::fp32_internal, flops<1, 5>, gradient};
const OpRules rules_lrn_grad{
    "With d = bias + alpha / size sum x^2: dx = dy d^-beta - 2 alpha beta / size x sum(dy x d^(-beta - 1)), the last sum over the channels "
    "whose windows contain this one.",
    infer_gradient, PrecisionClass::fp32_internal, flops<2, 8>};

}  // namespace graph

namespace ops {

Value lrn(Value x, std::int64_t size, double alpha, double beta, double bias) {
  tenon_attributes_lrn attributes{};
  attributes.size = size;
  attributes.alpha = alpha;
  attributes.beta = beta;
  attributes.bias = bias;
  return graph::apply_op(TENON_OP_LRN, {x}, Attributes::of(attributes));
}

}  // namespace ops
}  // namespace tenon
