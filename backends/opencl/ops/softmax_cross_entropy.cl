// SPDX-License-Identifier: Apache-2.0
// The classification loss on raw scores (N, C, inner), and its gradient. `shares` are pairs (loss, weight), one for each position.
#define IS_GREATER(a, b) ((a) > (b))
BEST_OF_LANES(max_of_lanes, T, IS_GREATER)
#define TARGETS BUFFER(LABEL, labels), BUFFER(T, weights), const long classes, const int ignores, const long ignored, FAULT
// The label of a position; -1 if it is ignored, or no class, which is a fault.
#define LABEL_AT(result, position)                                        \
  long result = labels[position];                                         \
  if (ignores && result == ignored) {                                     \
    result = -1;                                                          \
  } else if (result < 0 || result >= classes) {                           \
    RAISE(FAULT_LABEL, position, result, 0, classes)                      \
    result = -1;                                                          \
  }
#define SUM_OF(total) sum_of_lanes(total, width, shared, shared_rests)
#define NO_SUM ((Sum){0, 0})

kernel void loss_of_positions(const long positions, const long inner, const uint width, BUFFER(T, log_prob), BUFFER(T, loss),
                              BUFFER(T, shares), BUFFER(T, scores), TARGETS) {
  local T shared[GROUP_SIZE], shared_rests[GROUP_SIZE];
  USE(T, log_prob);
  USE(T, loss);
  USE(T, shares);
  USE(T, scores);
  USE(LABEL, labels);
  USE(T, weights);
  const long position = get_global_id(0) / width, first = get_local_id(0) & (width - 1);
  const bool active = position < positions;
  const long begin = position / inner * classes * inner + position % inner, terms = active ? classes : 0;
  T largest = -INFINITY;
  for (long c = first; c < terms; c += width) {
    if (IS_GREATER(scores[begin + c * inner], largest)) largest = scores[begin + c * inner];
  }
  largest = max_of_lanes(largest, width, shared);
  Sum sum = NO_SUM;
  for (long c = first; c < terms; c += width) sum = added(sum, exp(scores[begin + c * inner] - largest));
  const T log_sum = log(SUM_OF(sum));
  if (log_prob) {
    for (long c = first; c < terms; c += width) log_prob[begin + c * inner] = scores[begin + c * inner] - largest - log_sum;
  }
  if (!active || first != 0) return;
  LABEL_AT(label, position)
  const T weight = label < 0 ? 0 : weights ? weights[label] : 1;
  const T own = label < 0 ? 0 : -weight * (scores[begin + label * inner] - largest - log_sum);
  if (loss) loss[position] = own;
  if (shares) {
    shares[2 * position] = own;
    shares[2 * position + 1] = weight;
  }
}

// One work-group: loss = sum of the losses, divided by the sum of the weights for the mean.
kernel void loss_of_batch(const long positions, const int mean, BUFFER(T, loss), BUFFER(T, shares)) {
  local T shared[GROUP_SIZE], shared_rests[GROUP_SIZE];
  USE(T, loss);
  USE(T, shares);
  const uint width = GROUP_SIZE;
  Sum losses = NO_SUM, total_weights = NO_SUM;
  for (long i = get_local_id(0); i < positions; i += width) {
    losses = added(losses, shares[2 * i]);
    total_weights = added(total_weights, shares[2 * i + 1]);
  }
  const T sum = SUM_OF(losses), weight = SUM_OF(total_weights);
  if (get_local_id(0) == 0) *loss = mean ? sum / weight : sum;
}

// One work-group: the divisor of the mean.
kernel void total_weight(const long positions, BUFFER(T, total), TARGETS) {
  local T shared[GROUP_SIZE], shared_rests[GROUP_SIZE];
  USE(T, total);
  USE(LABEL, labels);
  USE(T, weights);
  const uint width = GROUP_SIZE;
  Sum sum = NO_SUM;
  for (long i = get_local_id(0); i < positions; i += width) {
    LABEL_AT(label, i)
    if (label >= 0) sum = added(sum, weights ? weights[label] : 1);
  }
  const T weight = SUM_OF(sum);
  if (get_local_id(0) == 0) *total = weight;
}

// dscores = dloss weight (exp(log_prob) - [c = label]) / denominator, 0 where the label is ignored. dscores may be log_prob.
kernel void loss_grad(const long count, const long inner, const int reduces, BUFFER(T, dscores), BUFFER(T, dloss), BUFFER(T, log_prob),
                      BUFFER(T, denominator), TARGETS) {
  USE(T, dscores);
  USE(T, dloss);
  USE(T, log_prob);
  USE(T, denominator);
  USE(LABEL, labels);
  USE(T, weights);
  const long i = get_global_id(0);
  if (i >= count) return;
  const long row = i / inner, c = row % classes, position = row / classes * inner + i % inner;
  LABEL_AT(label, position)
  if (label < 0) {
    dscores[i] = 0;
    return;
  }
  const T scale = dloss[reduces ? 0 : position] * (weights ? weights[label] : 1) / (denominator ? *denominator : 1);
  dscores[i] = scale * (exp(log_prob[i]) - (c == label ? 1 : 0));
}
