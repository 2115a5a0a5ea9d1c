// SPDX-License-Identifier: Apache-2.0
// The classification loss on raw scores, and its gradient.
#include <cmath>

#include <tenon/sdk/rounding.h>

#include "kernel/fault.cuh"
#include "kernel/operands.h"
#include "kernel/previous_kernel.cuh"
#include "reduce/arg_best.cuh"
#include "reduce/rows.cuh"

namespace tenon::cuda {
namespace {

/// The targets: a class for each of the (N, d1, ...) positions, the class weights, and the ignored label.
template <class T, class Label>
struct Targets {
  const Label* labels;
  const T* weights;  ///< NULL: all 1
  std::int64_t classes;
  std::int64_t ignored;
  bool ignores;
  Fault fault;

  /// False if the position is ignored, or if its label is no class.
  __device__ bool is_counted(std::int64_t position) const {
    const auto label = static_cast<std::int64_t>(labels[position]);
    return !(ignores && label == ignored) && label >= 0 && label < classes;
  }
  /// The same; a label that is neither ignored nor a class raises a fault.
  __device__ bool counts(std::int64_t position) const {
    if (is_counted(position)) return true;
    const auto label = static_cast<std::int64_t>(labels[position]);
    if (ignores && label == ignored) return false;
    fault.raise(FaultKind::label, position, label, 0, classes);
    return false;
  }
  /// The weight of a position that is not ignored.
  __device__ T weight(std::int64_t position) const { return weights == nullptr ? T(1) : weights[labels[position]]; }
};

template <class T, class Label>
Targets<T, Label> targets_of(const sdk::Call& call, std::uint32_t labels, std::uint32_t weights, std::int64_t classes, tenon_op op) {
  const auto& attributes = call.attr<tenon_attributes_cross_entropy>();
  return {call.input<Label>(labels), input_or_null<T>(call, weights),  classes,
          attributes.ignore_index,   attributes.has_ignore_index != 0, fault_of(call, op)};
}

/// The contribution of a position to the loss and to the denominator of the mean.
template <class T>
struct Share {
  T loss, weight;
};

template <class T>
struct Shares {
  using Element = Share<T>;
  static constexpr int widest = 1;
  const Share<T>* x;

  template <int V>
  __device__ Pack<Share<T>, V> load(std::int64_t at) const {
    return {x[at]};
  }
  template <int V>
  __device__ const Pack<Share<T>, V>& terms(const Pack<Share<T>, V>& loaded) const {
    return loaded;
  }
};

/// The same without the loss.
template <class T, class Label>
struct WeightShares {
  using Element = Share<T>;
  static constexpr int widest = 1;
  Targets<T, Label> targets;

