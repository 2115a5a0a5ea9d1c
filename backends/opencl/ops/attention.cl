// SPDX-License-Identifier: Apache-2.0
// q (B, H, S, D), k (B, G, L, D), v (B, G, L, E), and a mask with strides over (B, H, S, L) or none. Scores are kept in scratch memory.
typedef struct {
  long batch, heads, groups, queries, keys, size, result;
  long mask_strides[4];
  int causal, reserved;
} Heads;

#define ROW_OF(row)                                                                             \
  const long head = row / a.queries, s = row - head * a.queries, b = head / a.heads, h = head - b * a.heads; \
  const long first_key = (b * a.groups + h / (a.heads / a.groups)) * a.keys;                    \
  const long seen = a.causal && s + 1 < a.keys ? s + 1 : a.keys;

// scale q k' + mask; -inf for keys that the query does not see, and with log_sum its exponential: the probability.
kernel void attention_scores(const Heads a, const long count, BUFFER(T, scores), BUFFER(T, q), BUFFER(T, k), BUFFER(T, mask),
                             BUFFER(T, log_sum), const T scale) {
  USE(T, scores);
  USE(T, q);
  USE(T, k);
  USE(T, mask);
  USE(T, log_sum);
  const long e = get_global_id(0);
  if (e >= count) return;
  const long row = e / a.keys, l = e - row * a.keys;
  ROW_OF(row)
  T score = -INFINITY;
  if (l < seen) {
    const global T *const own = q + row * a.size, *const other = k + (first_key + l) * a.size;
    T sum = 0;
    for (long d = 0; d < a.size; ++d) sum = fma(own[d], other[d], sum);
    score = sum * scale;
    if (mask) score += mask[b * a.mask_strides[0] + h * a.mask_strides[1] + s * a.mask_strides[2] + l * a.mask_strides[3]];
  }
  if (log_sum) score = l < seen && log_sum[row] != -INFINITY ? exp(score - log_sum[row]) : (T)0;
  scores[e] = score;
}

#define IS_GREATER(a, b) ((a) > (b))  // NaN is skipped; it propagates through its exponential
BEST_OF_LANES(max_of_lanes, T, IS_GREATER)
// scores = exp(scores - their maximum) / their sum, or all 0.
kernel void attention_probabilities(const Heads a, const long rows, const uint width, BUFFER(T, scores), BUFFER(T, log_sum)) {
  local T shared[GROUP_SIZE], shared_rests[GROUP_SIZE];
  USE(T, scores);
  USE(T, log_sum);
  const long row = get_global_id(0) / width, first = get_local_id(0) & (width - 1), terms = row < rows ? a.keys : 0;
  global T *const own = scores + row * a.keys;
  T largest = -INFINITY;
  for (long l = first; l < terms; l += width) {
    if (IS_GREATER(own[l], largest)) largest = own[l];
  }
  largest = max_of_lanes(largest, width, shared);
  const T centre = largest == -INFINITY ? 0 : largest;
  Sum sum = {0, 0};
  for (long l = first; l < terms; l += width) sum = added(sum, exp(own[l] - centre));
  const T total = sum_of_lanes(sum, width, shared, shared_rests);
  for (long l = first; l < terms; l += width) own[l] = total == 0 ? (T)0 : exp(own[l] - centre) / total;
  if (row < rows && first == 0 && log_sum) log_sum[row] = total == 0 ? -INFINITY : largest + log(total);
}

// result[row, c] = factor (sum over l of weights[row, l] others[first_key + l, c]), for y and dq.
kernel void attention_rows(const Heads a, const long count, const long columns, BUFFER(T, result), BUFFER(T, weights), BUFFER(T, others)) {
  USE(T, result);
  USE(T, weights);
  USE(T, others);
  const long e = get_global_id(0);
  if (e >= count) return;
  const long row = e / columns, c = e - row * columns;
  ROW_OF(row)
  T sum = 0;
  for (long l = 0; l < seen; ++l) sum = fma(weights[row * a.keys + l], others[(first_key + l) * columns + c], sum);
  result[e] = sum;
}

// result[key, c] = sum over the rows that see the key of weights[row, l] others[row, c], for dk and dv.
kernel void attention_keys(const Heads a, const long count, const long columns, BUFFER(T, result), BUFFER(T, weights), BUFFER(T, others)) {
  USE(T, result);
  USE(T, weights);
  USE(T, others);
  const long e = get_global_id(0);
  if (e >= count) return;
  const long key = e / columns, c = e - key * columns, group = key / a.keys, l = key - group * a.keys;
  const long heads = a.heads / a.groups, first_row = (group / a.groups * a.heads + group % a.groups * heads) * a.queries;
  T sum = 0;
  for (long h = 0; h < heads; ++h) {
    for (long s = a.causal ? l : 0; s < a.queries; ++s) {
      const long row = first_row + h * a.queries + s;
      sum = fma(weights[row * a.keys + l], others[row * columns + c], sum);
    }
  }
  result[e] = sum;
}

// slopes[row, l] = scale p (dy v' - sum(dy y))
kernel void attention_slopes(const Heads a, const long count, BUFFER(T, slopes), BUFFER(T, scores), BUFFER(T, dy), BUFFER(T, y),
                             BUFFER(T, v), const T scale) {
  USE(T, slopes);
  USE(T, scores);
  USE(T, dy);
  USE(T, y);
  USE(T, v);
  const long i = get_global_id(0);
  if (i >= count) return;
  const long row = i / a.keys, l = i - row * a.keys;
  ROW_OF(row)
  if (l >= seen) {
    slopes[i] = 0;
    return;
  }
  const global T *const own = dy + row * a.result, *const result = y + row * a.result, *const other = v + (first_key + l) * a.result;
  T sum = 0;
  for (long e = 0; e < a.result; ++e) sum = fma(own[e], other[e] - result[e], sum);
  slopes[i] = scores[i] == 0 ? (T)0 : scale * scores[i] * sum;
}
