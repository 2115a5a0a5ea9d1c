// SPDX-License-Identifier: Apache-2.0
// The classification loss on raw scores, and its gradient.
#include <tenon/sdk/class_targets.h>
#include <tenon/sdk/kernel.h>

#include <cmath>

namespace tenon::reference {
namespace {

/// log_prob = x - max x - log(sum exp(x - max x)) over the classes; loss[p] = -weights[label[p]] log_prob[label[p]]; their mean or sum.
/// The mean divides by the weight of the labels that are not ignored; NaN if all are.
///
/// Shapes      scores (N, C, d1, ...), labels (N, d1, ...) of i32 or i64, weights (C) or absent; loss scalar, or as labels without a
///             reduction; log_prob as scores, may be absent.
/// Dtypes      f32, f64; everything up to the final rounding is f64.
/// Attributes  reduction; ignore_index, if there is one: such labels have loss 0 and no weight.
/// Errors      a label that is neither in [0, C) nor ignored.
template <class T>
void softmax_cross_entropy(const sdk::Call& call) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], 1);
  const std::int64_t classes = view.n, inner = view.inner, positions = view.outer * inner;
  const sdk::ClassTargets<T> targets(call, 1, 2, classes);
  const double denominator = targets.denominator("softmax_cross_entropy");
  const bool reduces = call.attr<tenon_attributes_cross_entropy>().reduction != TENON_REDUCTION_NONE;
  const T* scores = call.input<T>(0);
  T* loss = call.has_output(0) ? call.output<T>(0) : nullptr;
  T* log_prob = call.has_output(1) ? call.output<T>(1) : nullptr;
  double total = 0;
  for (std::int64_t position = 0; position < positions; ++position) {
    const std::int64_t first = position / inner * classes * inner + position % inner;
    const auto score = [&](std::int64_t c) { return double{scores[first + c * inner]}; };
    double row_max = classes > 0 ? score(0) : 0.0;
    for (std::int64_t c = 1; c < classes; ++c) row_max = score(c) > row_max ? score(c) : row_max;
    double sum = 0;
    for (std::int64_t c = 0; c < classes; ++c) sum += std::exp(score(c) - row_max);
    const double log_sum = std::log(sum);
    if (log_prob != nullptr) {
      for (std::int64_t c = 0; c < classes; ++c) log_prob[first + c * inner] = static_cast<T>(score(c) - row_max - log_sum);
    }
    double own = 0;
    if (targets.counts(position)) own = -targets.weight(position) * (score(targets.label(position)) - row_max - log_sum);
    if (!reduces && loss != nullptr) loss[position] = static_cast<T>(own);
    total += own;
  }
  if (reduces && loss != nullptr) *loss = static_cast<T>(total / denominator);
}

/// dscores[p, c] = dloss weights[label[p]] (exp(log_prob[p, c]) - [c = label[p]]) / denominator, 0 where the label is ignored
///
/// Shapes      dloss scalar, or as labels without a reduction; log_prob, dscores (N, C, d1, ...); the rest as for the loss. dscores may be
///             log_prob.
/// Errors      a label that is neither in [0, C) nor ignored.
template <class T>
void softmax_cross_entropy_grad(const sdk::Call& call) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[1], 1);
  const std::int64_t classes = view.n, inner = view.inner, positions = view.outer * inner;
  const sdk::ClassTargets<T> targets(call, 2, 3, classes);
  const double denominator = targets.denominator("softmax_cross_entropy_grad");
  const bool reduces = call.attr<tenon_attributes_cross_entropy>().reduction != TENON_REDUCTION_NONE;
  const T* dloss = call.input<T>(0);
  const T* log_prob = call.input<T>(1);
  T* dscores = call.output<T>(0);
  for (std::int64_t position = 0; position < positions; ++position) {
    const std::int64_t first = position / inner * classes * inner + position % inner;
    const bool counts = targets.counts(position);
    const double scale = counts ? double{dloss[reduces ? 0 : position]} * targets.weight(position) / denominator : 0.0;
    for (std::int64_t c = 0; c < classes; ++c) {
      const std::int64_t i = first + c * inner;
      const double own = counts && c == targets.label(position) ? 1.0 : 0.0;
      dscores[i] = counts ? static_cast<T>(scale * (std::exp(double{log_prob[i]}) - own)) : T(0);
    }
  }
}

}  // namespace
TENON_KERNEL(softmax_cross_entropy, float, double)
TENON_KERNEL_WITH(softmax_cross_entropy_grad, (sdk::Traits{.in_place = true}), float, double)
}  // namespace tenon::reference
