// SPDX-License-Identifier: Apache-2.0
// Images as matrices: a line for each channel and tap, a column for each window (conv/column_products.h).
#define SIZES                                                                          \
  const int across = (int)w.count[1], windows = (int)w.count[0] * across;              \
  const int taps = (int)(w.kernel_size[0] * w.kernel_size[1]), right = (int)w.size[1]; \
  const int elements = (int)w.size[0] * right;

// y[line * line_stride + n * image_stride + window] = x[n, c, place]; x (n, channels, size...), its images follow each other.
kernel void columns(const Windows w, const int count, const int channels, const long line_stride, const long image_stride, BUFFER(T, y),
                    BUFFER(T, x)) {
  USE(T, y);
  USE(T, x);
  const int e = (int)get_global_id(0);
  if (e >= count) return;
  SIZES
  const int lines = channels * taps, row = e / windows, window = e - row * windows;
  const int n = row / lines, line = row - n * lines, c = line / taps, tap = line - c * taps;
  const int i = tap / (int)w.kernel_size[1], k = tap - i * (int)w.kernel_size[1], a = window / across, b = window - a * across;
  const int r = a * (int)w.stride[0] - (int)w.before[0] + i * (int)w.dilation[0];
  const int s = b * (int)w.stride[1] - (int)w.before[1] + k * (int)w.dilation[1];
  const bool inside = r >= 0 && r < (int)w.size[0] && s >= 0 && s < right;
  y[line * line_stride + n * image_stride + window] = inside ? x[(n * channels + c) * elements + r * right + s] : (T)0;
}

// y[n, c, place] = bias[c] + the sum of x[n, line, window] over the windows and taps that are at this place.
kernel void sum_columns(const Windows w, const int count, const int channels, BUFFER(T, y), BUFFER(T, x), BUFFER(T, bias)) {
  USE(T, y);
  USE(T, x);
  USE(T, bias);
  const int e = (int)get_global_id(0);
  if (e >= count) return;
  SIZES
  const int plane = e / elements, at = e - plane * elements, r = at / right, s = at - r * right;
  const global T *line = x + (long)plane * taps * windows;
  T sum = bias ? bias[plane % channels] : 0;
  for (int i = 0; i < (int)w.kernel_size[0]; ++i) {
    const int down = r + (int)w.before[0] - i * (int)w.dilation[0], a = down / (int)w.stride[0];
    for (int k = 0; k < (int)w.kernel_size[1]; ++k, line += windows) {
      const int along = s + (int)w.before[1] - k * (int)w.dilation[1], b = along / (int)w.stride[1];
      if (down < 0 || along < 0 || a >= (int)w.count[0] || b >= across) continue;
      if (a * (int)w.stride[0] == down && b * (int)w.stride[1] == along) sum += line[a * across + b];
    }
  }
  y[e] = sum;
}

// y[n, c, place] += bias[c]
kernel void add_bias(const int count, const int channels, const int elements, BUFFER(T, y), BUFFER(T, bias)) {
  USE(T, y);
  USE(T, bias);
  const int e = (int)get_global_id(0);
  if (e < count) y[e] += bias[e / elements % channels];
}

// y[e] = the sum of x[n, e] over the images n, added to y if it `adds`.
kernel void sum_images(const int count, const int images, const int adds, BUFFER(T, y), BUFFER(T, x)) {
  USE(T, y);
  USE(T, x);
  const int e = (int)get_global_id(0);
  if (e >= count) return;
  T sum = adds ? y[e] : 0;
  for (int n = 0; n < images; ++n) sum += x[(long)n * count + e];
  y[e] = sum;
}
