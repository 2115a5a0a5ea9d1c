// SPDX-License-Identifier: Apache-2.0
// ctc_loss.cpp - connectionist temporal classification: the forward recursion of Graves et al. (2006), section 4.1, on logarithms, as a
// graph with a few nodes for each time step. Its gradient is that of the nodes.
//
// The states of a sample are its labels with a blank before, between and behind them. alpha[s] is the logarithm of the probability of all
// paths that have reached state s. A path stays in its state, goes to the next one, or passes over a blank between different labels.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon::ops {
namespace {

/// The logarithm of 0 in a recursion whose gradient is computed: minus infinity would give NaN.
constexpr double log_zero = -1e30;
/// Anything below it is the logarithm of 0, of which each step may have added a few.
constexpr double log_almost_zero = log_zero / 10;

struct Sizes {
  std::int64_t samples, steps, classes, labels;
};

Sizes checked(Value log_probabilities, Value labels, Value input_lengths, Value label_lengths, const CtcOptions& options) {
  const Shape scores = log_probabilities.shape(), words = labels.shape();
  const auto is_integer = [](Value v) { return v.dtype() == DType::i32 || v.dtype() == DType::i64; };
  if (scores.rank() != 3 || words.rank() != 2 || words[0] != scores[0] || words[1] < 1 || scores[1] < 1 || !is_integer(labels)) {
    throw Error(
        fmt::format("ctc_loss: expected log probabilities (N, T, C) and labels (N, S) of i32 or i64 with T and S of at least 1, "
                    "got '{}' {} and '{}' {} {}",
                    log_probabilities.name(), scores.str(), labels.name(), name_of(labels.dtype()), words.str()));
  }
  for (const Value lengths : {input_lengths, label_lengths}) {
    if (lengths.present() && (lengths.shape() != Shape{scores[0]} || !is_integer(lengths))) {
      throw Error(fmt::format("ctc_loss: expected lengths ({}) of i32 or i64, one for each sample, got '{}' {} {}", scores[0],
                              lengths.name(), name_of(lengths.dtype()), lengths.shape().str()));
    }
  }
  if (options.blank < 0 || options.blank >= scores[2])
    throw Error(fmt::format("ctc_loss: blank is {}, expected a class from 0 to {}", options.blank, scores[2] - 1));
  return {scores[0], scores[1], scores[2], words[1]};
}

Value as_i64(Value v) {
  return v.dtype() == DType::i64 ? v : cast(v, DType::i64);
}

/// Builds the recursion for samples of these sizes.
class Recursion {
 public:
  Recursion(Graph& graph, const Sizes& sizes, DType dtype, std::int64_t blank)
      : graph_(graph), sizes_(sizes), dtype_(dtype), blank_(blank), states_(2 * sizes.labels + 1) {}

  /// -log of the probability of the labels: (N), beyond -log_almost_zero if it is 0.
  Value losses(Value log_p, Value labels, Value input_lengths, Value label_lengths) const {
    const Value states = states_of(labels, label_lengths);
    const Value seen = gather_elements(clip(log_p, log_zero, std::numeric_limits<double>::infinity()),
                                       expand(unsqueeze(states, {1}), {sizes_.samples, sizes_.steps, states_}), 2);
    const Value passes = over_blanks(states);
    Value alpha = concat({at_step(seen, 0, 2), zeros(states_ - 2)}, 1);
    for (std::int64_t t = 1; t < sizes_.steps; ++t) {
      const Value next = concat({zeros(1), slice(alpha, 1, 0, states_ - 1)}, 1);
      const Value over = add(concat({zeros(2), slice(alpha, 1, 0, states_ - 2)}, 1), passes);
      const Value reached = add(reduce_log_sum_exp(stack({alpha, next, over}, 2), {2}), at_step(seen, t, states_));
      alpha = input_lengths.present() ? where(less(integer(t), unsqueeze(input_lengths, {1})), reached, alpha) : reached;
    }
    // A path ends at the last label or at the blank behind it; without labels, at the first blank.
    const Value blank_at = mul(unsqueeze(label_lengths, {1}), integer(2));
    const Value label = gather_elements(alpha, maximum(sub(blank_at, integer(1)), integer(0)), 1);
    const Value ends = concat({gather_elements(alpha, blank_at, 1), where(equal(blank_at, integer(0)), zeros(1), label)}, 1);
    return neg(reduce_log_sum_exp(ends, {1}));
  }

