// SPDX-License-Identifier: Apache-2.0
// y[line] = the line x[line, ...] reduced. `kept` are the lines, `reduced` the elements of one.
#ifdef T_FLOATING
typedef Sum Total;
#define ADD(total, v) total = added(total, v)
#define SUM_OF_LANES(total) sum_of_lanes(total, width, shared, shared_rests)
#define NO_SUM ((Sum){0, 0})
#else
typedef UNSIGNED Total;
#define ADD(total, v) total += (UNSIGNED)(v)
#define NO_SUM 0
static inline UNSIGNED SUM_OF(UNSIGNED own, uint width, local T *shared) {
  const uint item = get_local_id(0), lane = item & (width - 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  shared[item] = (T)own;
  for (uint step = width / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) shared[item] = (T)((UNSIGNED)shared[item] + (UNSIGNED)shared[item + step]);
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return (UNSIGNED)shared[item - lane];
}
#define SUM_OF_LANES(total) SUM_OF(total, width, shared)
#endif
#define IS_GREATER(a, b) ((a) > (b) || (a) != (a))
#define IS_LESS(a, b) ((a) < (b) || (a) != (a))
BEST_OF_LANES(max_of_lanes, T, IS_GREATER)
BEST_OF_LANES(min_of_lanes, T, IS_LESS)
static inline T product_of_lanes(T own, uint width, local T *shared) {
  const uint item = get_local_id(0), lane = item & (width - 1);
  barrier(CLK_LOCAL_MEM_FENCE);
  shared[item] = own;
  for (uint step = width / 2; step > 0; step /= 2) {
    barrier(CLK_LOCAL_MEM_FENCE);
    if (lane < step) shared[item] *= shared[item + step];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  return shared[item - lane];
}

// FOR_EACH runs its statement with v for the elements of this work-item.
#define FOR_EACH(statement)                                    \
  for (long j = first; j < terms; j += width) {                \
    const T v = line[place(&reduced, j).s0];                   \
    statement;                                                 \
  }
#define REDUCE(name, body)                                                                                                     \
  kernel void reduce_##name(const Layout kept, const Layout reduced, BUFFER(T, y), BUFFER(T, x), const uint width) {           \
    local T shared[GROUP_SIZE], shared_rests[GROUP_SIZE];                                                                      \
    USE(T, y);                                                                                                                 \
    USE(T, x);                                                                                                                 \
    const long row = get_global_id(0) / width;                                                                                 \
    const bool active = row < kept.count;                                                                                      \
    const long terms = active ? reduced.count : 0, first = get_local_id(0) & (width - 1);                                      \
    const global T *const line = x + (terms > 0 ? place(&kept, row).s0 : 0);                                                   \
    T result;                                                                                                                  \
    body;                                                                                                                      \
    if (active && first == 0) y[row] = result;                                                                                 \
  }
#define SUM(name, term, last)             \
  REDUCE(name, {                          \
    Total total = NO_SUM;                 \
    FOR_EACH(ADD(total, term))            \
    const T sum = SUM_OF_LANES(total);    \
    result = last;                        \
  })
SUM(sum, v, sum)
REDUCE(prod, {
  T product = 1;
  FOR_EACH(product *= v)
  result = product_of_lanes(product, width, shared);
})
REDUCE(max, {
  T best = terms > 0 ? line[0] : 0;
  FOR_EACH(if (IS_GREATER(v, best)) best = v)
  result = max_of_lanes(best, width, shared);
})
REDUCE(min, {
  T best = terms > 0 ? line[0] : 0;
  FOR_EACH(if (IS_LESS(v, best)) best = v)
  result = min_of_lanes(best, width, shared);
})
#ifdef T_FLOATING
SUM(mean, v, sum / reduced.count)
SUM(l1, fabs(v), sum)
SUM(sum_square, v * v, sum)
// Squares are taken of x / 2^e, e the exponent of the largest: neither they nor their sum overflow or underflow unless y does.
REDUCE(l2, {
  T largest = 0;
  FOR_EACH(if (IS_GREATER(fabs(v), largest)) largest = fabs(v))
  largest = max_of_lanes(largest, width, shared);
  const bool plain = largest > 0 && isfinite(largest);
  const int exponent = plain ? ilogb(largest) : 0;
  Sum total = NO_SUM;
  FOR_EACH(ADD(total, ldexp(v, -exponent) * ldexp(v, -exponent)))
  const T sum = SUM_OF_LANES(total);
  result = plain ? ldexp(sqrt(sum), exponent) : largest;
})
// The maximum is added to the logarithm, not inside it.
REDUCE(log_sum_exp, {
  T largest = -INFINITY;
  FOR_EACH(if (IS_GREATER(v, largest)) largest = v)
  largest = max_of_lanes(largest, width, shared);
  Sum total = NO_SUM;
  FOR_EACH(ADD(total, exp(v - largest)))
  const T sum = SUM_OF_LANES(total);
  result = isfinite(largest) ? largest + log(sum) : largest;
})
#endif
