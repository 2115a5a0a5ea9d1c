// ops/reduce.cpp - reductions over axes.
#include <fmt/format.h>

#include <tenon/functions.h>
#include <algorithm>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

/// Resolves, sorts and completes the axes. Returns which ones are reduced.
std::array<bool, Shape::max_rank> normalise_axes(Inference& at) {
  auto attributes = at.attributes.as<tenon_attributes_axes>();
  at.want_flag(attributes.keepdims, "keepdims");
  if (attributes.count > Shape::max_rank) at.fail(fmt::format("{} axes are given for {}", attributes.count, at.str(0)));
  std::array<bool, Shape::max_rank> reduced{};
  for (std::uint32_t i = 0; i < attributes.count; ++i) {
    bool& seen = reduced[static_cast<std::size_t>(at.axis(attributes.axes[i], 0))];
    if (seen) at.fail(fmt::format("axis {} of {} is given twice", attributes.axes[i], at.str(0)));
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
  at.want_inputs(1, 1);
  at.want_number(0);
  const std::array<bool, Shape::max_rank> reduced = normalise_axes(at);
  const bool keepdims = at.attributes.as<tenon_attributes_axes>().keepdims != 0;
  Shape y;
  for (std::size_t i = 0; i < at.shape(0).rank(); ++i) {
    if (!reduced[i]) y.push_back(at.shape(0)[i]);
    if (reduced[i] && keepdims) y.push_back(1);
  }
  at.output(at.dtype(0), y);
}

void infer_mean(Inference& at) {
  infer(at);
  at.want_floating(0);
}

/// dy in the shape of x: reduced axes come back with size 1 and are repeated.
Value spread(Gradient& at, Value dy) {
  const auto& attributes = at.attributes.as<tenon_attributes_axes>();
  const Shape& x = at.input(0).shape();
  Shape kept = x;
  for (std::uint32_t i = 0; i < attributes.count; ++i) kept.set(static_cast<std::size_t>(attributes.axes[i]), 1);
  // a scalar broadcasts as it is
  if (dy.shape() != kept && dy.shape().rank() != 0) dy = ops::reshape(dy, kept);
  return dy.shape() == x ? dy : ops::expand(dy, x);
}

void sum_gradient(Gradient& at) {
  at.set(0, spread(at, at.dy()));
}

void mean_gradient(Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_axes>();
  double n = 1;
  for (std::uint32_t i = 0; i < attributes.count; ++i)
    n *= static_cast<double>(at.input(0).shape()[static_cast<std::size_t>(attributes.axes[i])]);
  // scaled before it is spread: fewer elements. Without elements there is nothing to scale.
  at.set(0, spread(at, n > 1 ? ops::mul(at.dy(), 1 / n) : at.dy()));
}

}  // namespace

extern const OpRules rules_reduce_sum, rules_reduce_mean;
const OpRules rules_reduce_sum{"y = sum of x over axes; no axes: all of them. The sum of nothing is 0.", infer, sum_gradient};
const OpRules rules_reduce_mean{"y = mean of x over axes; no axes: all of them. The mean of nothing is NaN.", infer_mean, mean_gradient};

}  // namespace graph

namespace ops {

Value reduce_sum(Value x, const std::vector<std::int64_t>& axes, bool keepdims) {
  return graph::apply_op(TENON_OP_ReduceSum, {x}, graph::axes_attributes("reduce_sum", axes, keepdims));
}
Value reduce_mean(Value x, const std::vector<std::int64_t>& axes, bool keepdims) {
  return graph::apply_op(TENON_OP_ReduceMean, {x}, graph::axes_attributes("reduce_mean", axes, keepdims));
}

}  // namespace ops
}  // namespace tenon
