// SPDX-License-Identifier: Apache-2.0
// ops/softmax_cross_entropy.cpp - vectorised cross-entropy of raw scores and its gradient.
#include "simd/foreach_target.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "reduce/softmax_lines.h"

#include <tenon/sdk/class_targets.h>
#include <tenon/sdk/kernel.h>

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace {

/// The maxima and log sums of `count` neighbouring positions, and log_prob unless that is NULL. The lines of neighbouring positions are n
/// elements apart if inner is 1, else adjacent.
template <class T>
void log_probabilities(const T* scores, T* log_prob, T* row_maxima, T* log_sums, std::int64_t count, std::int64_t n, std::int64_t inner) {
  if (inner == 1) {
    for (std::int64_t i = 0; i < count; ++i) {
      const LogNormaliser<T> by = normalise_row(scores + i * n, n);
      row_maxima[i] = by.row_max;
      log_sums[i] = by.log_sum;
      if (log_prob != nullptr) log_softmax_row(scores + i * n, log_prob + i * n, n, by);
    }
    return;
  }
  const Wide<T> d;
  for (std::int64_t i = 0; i < count; i += lanes(d)) {
    const std::int64_t m = std::min(lanes(d), count - i);
    const auto row_max = max_of_lines(scores + i, n, inner, m);
    const auto log_sum = log_sum_of_lines(scores + i, n, inner, m, row_max);
    store(row_max, d, row_maxima + i, m);
    store(log_sum, d, log_sums + i, m);
    if (log_prob != nullptr) log_softmax_lines(scores + i, log_prob + i, n, inner, m, row_max, log_sum);
  }
}

/// dscores = scale e^log_prob, with one scale per position.
template <class T>
void scaled_probabilities(const T* log_prob, const T* scales, T* dscores, std::int64_t count, std::int64_t n, std::int64_t inner) {
  const Wide<T> d;
  if (inner == 1) {
    for (std::int64_t i = 0; i < count; ++i) {
      const auto scale = hn::Set(d, scales[i]);
      for (std::int64_t j = 0; j < n; j += lanes(d)) {
        const std::int64_t at = i * n + j;
        store(hn::Mul(scale, exp_of(d, load(d, log_prob + at, n - j))), d, dscores + at, n - j);
      }
    }
    return;
  }
  for (std::int64_t i = 0; i < count; i += lanes(d)) {
    const std::int64_t m = std::min(lanes(d), count - i);
    const auto scale = load(d, scales + i, m);
    for (std::int64_t j = 0; j < n; ++j) {
      const std::int64_t at = j * inner + i;
      store(hn::Mul(scale, exp_of(d, load(d, log_prob + at, m))), d, dscores + at, m);
    }
  }
}

/// Whether element `index` of n adjacent elements is the first of the largest ones; a NaN is the largest.
template <class T>
bool is_first_largest(const T* x, std::int64_t n, std::int64_t index) {
  const Wide<T> d;
  const auto own = hn::Set(d, x[index]);
  const bool own_is_nan = x[index] != x[index];
  auto wins = hn::FirstN(d, 0);  // elements that are chosen instead
  for (std::int64_t i = 0; i < index; i += lanes(d)) {
    const auto v = load(d, x + i, index - i);
    const auto wins_here = own_is_nan ? hn::IsNaN(v) : hn::Not(hn::Lt(v, own));
    wins = hn::Or(wins, hn::And(wins_here, hn::FirstN(d, static_cast<std::size_t>(std::min(lanes(d), index - i)))));
  }
  for (std::int64_t i = index + 1; i < n && !own_is_nan; i += lanes(d)) {
    const auto v = load(d, x + i, n - i);
    wins = hn::Or(wins, hn::And(hn::Not(hn::Le(v, own)), hn::FirstN(d, static_cast<std::size_t>(std::min(lanes(d), n - i)))));
  }
  return hn::AllFalse(d, wins);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::openblas {
namespace {

// Scores worth a thread of their own, about 3 us, and how many take as long as what is computed once for each position: a logarithm and an
// exponential in f64.
constexpr std::int64_t grain = 5 * 1024, scores_per_position = 96;
// Positions processed together, with their intermediate values on the stack.
constexpr std::int64_t bundle = 64;

/// Calls body(position, count, first) for runs of at most `bundle` positions that cover [begin, end), each within one outer index; `first`
/// is the element of class 0 at `position`.
template <class Body>
void for_each_bundle(const sdk::AxisView& view, std::int64_t begin, std::int64_t end, const Body& body) {
  while (begin < end) {
    const std::int64_t slab_end = view.inner == 1 ? end : (begin / view.inner + 1) * view.inner;
    const std::int64_t stop = std::min({end, slab_end, begin + bundle});
    body(begin, stop - begin, begin / view.inner * view.n * view.inner + begin % view.inner);
    begin = stop;
  }
}

/// The distance in elements between neighbouring positions of a bundle.
std::int64_t distance(const sdk::AxisView& view) {
  return view.inner == 1 ? view.n : 1;
}

/// What the gradient of `count` positions from `position` on is computed from; `first` is the element of class 0 at `position`.
template <class T>
struct Gradient {
  const sdk::AxisView& view;
  const sdk::ClassTargets<T>& targets;
  double denominator;
  const T* dloss;

  /// Writes dscores, which may be log_prob.
  void write(const T* log_prob, T* dscores, std::int64_t position, std::int64_t count, std::int64_t first) const {
    T scales[bundle] = {};
    T own[bundle];  // the label's element: p - 1 computed as expm1(log p), without cancellation
    for (std::int64_t i = 0; i < count; ++i) {
      if (!targets.counts(position + i)) continue;
      const double outer = static_cast<double>(dloss[targets.reduces() ? 0 : position + i]);
      const double scale = outer * targets.weight(position + i) / denominator;
      const std::int64_t at = first + i * distance(view) + targets.label(position + i) * view.inner;
      scales[i] = static_cast<T>(scale);
      own[i] = static_cast<T>(scale * std::expm1(static_cast<double>(log_prob[at])));
    }
    TENON_DISPATCH(scaled_probabilities<T>)(log_prob + first, scales, dscores + first, count, view.n, view.inner);
    for (std::int64_t i = 0; i < count; ++i) {
      T* const line = dscores + first + i * distance(view);
      if (targets.counts(position + i)) {
        line[targets.label(position + i) * view.inner] = own[i];
      } else {
        for (std::int64_t c = 0; c < view.n; ++c) line[c * view.inner] = 0;  // even if the ignored position has NaN scores
      }
    }
  }
};

/// loss = -weights[label] log_prob[label], log_prob = log-softmax of the scores; reduced to the sum or weighted mean, unless reduction is
/// none. Also the gradient and the accuracy if Traits::loss_companions has offered them.
///
/// Shapes  scores (N, C, d1, ...), labels (N, d1, ...), loss as labels or a scalar, log_prob as scores, optional.
/// Errors  a label out of range is named with its index; then nothing is written.
template <class T>
void softmax_cross_entropy(const sdk::Call& call) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[0], 1);
  const std::int64_t positions = view.outer * view.inner;
  const sdk::ClassTargets<T> targets(call, 1, 2, view.n);
  const double denominator = targets.denominator("softmax_cross_entropy");
  const T* const scores = call.input<T>(0);
  T* const loss = call.has_output(0) ? call.output<T>(0) : nullptr;
  T* const log_prob = call.has_output(1) ? call.output<T>(1) : nullptr;
  T* const dscores = call.has_output(2) ? call.output<T>(2) : nullptr;
  T* const accuracy = call.has_output(3) ? call.output<T>(3) : nullptr;
  const Gradient<T> gradient{view, targets, denominator, dscores == nullptr ? nullptr : call.input<T>(3)};
  T* const kept = log_prob != nullptr ? log_prob : dscores;  // where the log probabilities are for the gradient
  std::atomic<std::int64_t> hits{0};
  double* const losses = static_cast<double*>(call.scratch);
  const auto is_first_largest_of = TENON_DISPATCH(is_first_largest<T>);
  const auto log_probabilities_of = TENON_DISPATCH(log_probabilities<T>);
  const std::int64_t min_positions = std::max<std::int64_t>(1, grain / (view.n + scores_per_position));
  call.host.parallel_for(positions, min_positions, [&](std::int64_t begin, std::int64_t end) {
    for_each_bundle(view, begin, end, [&](std::int64_t position, std::int64_t count, std::int64_t first) {
      T row_maxima[bundle];
      T log_sums[bundle];
      log_probabilities_of(scores + first, kept == nullptr ? nullptr : kept + first, row_maxima, log_sums, count, view.n, view.inner);
      for (std::int64_t i = 0; i < count; ++i) {
        double own = 0;
        if (targets.counts(position + i)) {
          const T score = scores[first + i * distance(view) + targets.label(position + i) * view.inner];
          own = targets.weight(position + i) * (static_cast<double>(log_sums[i]) - (static_cast<double>(score) - row_maxima[i]));
        }
        losses[position + i] = own;
      }
      if (accuracy != nullptr) {
        std::int64_t own_hits = 0;
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int64_t label = targets.label(position + i);  // one that is ignored may be out of range
          if (label >= 0 && label < view.n && is_first_largest_of(scores + first + i * view.n, view.n, label)) ++own_hits;
        }
        hits.fetch_add(own_hits, std::memory_order_relaxed);
      }
      if (dscores != nullptr) gradient.write(kept, dscores, position, count, first);
    });
  });
  if (accuracy != nullptr) *accuracy = static_cast<T>(static_cast<double>(hits.load()) / static_cast<double>(positions));
  if (loss == nullptr) return;
  if (!targets.reduces()) {
    for (std::int64_t i = 0; i < positions; ++i) loss[i] = static_cast<T>(losses[i]);
    return;
  }
  double total = 0;
  for (std::int64_t i = 0; i < positions; ++i) total += losses[i];
  *loss = static_cast<T>(total / denominator);
}

/// Whether the classes of a position are adjacent.
bool computes_companions(const sdk::Call& call) {
  return sdk::around_axis(call.inputs[0], 1).inner == 1;
}

std::size_t scratch(const sdk::Call& call) {
  return static_cast<std::size_t>(call.inputs[1].count) * sizeof(double);
}

/// dscores = dloss weights[label] (softmax - onehot(label)), over the mean's denominator; 0 where a label is ignored.
///
/// Shapes  log_prob and dscores (N, C, d1, ...), dscores may be log_prob; dloss a scalar, or as labels if reduction is none.
/// Errors  as softmax_cross_entropy.
template <class T>
void softmax_cross_entropy_grad(const sdk::Call& call) {
  const sdk::AxisView view = sdk::around_axis(call.inputs[1], 1);
  const sdk::ClassTargets<T> targets(call, 2, 3, view.n);
  const Gradient<T> gradient{view, targets, targets.denominator("softmax_cross_entropy_grad"), call.input<T>(0)};
  const T* const log_prob = call.input<T>(1);
  T* const dscores = call.output<T>(0);
  const std::int64_t min_positions = std::max<std::int64_t>(1, grain / (view.n + scores_per_position));
  call.host.parallel_for(view.outer * view.inner, min_positions, [&](std::int64_t begin, std::int64_t end) {
    for_each_bundle(view, begin, end, [&](std::int64_t position, std::int64_t count, std::int64_t first) {
      gradient.write(log_prob, dscores, position, count, first);
    });
  });
}

}  // namespace

TENON_KERNEL_WITH(softmax_cross_entropy, (sdk::Traits{.scratch = scratch, .loss_companions = computes_companions}), float, double)
TENON_KERNEL_WITH(softmax_cross_entropy_grad, (sdk::Traits{.in_place = true}), float, double)

}  // namespace tenon::openblas
#endif
