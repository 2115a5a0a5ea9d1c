// SPDX-License-Identifier: Apache-2.0
// Columns (n, (c, taps), windows) of images (n, c, size).
#define DIMENSIONS                                          \
  const long taps = w.kernel_size[0] * w.kernel_size[1];    \
  const long windows = w.count[0] * w.count[1], elements = w.size[0] * w.size[1];
kernel void im2col(const Windows w, const long count, BUFFER(T, y), BUFFER(T, x)) {
  USE(T, y);
  USE(T, x);
  const long e = get_global_id(0);
  if (e >= count) return;
  DIMENSIONS
  const long line = e / windows, window = e - line * windows, plane = line / taps, tap = line - plane * taps;
  const long r = start_of(&w, 0, window / w.count[1]) + tap / w.kernel_size[1] * w.dilation[0];
  const long c = start_of(&w, 1, window % w.count[1]) + tap % w.kernel_size[1] * w.dilation[1];
  y[e] = r >= 0 && r < w.size[0] && c >= 0 && c < w.size[1] ? x[plane * elements + r * w.size[1] + c] : (T)0;
}

#ifdef T_FLOATING
#define ADD(v) sum = added(sum, v)
#else
#define ADD(v) sum += (UNSIGNED)(v)
#endif
kernel void col2im(const Windows w, const long count, BUFFER(T, y), BUFFER(T, x)) {
  USE(T, y);
  USE(T, x);
  const long e = get_global_id(0);
  if (e >= count) return;
  DIMENSIONS
  const long plane = e / elements, r = (e - plane * elements) / w.size[1], c = e % w.size[1];
#ifdef T_FLOATING
  Sum sum = {0, 0};
#else
  UNSIGNED sum = 0;
#endif
  for (long i = w.kernel_size[0]; i-- > 0;) {
    const long a = window_at(&w, 0, r, i);
    if (a < 0) continue;
    for (long k = w.kernel_size[1]; k-- > 0;) {
      const long b = window_at(&w, 1, c, k);
      if (b >= 0) ADD(x[(plane * taps + i * w.kernel_size[1] + k) * windows + a * w.count[1] + b]);
    }
  }
#ifdef T_FLOATING
  y[e] = value_of(sum);
#else
  y[e] = (T)sum;
#endif
}
