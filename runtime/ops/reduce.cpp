// SPDX-License-Identifier: Apache-2.0
// ops/reduce.cpp - reductions over axes.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <algorithm>
#include <cmath>
#include <limits>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

/// Resolves and sorts the axes; none means all. Returns which ones are reduced.
std::array<bool, Shape::max_rank> normalise_axes(Inference& at) {
  auto attributes = at.attributes.as<tenon_attributes_axes>();
  at.expect_flag(attributes.keepdims, "keepdims");
  if (attributes.count > Shape::max_rank) at.fail(fmt::format("{} axes are given for {}", attributes.count, at.str(0)));
  std::array<bool, Shape::max_rank> reduced{};
  for (std::uint32_t i = 0; i < attributes.count; ++i) {
    bool& seen = reduced[static_cast<std::size_t>(at.axis(attributes.axes[i], 0))];
    if (seen) at.fail(fmt::format("axis {} of {} is repeated", attributes.axes[i], at.str(0)));
    seen = true;
  }
  const bool all = attributes.count == 0;
  tenon_attributes_axes normal{};
  normal.keepdims = attributes.keepdims;
  for (std::size_t i = 0; i < at.shape(0).rank(); ++i) {
    reduced[i] = reduced[i] || all;
    if (reduced[i]) normal.axes[normal.count++] = static_cast<std::int64_t>(i);
  }
  at.attributes = Attributes::of(normal);
  return reduced;
}

void infer(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_number(0);
  const std::array<bool, Shape::max_rank> reduced = normalise_axes(at);
  const bool keepdims = at.attributes.as<tenon_attributes_axes>().keepdims != 0;
  Shape y;
  for (std::size_t i = 0; i < at.shape(0).rank(); ++i) {
    if (!reduced[i]) y.push_back(at.shape(0)[i]);
    if (reduced[i] && keepdims) y.push_back(1);
  }
  at.output(at.dtype(0), y);
}

void infer_floating(Inference& at) {
  infer(at);
  at.expect_floating(0);
}

/// The maximum of no elements has no value in every dtype, so it is an error.
void infer_extreme(Inference& at) {
  infer(at);
  if (at.shape(0).count() == 0 && at.outputs[0].shape.count() != 0) {
    const auto& attributes = at.attributes.as<tenon_attributes_axes>();
    for (std::uint32_t i = 0; i < attributes.count; ++i) {
      if (at.shape(0)[static_cast<std::size_t>(attributes.axes[i])] == 0) {
        at.fail(fmt::format("axis {} of {} has no elements to choose from", attributes.axes[i], at.str(0)));
      }
    }
  }
}

/// Restores the reduced axes of a result as size 1, so that it broadcasts against x. A scalar broadcasts as it is.
Value kept(Gradient& at, Value value) {
  const auto& attributes = at.attributes.as<tenon_attributes_axes>();
  Shape shape = at.input(0).shape();
  for (std::uint32_t i = 0; i < attributes.count; ++i) shape.set(static_cast<std::size_t>(attributes.axes[i]), 1);
  return value.shape() == shape || value.shape().rank() == 0 ? value : ops::reshape(value, shape);
}

/// dy broadcast to the shape of x.
Value spread(Gradient& at, Value dy) {
  dy = kept(at, dy);
  return dy.shape() == at.input(0).shape() ? dy : ops::expand(dy, at.input(0).shape());
}

std::vector<std::int64_t> axes_of(const Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_axes>();
  return {attributes.axes, attributes.axes + attributes.count};
}

Value constant(Gradient& at, double value) {
  return scalar(at.graph, at.input(0).dtype(), value);
}

void sum_gradient(Gradient& at) {
  at.set(0, spread(at, at.dy()));
}

void mean_gradient(Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_axes>();
  double n = 1;
  for (std::uint32_t i = 0; i < attributes.count; ++i)
    n *= static_cast<double>(at.input(0).shape()[static_cast<std::size_t>(attributes.axes[i])]);
  // scale before broadcasting, on fewer elements; skip it if there are no elements
  at.set(0, spread(at, n > 1 ? ops::mul(at.dy(), 1 / n) : at.dy()));
}