  template <int V>
  __device__ Pack<Share<T>, V> load(std::int64_t at) const {
    return {Share<T>{T(0), targets.counts(at) ? targets.weight(at) : T(0)}};
  }
  template <int V>
  __device__ const Pack<Share<T>, V>& terms(const Pack<Share<T>, V>& loaded) const {
    return loaded;
  }
};

/// The sums of losses and weights; `mean` divides one by the other.
template <class T>
struct SumOfShares {
  using Partial = Share<T>;
  using Result = T;
  bool mean;
  __device__ Partial nothing() const { return {T(0), T(0)}; }
  __device__ Partial lift(Share<T> x) const { return x; }
  __device__ Partial combine(Partial a, Partial b) const { return {a.loss + b.loss, a.weight + b.weight}; }
  __device__ T finish(Partial a, std::int64_t) const { return mean ? a.loss / a.weight : a.loss; }
};
template <class T>
struct SumOfWeights : SumOfShares<T> {
  __device__ T finish(Share<T> a, std::int64_t) const { return a.weight; }
};

/// The reduced scores of a position; log_prob = score - row_max - log_total. log_total is NaN if row_max is not finite.
template <class T>
struct LogNormalizer {
  T row_max, log_total;
};
template <class T>
__device__ LogNormalizer<T> log_normalizer(Exponentials<T> a) {
  return {a.row_max, std::isfinite(a.row_max) ? std::log(a.total) : std::numeric_limits<T>::quiet_NaN()};
}
template <class T>
struct Normalizer : SumOfExponentials<T> {
  using Result = LogNormalizer<T>;
  __device__ Result finish(Exponentials<T> a, std::int64_t) const { return log_normalizer(a); }
};

/// Destinations of the results of a position; NULL: not requested. The last block may reduce the shares.
template <class T>
struct Losses {
  T* loss;
  Share<T>* shares;
  SumOfShares<T> sum;
  LastBlock last;
  T* reduced;
};

/// What the kernel of a loss may compute besides (Traits::loss_companions).
template <class T>
struct Companions {
  const T* dloss = nullptr;
  T* dscores = nullptr;   ///< NULL: not requested
  T denominator = 1;      ///< of the gradient
  T* hits = nullptr;      ///< per position: 1 if its label has the largest score, else 0; NULL: not requested
  T* accuracy = nullptr;  ///< their mean
};

/// Called by all threads at the end of a kernel that has written the losses of all positions.
template <class T>
__device__ void reduce_losses(std::int64_t positions, const Losses<T>& out, const Companions<T>& more) {
  if (out.last.counters == nullptr || !is_last_block(out.last.counters, static_cast<int>(gridDim.x))) return;
  const int parts = static_cast<int>(positions);
  combine_parts(out.sum, out.shares, 0, 1, positions, parts, out.last.threads, out.reduced);
  if (more.hits != nullptr) combine_parts(Mean<T>{}, more.hits, 0, 1, positions, parts, out.last.threads, more.accuracy);
}

/// Writes the loss of one position, whose own score is at first[label * inner].
template <class T, class Label>
__device__ void write_loss(const Targets<T, Label>& targets, std::int64_t position, const T* first, std::int64_t inner,
                           LogNormalizer<T> line, const Losses<T>& out) {
  Share<T> share{T(0), T(0)};
  if (targets.counts(position)) {
    share.weight = targets.weight(position);
    share.loss = -share.weight * (first[targets.labels[position] * inner] - line.row_max - line.log_total);
  }
  if (out.loss != nullptr) out.loss[position] = share.loss;
  if (out.shares != nullptr) out.shares[position] = share;
}

/// The index of the largest element of a row, the first of equals; the first NaN, if there is one. For the row's first lane.
template <class T, int E>
__device__ std::int64_t largest_of_row(const RowPart<T, E>& part, const T (&x)[E]) {
  const ArgBest<T, functions::Greater> best;
  Candidate<T> own = best.nothing();
#pragma unroll
  for (int e = 0; e < E; ++e) {
    const T term[1] = {x[e]};
    const std::int64_t index[1] = {part.index(e)};  // ascending with e
    if (index[0] < part.n) best.add(own, term, index);
  }
  return combine_lanes(best, own, part.lanes).index;
}

/// Rows of scores in registers: computes all results of a position at once. log_prob may be NULL.
template <class T, class Label, int E>
__global__ void __launch_bounds__(reduction_threads, 1) losses_of_rows(Targets<T, Label> targets, std::int64_t rows, int lanes, bool packs,
                                                                       const T* scores, T* log_prob, Losses<T> out, Companions<T> more) {
  wait_for_previous_kernel();
  const int at_once = reduction_threads / lanes, lane = static_cast<int>(threadIdx.x) % lanes;
  const RowPart<T, E> part{targets.classes, lanes, lane, packs};
  for (std::int64_t first = std::int64_t{blockIdx.x} * at_once; first < rows; first += std::int64_t{gridDim.x} * at_once) {
    const std::int64_t row = first + static_cast<int>(threadIdx.x) / lanes;
    const bool exists = row < rows;  // else the thread takes part with an existing row
    const T* const own = scores + (exists ? row : first) * targets.classes;
    T x[E], of_exponentials[E];
    part.read(own, -std::numeric_limits<T>::infinity(), x);
#pragma unroll
    for (int e = 0; e < E; ++e) of_exponentials[e] = x[e];
    const LogNormalizer<T> line = log_normalizer(exponentials_of_row(of_exponentials, lanes));
    const std::int64_t largest = more.hits != nullptr ? largest_of_row(part, x) : 0;
    if (!exists) continue;
    if (lane == 0) {
      write_loss(targets, row, own, 1, line, out);
      if (more.hits != nullptr) more.hits[row] = largest == targets.labels[row] ? T(1) : T(0);
    }
    if (log_prob == nullptr && more.dscores == nullptr) continue;
#pragma unroll
    for (int e = 0; e < E; ++e) x[e] = x[e] - line.row_max - line.log_total;
    if (log_prob != nullptr) part.write(log_prob + row * targets.classes, x);
    if (more.dscores == nullptr) continue;
    const bool counts = targets.is_counted(row);
    const T scale = counts ? *more.dloss * targets.weight(row) / more.denominator : T(0);
    const auto label = static_cast<std::int64_t>(targets.labels[row]);
#pragma unroll
    for (int e = 0; e < E; ++e) x[e] = counts ? scale * (std::exp(x[e]) - (part.index(e) == label ? T(1) : T(0))) : T(0);
    part.write(more.dscores + row * targets.classes, x);
  }
  reduce_losses(rows, out, more);
}

template <class T, class Label>
__global__ void __launch_bounds__(reduction_threads) losses_of_lines(Targets<T, Label> targets, std::int64_t positions, std::int64_t inner,
                                                                     const LogNormalizer<T>* lines, const T* scores, Losses<T> out) {
  for (std::int64_t p = thread_index(); p < positions; p += thread_count()) {
    const std::int64_t outer = quotient(p, inner);
    write_loss(targets, p, scores + outer * targets.classes * inner + (p - outer * inner), inner, lines[p], out);
  }
  reduce_losses(positions, out, Companions<T>{});
}

/// log_prob = scores - row_max - log_total
template <class T>
__global__ void log_probabilities(std::int64_t count, std::int64_t classes, std::int64_t inner, const LogNormalizer<T>* lines,
                                  const T* scores, T* log_prob) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t above = quotient(i, inner);
    const LogNormalizer<T> line = lines[quotient(above, classes) * inner + (i - above * inner)];
    log_prob[i] = scores[i] - line.row_max - line.log_total;
  }
}

