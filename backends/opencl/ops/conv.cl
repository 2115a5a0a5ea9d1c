// SPDX-License-Identifier: Apache-2.0
// One sum, evaluated in three directions: y[n, o, i] = b[o] + sum over c, tap of x[n, c, place] w[o, c', tap]. Groups: filter o reads the
// channels of its group.
typedef struct {
  long channels, filters, group_channels, group_filters;
} Groups;
#define SIZES                                                                                              \
  const long taps = w.kernel_size[0] * w.kernel_size[1], windows = w.count[0] * w.count[1], elements = w.size[0] * w.size[1];

kernel void conv(const Windows w, const Groups g, const long count, BUFFER(T, y), BUFFER(T, x), BUFFER(T, filter), BUFFER(T, bias)) {
  USE(T, y);
  USE(T, x);
  USE(T, filter);
  USE(T, bias);
  const long e = get_global_id(0);
  if (e >= count) return;
  SIZES
  const long plane = e / windows, window = e - plane * windows, n = plane / g.filters, o = plane - n * g.filters;
  const long row = start_of(&w, 0, window / w.count[1]), column = start_of(&w, 1, window % w.count[1]);
  const global T *image = x + (n * g.channels + o / g.group_filters * g.group_channels) * elements;
  const global T *own = filter + o * g.group_channels * taps;
  T sum = bias ? bias[o] : 0;
  for (long c = 0; c < g.group_channels; ++c, image += elements, own += taps) {
    for (long i = 0; i < w.kernel_size[0]; ++i) {
      const long r = row + i * w.dilation[0];
      if (r < 0 || r >= w.size[0]) continue;
      for (long k = 0; k < w.kernel_size[1]; ++k) {
        const long at = column + k * w.dilation[1];
        if (at >= 0 && at < w.size[1]) sum = fma(image[r * w.size[1] + at], own[i * w.kernel_size[1] + k], sum);
      }
    }
  }
  y[e] = sum;
}

// dx, and ConvTranspose, which adds a bias for each channel of dx.
kernel void conv_input_grad(const Windows w, const Groups g, const long count, BUFFER(T, dx), BUFFER(T, dy), BUFFER(T, filter),
                            BUFFER(T, bias)) {
  USE(T, dx);
  USE(T, dy);
  USE(T, filter);
  USE(T, bias);
  const long e = get_global_id(0);
  if (e >= count) return;
  SIZES
  const long plane = e / elements, at = e - plane * elements, n = plane / g.channels, c = plane - n * g.channels;
  const long r = at / w.size[1], s = at - r * w.size[1], group = c / g.group_channels;
  const global T *slope = dy + (n * g.filters + group * g.group_filters) * windows;
  const global T *own = filter + (group * g.group_filters * g.group_channels + c - group * g.group_channels) * taps;
  T sum = bias ? bias[c] : 0;
  for (long o = 0; o < g.group_filters; ++o, slope += windows, own += g.group_channels * taps) {
    for (long i = 0; i < w.kernel_size[0]; ++i) {
      const long a = window_at(&w, 0, r, i);
      if (a < 0) continue;
      for (long k = 0; k < w.kernel_size[1]; ++k) {
        const long b = window_at(&w, 1, s, k);
        if (b >= 0) sum = fma(slope[a * w.count[1] + b], own[i * w.kernel_size[1] + k], sum);
      }
    }
  }
  dx[e] = sum;
}

kernel void conv_weight_grad(const Windows w, const Groups g, const long count, const long batch, const uint width, BUFFER(T, dw),
                             BUFFER(T, dy), BUFFER(T, x)) {
  local T shared[GROUP_SIZE], shared_rests[GROUP_SIZE];
  USE(T, dw);
  USE(T, dy);
  USE(T, x);
  SIZES
  const long line = get_global_id(0) / width, first = get_local_id(0) & (width - 1);
  const bool active = line < count;
  const long e = active ? line : 0, terms = active ? batch * windows : 0;
  const long tap = e % taps, filter = e / taps, o = filter / g.group_channels, c = filter - o * g.group_channels;
  const long channel = o / g.group_filters * g.group_channels + c;
  const long down = tap / w.kernel_size[1] * w.dilation[0], right = tap % w.kernel_size[1] * w.dilation[1];
  Sum sum = {0, 0};
  for (long j = first; j < terms; j += width) {
    const long n = j / windows, window = j - n * windows;
    const long r = start_of(&w, 0, window / w.count[1]) + down, s = start_of(&w, 1, window % w.count[1]) + right;
    if (r < 0 || r >= w.size[0] || s < 0 || s >= w.size[1]) continue;
    sum = added(sum, dy[(n * g.filters + o) * windows + window] * x[(n * g.channels + channel) * elements + r * w.size[1] + s]);
  }
  const T total = sum_of_lanes(sum, width, shared, shared_rests);
  if (active && first == 0) dw[e] = total;
}