/// Distributes dy equally among all elements that are the extreme value, or all elements if the result is NaN.
void set_extreme(Gradient& at, Value beaten) {
  const Value ones = ops::where(beaten, constant(at, 0), constant(at, 1));
  const Value share = ops::div(kept(at, at.dy()), ops::reduce_sum(ones, axes_of(at), true));
  at.set(0, ops::where(beaten, constant(at, 0), share));
}

void max_gradient(Gradient& at) {
  set_extreme(at, ops::less(at.input(0), kept(at, at.output(0))));
}

void min_gradient(Gradient& at) {
  set_extreme(at, ops::greater(at.input(0), kept(at, at.output(0))));
}

/// dx_i = dy times the product of the other elements: p / x_i with p the product of the nonzero ones, or 0 if another element is 0.
void prod_gradient(Gradient& at) {
  const Value x = at.input(0), zero = constant(at, 0), one = constant(at, 1);
  const Value is_zero = ops::equal(x, zero);
  const Value factor = ops::where(is_zero, one, x), zeros = ops::where(is_zero, one, zero);
  const Value product = ops::mul(kept(at, at.dy()), ops::reduce_prod(factor, axes_of(at), true));
  const Value others = ops::sub(ops::reduce_sum(zeros, axes_of(at), true), zeros);
  at.set(0, ops::where(ops::equal(others, zero), ops::div(product, factor), zero));
}

void l1_gradient(Gradient& at) {
  at.set(0, ops::mul(kept(at, at.dy()), ops::sign(at.input(0))));
}

/// dx = dy x / y, and 0 where all elements are
void l2_gradient(Gradient& at) {
  const Value y = kept(at, at.output(0));
  const Value divisor = ops::where(ops::equal(y, constant(at, 0)), constant(at, 1), y);
  at.set(0, ops::mul(kept(at, at.dy()), ops::div(at.input(0), divisor)));
}

void sum_square_gradient(Gradient& at) {
  at.set(0, ops::mul(ops::mul(kept(at, at.dy()), 2), at.input(0)));
}

/// dx = dy exp(x - y), and 0 where every element is -inf
void log_sum_exp_gradient(Gradient& at) {
  const Value y = kept(at, at.output(0));
  const Value nothing = ops::equal(y, constant(at, -std::numeric_limits<double>::infinity()));
  const Value share = ops::exp(ops::sub(at.input(0), ops::where(nothing, constant(at, 0), y)));
  at.set(0, ops::mul(kept(at, at.dy()), share));
}

}  // namespace

extern const OpRules rules_reduce_sum, rules_reduce_mean, rules_reduce_max, rules_reduce_min, rules_reduce_prod, rules_reduce_l1,
    rules_reduce_l2, rules_reduce_sum_square, rules_reduce_log_sum_exp;
const OpRules rules_reduce_sum{"y = sum of x over axes; no axes: all of them. The sum of no elements is 0. Integers wrap.", infer,
                               PrecisionClass::fp32, per_element<1>, sum_gradient};
const OpRules rules_reduce_mean{"y = mean of x over axes; no axes: all of them. The mean of no elements is NaN.", infer_floating,
                                PrecisionClass::fp32, per_element<1>, mean_gradient};
const OpRules rules_reduce_max{
    "y = the largest x over axes; no axes: all of them. NaN propagates; reducing no elements is an error. Equal elements share the "
    "gradient.",
    infer_extreme, PrecisionClass::fp32, per_element<1>, max_gradient};
const OpRules rules_reduce_min{
    "y = the smallest x over axes; no axes: all of them. NaN propagates; reducing no elements is an error. Equal elements share the "
    "gradient.",
    infer_extreme, PrecisionClass::fp32, per_element<1>, min_gradient};
const OpRules rules_reduce_prod{"y = product of x over axes; no axes: all of them. The product of no elements is 1. Integers wrap.", infer,
                                PrecisionClass::fp32, per_element<1>, prod_gradient};
const OpRules rules_reduce_l1{"y = sum |x| over axes; no axes: all of them. The result for no elements is 0.", infer_floating,
                              PrecisionClass::fp32, per_element<1>, l1_gradient};
const OpRules rules_reduce_l2{
    "y = sqrt(sum x^2) over axes; no axes: all of them. Squares neither overflow nor underflow. The result for no elements is 0.",
    infer_floating, PrecisionClass::fp32, per_element<1>, l2_gradient};
