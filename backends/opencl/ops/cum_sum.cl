// SPDX-License-Identifier: Apache-2.0
// One work-item for each line.
kernel void cum_sum(const long lines, const long n, const long inner, const int exclusive, const int reverse, BUFFER(T, y), BUFFER(T, x)) {
  USE(T, y);
  USE(T, x);
  const long line = get_global_id(0);
  if (line >= lines) return;
  const long begin = line / inner * n * inner + line % inner;
#ifdef T_FLOATING
  Sum sum = {0, 0};
#else
  UNSIGNED sum = 0;
#endif
  for (long k = 0; k < n; ++k) {
    const long at = begin + (reverse ? n - 1 - k : k) * inner;
#ifdef T_FLOATING
    const Sum next = added(sum, x[at]);
    y[at] = value_of(exclusive ? sum : next);
#else
    const UNSIGNED next = sum + (UNSIGNED)x[at];
    y[at] = (T)(exclusive ? sum : next);
#endif
    sum = next;
  }
}
