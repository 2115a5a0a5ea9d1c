// SPDX-License-Identifier: Apache-2.0
// y = the smallest j for which x[j] beats all others. NaN beats everything, so the first NaN wins.
#define ARG_REDUCE(name, BEATS)                                                                               \
  kernel void arg_##name(const long lines, const long n, const long inner, BUFFER(long, y), BUFFER(T, x)) {   \
    USE(long, y);                                                                                             \
    USE(T, x);                                                                                                \
    const long line = get_global_id(0);                                                                       \
    if (line >= lines) return;                                                                                \
    const global T *const first = x + line / inner * n * inner + line % inner;                                \
    long best = 0;                                                                                            \
    T value = first[0];                                                                                       \
    for (long j = 1; j < n && value == value; ++j) {                                                          \
      const T candidate = first[j * inner];                                                                   \
      if (candidate BEATS value || candidate != candidate) {                                                  \
        best = j;                                                                                             \
        value = candidate;                                                                                    \
      }                                                                                                       \
    }                                                                                                         \
    y[line] = best;                                                                                           \
  }
ARG_REDUCE(max, >)
ARG_REDUCE(min, <)