/// What the gradient of a mean is divided by.
template <class T>
struct Denominator {
  const T* total = nullptr;  ///< the weight of the labels that are not ignored; NULL: `known`
  T known = 1;
};

/// dscores may be log_prob.
template <class T, class Label>
__global__ void gradients(Targets<T, Label> targets, std::int64_t count, std::int64_t inner, bool one_dloss, const T* dloss,
                          Denominator<T> denominator, const T* log_prob, T* dscores) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const std::int64_t above = quotient(i, inner), outer = quotient(above, targets.classes), c = above - outer * targets.classes;
    const std::int64_t position = outer * inner + (i - above * inner);
    T gradient = 0;
    if (targets.counts(position)) {
      const T scale = dloss[one_dloss ? 0 : position] * targets.weight(position) /
                      (denominator.total != nullptr ? *denominator.total : denominator.known);
      gradient = scale * (std::exp(log_prob[i]) - (c == targets.labels[position] ? T(1) : T(0)));
    }
    dscores[i] = gradient;
  }
}

/// Scores as (outer, classes, inner), and the layout of their scratch memory.
struct Problem : AxisLines {
  bool reduces, means;
  std::size_t shares_at, lines_at, hits_at, partials_at;

  Problem(const sdk::Call& call, std::uint32_t scores) : AxisLines(call.inputs[scores], 1) {
    const std::uint32_t reduction = call.attr<tenon_attributes_cross_entropy>().reduction;
    reduces = reduction != TENON_REDUCTION_NONE;
    means = reduction == TENON_REDUCTION_MEAN;
    const std::size_t each = sdk::aligned_size(static_cast<std::size_t>(positions()) * 16);
    shares_at = 0;
    lines_at = reduces ? each : 0;
    hits_at = lines_at + (fits_registers() ? 0 : each);
    partials_at = hits_at + (call.has_output(3) ? sdk::aligned_size(static_cast<std::size_t>(positions()) * 8) : 0);
  }
  std::int64_t positions() const { return lines(); }
  std::int64_t classes() const { return n(); }
};

