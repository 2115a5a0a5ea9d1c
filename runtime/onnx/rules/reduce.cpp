// SPDX-License-Identifier: Apache-2.0
// onnx/rules/reduce.cpp - reductions over axes, indices of extremes, sums and products along an axis.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "onnx/rules.h"
#include "onnx/rules/numbers.h"

namespace tenon::onnx {
namespace {

using Axes = std::vector<std::int64_t>;
using Reduction = Value (*)(Value x, const Axes& axes, bool keepdims);

bool contains(const Axes& axes, std::size_t axis) {
  return std::find(axes.begin(), axes.end(), static_cast<std::int64_t>(axis)) != axes.end();
}

/// Integers wrap around.
template <Reduction f>
Value wrapping_reduction(Value x, const Axes& axes, bool keepdims) {
  const auto reduced = [&](Value v) { return f(v, axes, keepdims); };
  return computed_in(arithmetic_dtype(x.dtype()), reduced, x);
}
constexpr Reduction sum = wrapping_reduction<ops::reduce_sum>;

/// The largest or smallest element. Of no elements it is the lowest or highest value of the dtype: infinite if there are infinities.
template <Reduction f, bool largest>
Value extreme(Value x, const Axes& axes, bool keepdims) {
  Shape shape;
  for (std::size_t i = 0; i < x.shape().rank(); ++i) {
    const bool is_reduced = contains(axes, i);
    if (!is_reduced || keepdims) shape.push_back(is_reduced ? 1 : x.shape()[i]);
  }
  if (x.shape().count() == 0 && shape.count() != 0) {
    const double infinity = std::numeric_limits<double>::infinity();
    // A cast to an integer saturates; to bool each infinity would be true.
    const Tensor none =
        x.dtype() == DType::boolean ? Tensor::scalar(!largest) : Tensor::scalar(largest ? -infinity : infinity).to(x.dtype());
    return ops::expand(x.graph().constant(none), shape);
  }
  return unordered(f(ordered(x), axes, keepdims), x.dtype());
}

/// Means of integers truncate. Their sums are exact in 64 bits; the mean of none is 0.
Value mean(Value x, const Axes& axes, bool keepdims) {
  if (is_floating(x.dtype())) return ops::reduce_mean(x, axes, keepdims);
  double terms = 1;
  for (const std::int64_t axis : axes) terms *= static_cast<double>(x.shape()[static_cast<std::size_t>(axis)]);
  const Value total = sum(cast_to(x, x.dtype() == DType::u64 ? DType::u64 : DType::i64), axes, keepdims);
  return cast_to(divide(total, constant_like(total, std::max(terms, 1.0))), x.dtype());
}

Value l1_norm(Value x, const Axes& axes, bool keepdims) {
  return is_floating(x.dtype()) ? ops::norm(x, 1, axes, keepdims) : sum(absolute(x), axes, keepdims);
}

/// Norms of integers are computed in f64 and truncated.
Value l2_norm(Value x, const Axes& axes, bool keepdims) {
  const auto norm = [&](Value v) { return ops::norm(v, 2, axes, keepdims); };
  return computed_in(floating_dtype(x.dtype()), norm, x);
}

Value sum_square(Value x, const Axes& axes, bool keepdims) {
  return is_floating(x.dtype()) ? ops::reduce_sum_square(x, axes, keepdims) : sum(wrapping<ops::mul>(x, x), axes, keepdims);
}

/// Logarithms of integers, which ONNX takes before opset 28, are computed in f64 and truncated.
Value log_sum_exp(Value x, const Axes& axes, bool keepdims) {
  const auto reduced = [&](Value v) { return ops::reduce_log_sum_exp(v, axes, keepdims); };
  return computed_in(floating_dtype(x.dtype()), reduced, x);
}

/// In f32 for narrower floats, in which the sum might overflow.
Value log_sum(Value x, const Axes& axes, bool keepdims) {
  const bool narrow = x.dtype() == DType::f16 || x.dtype() == DType::bf16;
  const auto logarithm = [&](Value v) { return ops::log(ops::reduce_sum(v, axes, keepdims)); };
  return computed_in(narrow ? DType::f32 : floating_dtype(x.dtype()), logarithm, x);
}

void reduce_over(Node& node, Reduction f, const Axes& given, bool keeps_all) {
  const Value x = node.input(0);
  const Shape shape = x.shape();
  if (given.empty() && keeps_all) {
    // Steps other than the reduction remain, such as the square of ReduceSumSquare: a new axis of size 1 is reduced.
    return node.output(0, ops::reshape(f(ops::reshape(x, Shape{shape.count(), 1}), {1}, false), shape));
  }
  Axes axes;
  for (const std::int64_t axis : given) {
    const std::int64_t resolved = node.resolve_axis(axis, node.rank(0));
    if (!contains(axes, static_cast<std::size_t>(resolved))) axes.push_back(resolved);
  }
  if (given.empty()) {
    axes.resize(shape.rank());
    std::iota(axes.begin(), axes.end(), 0);
  }
  node.output(0, f(x, axes, node.flag("keepdims", true)));
}

template <Reduction f>
void over_attribute(Node& node) {
  reduce_over(node, f, node.integers("axes"), false);
}

template <Reduction f>
void over_operand(Node& node) {
  reduce_over(node, f, node.has_input(1) ? node.known_integers(1) : Axes(), node.flag("noop_with_empty_axes"));
}

template <Value (*f)(Value, std::int64_t, bool)>
void arg_extreme(Node& node) {
  const Value x = ordered(node.input(0));
  const std::int64_t axis = node.resolve_axis(node.integer("axis", 0), node.rank(0));
  const bool keepdims = node.flag("keepdims", true);
  if (!node.flag("select_last_index")) return node.output(0, f(x, axis, keepdims));
  const Value from_end = f(ops::flip(x, {axis}), axis, keepdims);
  const auto last = static_cast<double>(x.shape()[static_cast<std::size_t>(axis)] - 1);
  node.output(0, ops::sub(constant_like(from_end, last), from_end));
}

/// Result 0 is f of operand 0, an axis, `exclusive` and `reverse`; integers wrap around. ONNX has the axis as an operand.
template <Value (*f)(Value, std::int64_t, bool, bool)>
void cumulative(Node& node) {
  const Value x = node.input(0);
  const std::int64_t axis = node.resolve_axis(node.known_integer(1), node.rank(0));
  const bool exclusive = node.flag("exclusive"), reverse = node.flag("reverse");
  const auto along_axis = [&](Value v) { return f(v, axis, exclusive, reverse); };
  node.output(0, computed_in(arithmetic_dtype(x.dtype()), along_axis, x));
}

/// x moved by `count` elements towards the end of the axis; ones take the place of the first elements.
Value moved(Value x, std::int64_t axis, std::int64_t count) {
  std::vector<std::pair<std::int64_t, std::int64_t>> widths(x.shape().rank());
  widths[static_cast<std::size_t>(axis)].first = count;
  return ops::pad(ops::slice(x, axis, 0, x.shape()[static_cast<std::size_t>(axis)] - count), widths, 1);
}

/// Products of the last 1, 2, 4, 8 ... elements: each step doubles how many elements a product covers.
Value products(Value x, std::int64_t axis, bool exclusive, bool reverse) {
  const std::int64_t size = x.shape()[static_cast<std::size_t>(axis)];
  if (size == 0) return x;
  if (reverse) x = ops::flip(x, {axis});
  if (exclusive) x = moved(x, axis, 1);
  for (std::int64_t count = 1; count < size; count *= 2) x = ops::mul(x, moved(x, axis, count));
  return reverse ? ops::flip(x, {axis}) : x;
}

}  // namespace

const std::vector<Rule>& reduce_rules() {
  constexpr Reduction largest = extreme<ops::reduce_max, true>, smallest = extreme<ops::reduce_min, false>;
  constexpr Reduction product = wrapping_reduction<ops::reduce_prod>;
  static const std::vector<Rule> rules = {
      {"ReduceSum", 1, over_attribute<sum>},
      {"ReduceSum", 13, over_operand<sum>},
      {"ReduceMean", 1, over_attribute<mean>},
      {"ReduceMean", 18, over_operand<mean>},
      {"ReduceMax", 1, over_attribute<largest>},
      {"ReduceMax", 18, over_operand<largest>},
      {"ReduceMin", 1, over_attribute<smallest>},
      {"ReduceMin", 18, over_operand<smallest>},
      {"ReduceProd", 1, over_attribute<product>},
      {"ReduceProd", 18, over_operand<product>},
      {"ReduceL1", 1, over_attribute<l1_norm>},
      {"ReduceL1", 18, over_operand<l1_norm>},
      {"ReduceL2", 1, over_attribute<l2_norm>},
      {"ReduceL2", 18, over_operand<l2_norm>},
      {"ReduceSumSquare", 1, over_attribute<sum_square>},
      {"ReduceSumSquare", 18, over_operand<sum_square>},
      {"ReduceLogSum", 1, over_attribute<log_sum>},
      {"ReduceLogSum", 18, over_operand<log_sum>},
      {"ReduceLogSumExp", 1, over_attribute<log_sum_exp>},
      {"ReduceLogSumExp", 18, over_operand<log_sum_exp>},
      {"ArgMax", 1, arg_extreme<ops::arg_max>},
      {"ArgMin", 1, arg_extreme<ops::arg_min>},
      {"CumSum", 11, cumulative<ops::cum_sum>},
      {"CumProd", 26, cumulative<products>},
  };
  return rules;
}

}  // namespace tenon::onnx
