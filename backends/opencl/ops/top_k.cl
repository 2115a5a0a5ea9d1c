// SPDX-License-Identifier: Apache-2.0
// One work-item for each line finds the best, then the best of those that come after it, and so on: equal ones in the order of their index.
#define IS_LARGER(a, b) ((a) > (b) || ((a) != (a) && (b) == (b)))  // NaN is larger than every other value
static inline bool comes_before(T a, long i, T b, long j, int largest) {
  if (largest ? IS_LARGER(a, b) : IS_LARGER(b, a)) return true;
  return !(largest ? IS_LARGER(b, a) : IS_LARGER(a, b)) && i < j;
}

kernel void top_k(const long lines, const long n, const long inner, const long k, const int largest, BUFFER(T, values),
                  BUFFER(long, indices), BUFFER(T, x)) {
  USE(T, values);
  USE(long, indices);
  USE(T, x);
  const long line = get_global_id(0);
  if (line >= lines) return;
  const long outer = line / inner, i = line - outer * inner;
  const global T *const own = x + outer * n * inner + i;
  long last = -1;
  T last_value = 0;
  for (long r = 0; r < k; ++r) {
    long best = -1;
    T value = 0;
    for (long j = 0; j < n; ++j) {
      const T v = own[j * inner];
      if (last >= 0 && !comes_before(last_value, last, v, j, largest)) continue;
      if (best >= 0 && !comes_before(v, j, value, best, largest)) continue;
      best = j;
      value = v;
    }
    const long at = (outer * k + r) * inner + i;
    if (values) values[at] = value;
    if (indices) indices[at] = best;
    last = best;
    last_value = value;
  }
}