const OpRules rules_reduce_sum_square{"y = sum x^2 over axes; no axes: all of them. The result for no elements is 0.", infer_floating,
                                      PrecisionClass::fp32, per_element<1>, sum_square_gradient};
const OpRules rules_reduce_log_sum_exp{
    "y = m + log(sum exp(x - m)) over axes, m the largest x: no exponential overflows; no axes: all of them. The result for no elements is "
    "-inf.",
    infer_floating, PrecisionClass::fp32, per_element<1>, log_sum_exp_gradient};

}  // namespace graph

namespace ops {
namespace {

Value reduce(tenon_op op, const char* name, Value x, const std::vector<std::int64_t>& axes, bool keepdims) {
  return graph::apply_op(op, {x}, graph::axes_attributes(name, axes, keepdims));
}

/// (sum |x|^p)^(1/p). The derivative is infinite at a root of 0 and, for p < 1, at elements of 0; it is taken as 0 there.
Value power_norm(Value x, double p, const std::vector<std::int64_t>& axes, bool keepdims) {
  const auto constant = [&](double value) { return graph::scalar(x.graph(), x.dtype(), value); };
  const auto away_from_zero = [&](Value base, double exponent) {
    const Value is_zero = equal(base, constant(0));
    return where(is_zero, constant(0), pow(where(is_zero, constant(1), base), exponent));
  };
  const Value magnitude = abs(x);
  return away_from_zero(reduce_sum(p < 1 ? away_from_zero(magnitude, p) : pow(magnitude, p), axes, keepdims), 1 / p);
}

}  // namespace

Value reduce_sum(Value x, const std::vector<std::int64_t>& axes, bool keepdims) {
  return reduce(TENON_OP_ReduceSum, "reduce_sum", x, axes, keepdims);
}
Value reduce_mean(Value x, const std::vector<std::int64_t>& axes, bool keepdims) {
  return reduce(TENON_OP_ReduceMean, "reduce_mean", x, axes, keepdims);
}
Value reduce_max(Value x, const std::vector<std::int64_t>& axes, bool keepdims) {
  return reduce(TENON_OP_ReduceMax, "reduce_max", x, axes, keepdims);
}
Value reduce_min(Value x, const std::vector<std::int64_t>& axes, bool keepdims) {
  return reduce(TENON_OP_ReduceMin, "reduce_min", x, axes, keepdims);
}
Value reduce_prod(Value x, const std::vector<std::int64_t>& axes, bool keepdims) {
  return reduce(TENON_OP_ReduceProd, "reduce_prod", x, axes, keepdims);
}
Value reduce_sum_square(Value x, const std::vector<std::int64_t>& axes, bool keepdims) {
  return reduce(TENON_OP_ReduceSumSquare, "reduce_sum_square", x, axes, keepdims);
}
Value reduce_log_sum_exp(Value x, const std::vector<std::int64_t>& axes, bool keepdims) {
  return reduce(TENON_OP_ReduceLogSumExp, "reduce_log_sum_exp", x, axes, keepdims);
}

Value norm(Value x, double p, const std::vector<std::int64_t>& axes, bool keepdims) {
  if (!(p > 0)) throw Error(fmt::format("norm: p is {}, expected p > 0; infinity gives the largest magnitude", p));
  if (p == 1) return reduce(TENON_OP_ReduceL1, "norm", x, axes, keepdims);
  if (p == 2) return reduce(TENON_OP_ReduceL2, "norm", x, axes, keepdims);
  if (std::isinf(p)) return reduce_max(abs(x), axes, keepdims);
  return power_norm(x, p, axes, keepdims);
}

Value variance(Value x, const std::vector<std::int64_t>& axes, bool keepdims, bool unbiased) {
  const Value mean = reduce_mean(x, axes, true);
  const Value deviation = sub(x, mean);
  if (!unbiased) return reduce_mean(mul(deviation, deviation), axes, keepdims);
  const std::int64_t results = mean.shape().count();
  const std::int64_t n = results == 0 ? 2 : x.shape().count() / results;  // without results, n does not matter
  if (n < 2)
    throw Error(fmt::format("variance: expected n >= 2 for the unbiased variance of '{}' {}, got n = {}", x.name(), x.shape().str(), n));
  return mul(reduce_sum_square(deviation, axes, keepdims), 1 / static_cast<double>(n - 1));
}

}  // namespace ops
}  // namespace tenon
