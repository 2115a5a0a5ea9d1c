// SPDX-License-Identifier: Apache-2.0
// Images as matrices: a line for each channel and tap, a column for each window (conv/column_products.h).

// conv/column_products.cpp
typedef struct {
  uint factor, shift;
} Divisor;
static inline int quotient(int n, Divisor d) {
  return (int)(((uint)((ulong)(uint)n * d.factor >> 32) + (uint)n) >> d.shift);
}

// conv/column_products.cpp
typedef struct {
  int channels, filters, lines, taps, windows, elements, down, across;
  int size[2], kernel_rows, kernel_columns, stride[2], dilation[2], before[2];
  Divisor by_lines, by_taps, by_windows, by_elements, by_channels, by_filters, by_across, by_columns, by_kernel_columns, by_stride[2];
} Columns;

// y[line * line_stride + n * image_stride + window] = x[n, c, place]; x (n, channels, size...), its images follow each other.
kernel void columns(const Columns s, const int count, const long line_stride, const long image_stride, BUFFER(T, y), BUFFER(T, x)) {
  USE(T, y);
  USE(T, x);
  const int e = (int)get_global_id(0);
  if (e >= count) return;
  const int row = quotient(e, s.by_windows), window = e - row * s.windows, n = quotient(row, s.by_lines), line = row - n * s.lines;
  const int c = quotient(line, s.by_taps), tap = line - c * s.taps;
  const int i = quotient(tap, s.by_kernel_columns), k = tap - i * s.kernel_columns;
  const int a = quotient(window, s.by_across), b = window - a * s.across;
  const int r = a * s.stride[0] - s.before[0] + i * s.dilation[0], t = b * s.stride[1] - s.before[1] + k * s.dilation[1];
  const bool inside = r >= 0 && r < s.size[0] && t >= 0 && t < s.size[1];
  const T v = x[inside ? (n * s.channels + c) * s.elements + r * s.size[1] + t : 0];  // without a branch, so that compilers vectorise it
  y[line * line_stride + n * image_stride + window] = inside ? v : (T)0;
}

// y[n, c, place] = bias[c] + the sum of x[line * line_stride + n * image_stride + window] over the windows and taps that are at this place.
kernel void sum_columns(const Columns s, const int count, const long line_stride, const long image_stride, BUFFER(T, y), BUFFER(T, x), BUFFER(T, bias)) {
  USE(T, y);
  USE(T, x);
  USE(T, bias);
  const int e = (int)get_global_id(0);
  if (e >= count) return;
  const int plane = quotient(e, s.by_elements), at = e - plane * s.elements;
  const int r = quotient(at, s.by_columns), t = at - r * s.size[1];
  const int n = quotient(plane, s.by_channels), channel = plane - n * s.channels;
  const global T *line = x + channel * s.taps * line_stride + n * image_stride;
  T sum = bias ? bias[channel] : 0;
  for (int i = 0; i < s.kernel_rows; ++i, line += s.kernel_columns * line_stride) {
    const int down = r + s.before[0] - i * s.dilation[0], a = quotient(down, s.by_stride[0]);
    if (down < 0 || a >= s.down || a * s.stride[0] != down) continue;
    for (int k = 0; k < s.kernel_columns; ++k) {
      const int along = t + s.before[1] - k * s.dilation[1], b = quotient(along, s.by_stride[1]);
      if (along >= 0 && b < s.across && b * s.stride[1] == along) sum += line[k * line_stride + a * s.across + b];
    }
  }
  y[e] = sum;
}

// y[n, f, window] += bias[f]
kernel void add_bias(const Columns s, const int count, BUFFER(T, y), BUFFER(T, bias)) {
  USE(T, y);
  USE(T, bias);
  const int e = (int)get_global_id(0), row = quotient(e, s.by_windows);
  if (e < count) y[e] += bias[row - quotient(row, s.by_filters) * s.filters];
}

// joined[f, n, window] = y[n, f, window], or back.
kernel void join_images(const Columns s, const int count, const int images, const int back, BUFFER(T, joined), BUFFER(T, y)) {
  USE(T, joined);
  USE(T, y);
  const int e = (int)get_global_id(0);
  if (e >= count) return;
  const int row = quotient(e, s.by_windows), n = quotient(row, s.by_filters), f = row - n * s.filters;
  const int at = (f * images + n) * s.windows + e - row * s.windows;
  if (back)
    y[e] = joined[at];
  else
    joined[at] = y[e];
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
