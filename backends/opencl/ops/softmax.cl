// SPDX-License-Identifier: Apache-2.0
// Lines of n elements, `inner` apart. y may be x, dx may be dy or y: a work-item writes only elements that it alone reads afterwards.
#define IS_GREATER(a, b) ((a) > (b))  // NaN is skipped; it propagates through its exponential
BEST_OF_LANES(max_of_lanes, T, IS_GREATER)
#define LINE                                                                                  \
  local T shared[GROUP_SIZE], shared_rests[GROUP_SIZE];                                       \
  const long row = get_global_id(0) / width, first = get_local_id(0) & (width - 1);           \
  const long begin = row / inner * n * inner + row % inner, terms = row < lines ? n : 0;      \
  Sum sum = {0, 0};
#define FOR_EACH                                  \
  for (long j = first; j < terms; j += width) {   \
    const long i = begin + j * inner;
#define LINE_PARAMETERS const long lines, const long n, const long inner, const uint width

#define SOFTMAX(name, result)                                              \
  kernel void name(LINE_PARAMETERS, BUFFER(T, y), BUFFER(T, x)) {          \
    LINE                                                                   \
    USE(T, y);                                                             \
    USE(T, x);                                                             \
    T largest = -INFINITY;                                                 \
    FOR_EACH if (IS_GREATER(x[i], largest)) largest = x[i]; }              \
    largest = max_of_lanes(largest, width, shared);                   \
    FOR_EACH sum = added(sum, exp(x[i] - largest)); }                      \
    const T total = sum_of_lanes(sum, width, shared, shared_rests);        \
    FOR_EACH y[i] = result; }                                              \
  }
SOFTMAX(op_softmax, exp(x[i] - largest) / total)
SOFTMAX(op_log_softmax, x[i] - largest - log(total))

#define SOFTMAX_GRAD(name, term, result)                                        \
  kernel void name(LINE_PARAMETERS, BUFFER(T, dx), BUFFER(T, dy), BUFFER(T, y)) { \
    LINE                                                                        \
    USE(T, dx);                                                                 \
    USE(T, dy);                                                                 \
    USE(T, y);                                                                  \
    FOR_EACH sum = added(sum, term); }                                          \
    const T total = sum_of_lanes(sum, width, shared, shared_rests);             \
    FOR_EACH dx[i] = result; }                                                  \
  }
SOFTMAX_GRAD(op_softmax_grad, dy[i] * y[i], y[i] * (dy[i] - total))
SOFTMAX_GRAD(op_log_softmax_grad, dy[i], dy[i] - exp(y[i]) * total)