/// The reduction over all positions as one line.
ReductionPlan plan_of_positions(std::int64_t positions) {
  constexpr std::int64_t stride = 1;
  return plan_reduction(&positions, &stride, 1, 1u, 1);
}
std::size_t scratch_of_positions(std::int64_t positions) {
  return static_cast<std::size_t>(plan_of_positions(positions).partials()) * 24;
}

template <class T, class Label>
void loss_of(const sdk::Call& call) {
  const Problem problem(call, 0);
  Stream& stream = stream_of(call);
  const auto targets = targets_of<T, Label>(call, 1, 2, problem.classes(), TENON_OP_SoftmaxCrossEntropyLoss);
  const T* scores = call.input<T>(0);
  T* loss = output_or_null<T>(call, 0);
  T* log_prob = output_or_null<T>(call, 1);
  char* const scratch = static_cast<char*>(call.scratch);
  auto* const shares = reinterpret_cast<Share<T>*>(scratch + problem.shares_at);
  const bool reduces = problem.reduces && loss != nullptr && problem.positions() > 0;
  LastBlock last;
  if (reduces) last = last_block(stream, 1, 1, problem.positions(), reduction_threads);
  const Losses<T> out{problem.reduces ? nullptr : loss, problem.reduces ? shares : nullptr, {problem.means}, last, loss};
  if (problem.fits_registers()) {
    Companions<T> more;
    if (call.has_output(2)) {
      more.dloss = call.input<T>(3);
      more.dscores = call.output<T>(2);
      more.denominator = problem.means ? static_cast<T>(problem.positions()) : T(1);
    }
    if (call.has_output(3)) {
      more.hits = reinterpret_cast<T*>(scratch + problem.hits_at);
      more.accuracy = call.output<T>(3);
    }
    const RowPlan plan = plan_rows(problem.classes());
    const int widest = aligned_width<T>(scores, log_prob, more.dscores);
    const bool packs = widest > 1 && problem.classes() % widest == 0;
    const auto kernel = plan.elements == 4    ? losses_of_rows<T, Label, 4>
                        : plan.elements == 8  ? losses_of_rows<T, Label, 8>
                        : plan.elements == 16 ? losses_of_rows<T, Label, 16>
                                              : losses_of_rows<T, Label, 32>;
    launch_early(stream, rows_geometry(plan, problem.positions()), kernel, targets, problem.positions(), plan.lanes, packs, scores,
                 log_prob, out, more);
  } else {
    auto* const lines = reinterpret_cast<LogNormalizer<T>*>(scratch + problem.lines_at);
    const ReductionPlan plan = problem.plan(aligned_width<T>(scores));
    reduce(stream, Normalizer<T>{}, Values<T>{scores}, plan, lines, scratch + problem.partials_at);
    launch_over(stream, problem.positions(), losses_of_lines<T, Label>, targets, problem.positions(), problem.inner(), lines, scores, out);
    if (log_prob != nullptr) {
      launch_over(stream, problem.count(), log_probabilities<T>, problem.count(), problem.classes(), problem.inner(), lines, scores,
                  log_prob);
    }
  }
  if (problem.reduces && loss != nullptr && last.counters == nullptr) {
    reduce(stream, out.sum, Shares<T>{shares}, plan_of_positions(problem.positions()), loss, scratch + problem.partials_at);
  }
}

/// Whether the denominator of the gradient of a mean depends on the data: else each label counts, and with 1.
bool sums_weights(const sdk::Call& call) {
  const auto& attributes = call.attr<tenon_attributes_cross_entropy>();
  return attributes.reduction == TENON_REDUCTION_MEAN && (call.has_input(3) || attributes.has_ignore_index != 0);
}

