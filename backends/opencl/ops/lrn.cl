// SPDX-License-Identifier: Apache-2.0
// bias + alpha / size (sum of x^2 over the channels c - floor((size - 1) / 2) ... c + ceil((size - 1) / 2)); `factor` is alpha / size.
#define PIXELS const long count, const long channels, const long inner, const long size
static inline T base_of(const global T *x, long pixel, long c, long channels, long inner, long size, T factor, T bias) {
  Sum sum = {0, 0};
  const long end = size / 2 >= channels - c ? channels : c + size / 2 + 1;
  for (long j = max(c - (size - 1) / 2, 0L); j < end; ++j) sum = added(sum, x[pixel + j * inner] * x[pixel + j * inner]);
  return bias + factor * value_of(sum);
}
#define ELEMENT                                                                                  \
  const long i = get_global_id(0);                                                               \
  if (i >= count) return;                                                                        \
  const long c = i / inner % channels, pixel = i - c * inner;

kernel void lrn(PIXELS, BUFFER(T, y), BUFFER(T, x), const T factor, const T beta, const T bias) {
  USE(T, y);
  USE(T, x);
  ELEMENT
  y[i] = x[i] * pow(base_of(x, pixel, c, channels, inner, size, factor, bias), -beta);
}

// With d the base: dx = dy d^-beta - 2 factor beta x (sum of dy x d^(-beta - 1) over the channels whose windows hold this one).
kernel void lrn_grad(PIXELS, BUFFER(T, dx), BUFFER(T, dy), BUFFER(T, x), const T factor, const T beta, const T bias) {
  USE(T, dx);
  USE(T, dy);
  USE(T, x);
  ELEMENT
  Sum others = {0, 0};
  const long after = (size - 1) / 2, end = after >= channels - c ? channels : c + after + 1;
  for (long j = max(c - size / 2, 0L); j < end; ++j) {
    const long at = pixel + j * inner;
    others = added(others, dy[at] * x[at] * pow(base_of(x, pixel, j, channels, inner, size, factor, bias), -beta - 1));
  }
  dx[i] = dy[i] * pow(base_of(x, pixel, c, channels, inner, size, factor, bias), -beta) - 2 * factor * beta * x[i] * value_of(others);
}