 private:
  Value integer(std::int64_t value) const { return graph_.constant(Tensor::scalar(value)); }
  Value number(double value) const { return graph::scalar(graph_, dtype_, value); }
  /// The logarithm of 0 for `count` states of each sample.
  Value zeros(std::int64_t count) const { return expand(number(log_zero), {sizes_.samples, count}); }
  Value at_step(Value seen, std::int64_t t, std::int64_t count) const { return squeeze(slice(slice(seen, 1, t, t + 1), 2, 0, count), {1}); }

  /// The class of each state, (N, 2 S + 1). Labels that do not count are blanks; a negative one becomes a class that there is not, for
  /// gather_elements counts negative indices from the end.
  Value states_of(Value labels, Value label_lengths) const {
    std::vector<std::int64_t> places;
    for (std::int64_t i = 0; i < sizes_.labels; ++i) places.push_back(i);
    const Value counts = less(graph_.constant(Tensor::of(places, {1, sizes_.labels})), unsqueeze(label_lengths, {1}));
    const Value valid = where(less(labels, integer(0)), integer(sizes_.classes), labels);
    const Value own = where(counts, valid, integer(blank_));
    const Value blanks = expand(integer(blank_), {sizes_.samples, sizes_.labels});
    return concat({expand(integer(blank_), {sizes_.samples, 1}), reshape(stack({own, blanks}, 2), {sizes_.samples, 2 * sizes_.labels})}, 1);
  }

  /// What a path gets for going on by two states, (N, 2 S + 1): 0 to a label from a different one, else the logarithm of 0.
  Value over_blanks(Value states) const {
    const Value same = equal(slice(states, 1, 2, states_), slice(states, 1, 0, states_ - 2));
    return concat({zeros(2), where(same, number(log_zero), number(0))}, 1);
  }

  Graph& graph_;
  Sizes sizes_;
  DType dtype_;
  std::int64_t blank_, states_;
};

}  // namespace

Value ctc_loss(Value log_probabilities, Value labels, Value input_lengths, Value label_lengths, const CtcOptions& options) {
  const Sizes sizes = checked(log_probabilities, labels, input_lengths, label_lengths, options);
  Graph& graph = log_probabilities.graph();
  const DType dtype = log_probabilities.dtype();
  const bool narrow = dtype == DType::f16 || dtype == DType::bf16;
  const Value log_p = narrow ? cast(log_probabilities, DType::f32) : log_probabilities;
  if (input_lengths.present()) input_lengths = as_i64(input_lengths);
  label_lengths =
      label_lengths.present() ? as_i64(label_lengths) : expand(graph.constant(Tensor::scalar(sizes.labels)), Shape{sizes.samples});
  const Value found = Recursion(graph, sizes, log_p.dtype(), options.blank).losses(log_p, as_i64(labels), input_lengths, label_lengths);
  const auto number = [&](double value) { return graph::scalar(graph, log_p.dtype(), value); };
  const double impossible = options.zero_infinity ? 0 : std::numeric_limits<double>::infinity();
  Value losses = where(greater(found, number(-log_almost_zero)), number(impossible), found);
  if (options.reduction == Reduction::mean)
    losses = reduce_mean(div(losses, maximum(cast(label_lengths, log_p.dtype()), 1.0)));
  else if (options.reduction == Reduction::sum)
    losses = reduce_sum(losses);
  return narrow ? cast(losses, dtype) : losses;
}

}  // namespace tenon::ops
