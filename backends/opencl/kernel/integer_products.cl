// SPDX-License-Identifier: Apache-2.0
// Sums of products of 8-bit integers, modulo 2^32, less their zero points; requantised where Y is an 8-bit type: A, B and Y are the types.
#ifdef REQUANTISED
#define RESULT_PARAMETERS                                                                                  \
  BUFFER(Y, y), BUFFER(int, bias), BUFFER(float, a_scale), BUFFER(float, b_scale), BUFFER(float, y_scale), \
      BUFFER(Y, y_zero_point), const int b_scales
// saturate(round(f32(sum) factor) + y_zero_point), factor = a_scale b_scale / y_scale of this line, each operation rounded to f32
#pragma OPENCL FP_CONTRACT OFF
#define STORE(at, sum, line)                                                                     \
  {                                                                                              \
    USE(Y, y);                                                                                   \
    USE(int, bias);                                                                              \
    USE(float, a_scale);                                                                         \
    USE(float, b_scale);                                                                         \
    USE(float, y_scale);                                                                         \
    USE(Y, y_zero_point);                                                                        \
    const float factor = *a_scale * b_scale[b_scales ? line : 0] / *y_scale;                     \
    const float scaled = (float)(int)(sum + (bias ? (uint)bias[line] : 0u)) * factor;            \
    const float result = rint(scaled) + (float)*y_zero_point;                                    \
    y[at] = result != result ? (Y)0 : (Y)clamp(result, (float)Y_LOW, (float)Y_HIGH);             \
  }
#else
#define RESULT_PARAMETERS BUFFER(int, y)
#define STORE(at, sum, line) \
  {                          \
    USE(int, y);             \
    y[at] = (int)(sum);      \
  }
#endif
#define OPERANDS                                                               \
  BUFFER(A, a), BUFFER(B, b), BUFFER(A, a_zero_point), BUFFER(B, b_zero_point), \
      const int a_zero_points, const int b_zero_points
#define USE_OPERANDS   \
  USE(A, a);           \
  USE(B, b);           \
  USE(A, a_zero_point); \
  USE(B, b_zero_point);

// The stacks' strides are those of `stack`; matrices are dense.
kernel void multiply(const Layout stack, const long m, const long n, const long k, OPERANDS, RESULT_PARAMETERS) {
  USE_OPERANDS
  const long e = get_global_id(0), size = m * n;
  if (e >= stack.count * size) return;
  const long entry = e / size, i = (e - entry * size) / n, j = e % n;
  const long3 at = place(&stack, entry);
  const int a_zero = a_zero_point ? a_zero_point[a_zero_points ? i : 0] : 0;
  const int b_zero = b_zero_point ? b_zero_point[b_zero_points ? j : 0] : 0;
  const global A *const row = a + at.s0 + i * k;
  const global B *const column = b + at.s1 + j;
  uint sum = 0;
  for (long p = 0; p < k; ++p) sum += (uint)((row[p] - a_zero) * (column[p * n] - b_zero));
  STORE(e, sum, j)
}

// conv/conv.h
typedef struct {
  long channels, filters, group_channels, group_filters;
} Groups;
kernel void convolve(const Windows w, const Groups g, const long count, OPERANDS, RESULT_PARAMETERS) {
  USE_OPERANDS
  const long e = get_global_id(0);
  if (e >= count) return;
  const long taps = w.kernel_size[0] * w.kernel_size[1], windows = w.count[0] * w.count[1], elements = w.size[0] * w.size[1];
  const long plane = e / windows, window = e - plane * windows, n = plane / g.filters, o = plane - n * g.filters;
  const long row = start_of(&w, 0, window / w.count[1]), column = start_of(&w, 1, window % w.count[1]);
  const int a_zero = a_zero_point ? *a_zero_point : 0, b_zero = b_zero_point ? b_zero_point[b_zero_points ? o : 0] : 0;
  const global A *image = a + (n * g.channels + o / g.group_filters * g.group_channels) * elements;
  const global B *own = b + o * g.group_channels * taps;
  uint sum = 0;
  for (long c = 0; c < g.group_channels; ++c, image += elements, own += taps) {
    for (long i = 0; i < w.kernel_size[0]; ++i) {
      const long r = row + i * w.dilation[0];
      if (r < 0 || r >= w.size[0]) continue;
      for (long k = 0; k < w.kernel_size[1]; ++k) {
        const long at = column + k * w.dilation[1];
        if (at >= 0 && at < w.size[1]) sum += (uint)((image[r * w.size[1] + at] - a_zero) * (own[i * w.kernel_size[1] + k] - b_zero));
      }
    }
  }
  STORE(e, sum, o)
}