/// Rows that registers hold and whose losses the last block reduces, and a denominator that does not depend on the data.
bool computes_companions(const sdk::Call& call) {
  const Problem problem(call, 0);
  const auto& attributes = call.attr<tenon_attributes_cross_entropy>();
  const bool sums_weights = problem.means && (call.has_input(2) || attributes.has_ignore_index != 0);
  return problem.reduces && problem.fits_registers() && problem.positions() > 0 &&
         problem.positions() <= max_parts_of_thread * reduction_threads && !sums_weights;
}

template <class T, class Label>
void gradient_of(const sdk::Call& call) {
  const Problem problem(call, 1);
  Stream& stream = stream_of(call);
  const auto targets = targets_of<T, Label>(call, 2, 3, problem.classes(), TENON_OP_SoftmaxCrossEntropyLossGrad);
  Denominator<T> denominator;
  if (sums_weights(call)) {
    auto* const total = static_cast<T*>(call.scratch);
    reduce(stream, SumOfWeights<T>{}, WeightShares<T, Label>{targets}, plan_of_positions(problem.positions()), total,
           static_cast<char*>(call.scratch) + 64);
    denominator.total = total;
  } else if (problem.means) {
    denominator.known = static_cast<T>(problem.positions());
  }
  launch_over(stream, problem.count(), gradients<T, Label>, targets, problem.count(), problem.inner(), problem.reduces, call.input<T>(0),
              denominator, call.input<T>(1), call.output<T>(0));
}

std::size_t loss_scratch(const sdk::Call& call) {
  const Problem problem(call, 0);
  const std::size_t of_lines = problem.fits_registers() ? 0 : problem.scratch(call.inputs[0].dtype);
  return problem.partials_at + std::max(of_lines, scratch_of_positions(problem.positions()));
}
std::size_t gradient_scratch(const sdk::Call& call) {
  return sums_weights(call) ? 64 + scratch_of_positions(Problem(call, 1).positions()) : 0;
}

/// log_prob = x - max x - log(sum exp(x - max x)) over the classes; loss[p] = -weights[label[p]] log_prob[label[p]]; their mean or sum.
/// The mean divides by the weight of the labels that are not ignored; NaN if all are.
///
/// Shapes      scores (N, C, d1, ...), labels (N, d1, ...) of i32 or i64, weights (C) or absent; loss scalar, or as labels without a
///             reduction; log_prob as scores, may be absent.
/// Attributes  reduction; ignore_index, if there is one: such labels have loss 0 and no weight.
/// Errors      INVALID_ARGUMENT for a label that is neither in [0, C) nor ignored, when the work is waited for.
template <class T>
void softmax_cross_entropy(const sdk::Call& call) {
  call.inputs[1].dtype == TENON_DTYPE_I32 ? loss_of<T, std::int32_t>(call) : loss_of<T, std::int64_t>(call);
}

/// dscores[p, c] = dloss weights[label[p]] (exp(log_prob[p, c]) - [c = label[p]]) / denominator, 0 where the label is ignored
///
/// Shapes      dloss scalar, or as labels without a reduction; log_prob, dscores (N, C, d1, ...); the rest as for the loss. dscores may be
///             log_prob.
/// Errors      as for the loss.
template <class T>
void softmax_cross_entropy_grad(const sdk::Call& call) {
  call.inputs[2].dtype == TENON_DTYPE_I32 ? gradient_of<T, std::int32_t>(call) : gradient_of<T, std::int64_t>(call);
}

}  // namespace
TENON_KERNEL_WITH(softmax_cross_entropy, (sdk::Traits{.scratch = loss_scratch, .loss_companions = computes_companions}), float, double)
TENON_KERNEL_WITH(softmax_cross_entropy_grad, (sdk::Traits{.in_place = true, .scratch = gradient_scratch}), float, double)
}  // namespace tenon::cuda
