// SPDX-License-Identifier: Apache-2.0
// composites.cpp - functions composed of several ops.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <algorithm>

#include "graph/op.h"

namespace tenon::ops {

namespace {

/// Lower bound of probabilities before the logarithm, as in Keras.
constexpr double min_probability = 1e-7;

/// Broadcasting (8) against (8,1) would silently average 64 differences.
void expect_same_shape(const char* loss, Value y, Value target) {
  if (y.shape() == target.shape()) return;
  throw Error(fmt::format("{}: expected y and target of one shape, got '{}' {} and '{}' {}", loss, y.name(), y.shape().str(), target.name(),
                          target.shape().str()));
}

/// The losses reduced; their mean counts all elements.
Value reduced(Value losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::sum ? reduce_sum(losses) : reduce_mean(losses);
}

}  // namespace

Value div(double a, Value b) {
  return div(graph::scalar(b.graph(), b.dtype(), a), b);
}

Value mse(Value y, Value target, Reduction reduction) {
  expect_same_shape("mse", y, target);
  return reduced(square(sub(y, target)), reduction);
}

Value half_mse(Value y, Value target, Reduction reduction) {
  expect_same_shape("half_mse", y, target);
  const Value squares = square(sub(y, target));
  if (reduction != Reduction::mean) return mul(reduced(squares, reduction), 0.5);
  const double batch = y.shape().rank() == 0 ? 1 : static_cast<double>(y.shape()[0]);
  return mul(reduce_sum(squares), 0.5 / std::max(batch, 1.0));
}

Value mae(Value y, Value target, Reduction reduction) {
  expect_same_shape("mae", y, target);
  return reduced(abs(sub(y, target)), reduction);
}

Value huber(Value y, Value target, double delta, Reduction reduction) {
  expect_same_shape("huber", y, target);
  if (!(delta > 0)) throw Error(fmt::format("huber: delta is {}, expected delta > 0", delta));
  // with c = min(|e|, delta): e^2/2 within delta, delta (|e| - delta/2) beyond both equal c (|e| - c/2)
  const Value error = abs(sub(y, target));
  const Value capped = minimum(error, delta);
  return reduced(mul(capped, sub(error, mul(capped, 0.5))), reduction);
}

Value binary_cross_entropy(Value y, Value target, bool from_logits, Reduction reduction) {
  expect_same_shape("binary_cross_entropy", y, target);
  // -t log s(y) - (1 - t) log(1 - s(y)) = softplus(y) - t y: without cancellation or a logarithm of 0
  if (from_logits) return reduced(sub(softplus(y), mul(target, y)), reduction);
  const Value p = clip(y, min_probability, 1 - min_probability);
  const Value one = graph::scalar(y.graph(), y.dtype(), 1);
  return neg(reduced(add(mul(target, log(p)), mul(sub(one, target), log(sub(one, p)))), reduction));
}

Value categorical_cross_entropy(Value y, Value target, bool from_logits, Reduction reduction) {
  expect_same_shape("categorical_cross_entropy", y, target);
  if (y.shape().rank() == 0)
    throw Error(fmt::format("categorical_cross_entropy: expected classes along the last axis, got '{}' {}", y.name(), y.shape().str()));
  const Value log_p = from_logits ? log_softmax(y) : log(clip(y, min_probability, 1));
  return neg(reduced(reduce_sum(mul(target, log_p), {-1}), reduction));
}

Value nll(Value log_probabilities, Value labels, std::optional<std::int64_t> ignore_index, Reduction reduction) {
  const Shape& scores = log_probabilities.shape();
  if (scores.rank() != 2 || labels.shape() != Shape{scores[0]}) {
    throw Error(fmt::format("nll: expected log probabilities (N, C) and labels (N), got '{}' {} and '{}' {}", log_probabilities.name(),
                            scores.str(), labels.name(), labels.shape().str()));
  }
  Graph& graph = log_probabilities.graph();
  // GatherElements takes negative indices; labels are checked as those of any loss are, by the op that reads labels. Of zeros its result is
  // finite: log C for each label that counts.
  const Value zeros = expand(graph::scalar(graph, log_probabilities.dtype(), 0), scores);
  const Value checked = mul(softmax_cross_entropy(zeros, labels, {Reduction::sum, ignore_index, {}}), 0);
  if (!ignore_index) {
    const Value picked = gather_elements(log_probabilities, unsqueeze(labels, {1}), 1);
    return add(neg(reduced(reduction == Reduction::none ? squeeze(picked, {1}) : picked, reduction)), checked);
  }
  if (labels.dtype() != DType::i64) labels = cast(labels, DType::i64);
  const Value ignored = equal(labels, graph.constant(Tensor::scalar(*ignore_index)));
  const Value place = where(ignored, graph.constant(Tensor::scalar<std::int64_t>(0)), labels);
  const Value picked = squeeze(gather_elements(log_probabilities, unsqueeze(place, {1}), 1), {1});
  const Value own = where(ignored, graph::scalar(graph, picked.dtype(), 0), picked);
  if (reduction != Reduction::mean) return add(neg(reduced(own, reduction)), checked);
  const Value count = reduce_sum(cast(logical_not(ignored), picked.dtype()));
  return add(neg(div(reduce_sum(own), count)), checked);
}

Value kl_divergence(Value y, Value target, bool log_probabilities, Reduction reduction) {
  expect_same_shape("kl_divergence", y, target);
  if (y.shape().rank() == 0)
    throw Error(fmt::format("kl_divergence: expected classes along the last axis, got '{}' {}", y.name(), y.shape().str()));
  const Value log_y = log_probabilities ? y : log(clip(y, min_probability, 1));
  return reduced(reduce_sum(mul(target, sub(log(clip(target, min_probability, 1)), log_y)), {-1}), reduction);
}

Value neg_mean_prod(Value y, Value target, Reduction reduction) {
  expect_same_shape("neg_mean_prod", y, target);
  return neg(reduced(mul(y, target), reduction));
}

}  // namespace tenon::ops
