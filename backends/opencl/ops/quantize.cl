// SPDX-License-Identifier: Apache-2.0
// saturate(round(x / scale) + zero_point), ties to even; 0 for NaN. Q is the integer's type, Q_LOW and Q_HIGH its range.
static inline Q quantized(T x, T scale, T zero_point) {
  const T q = rint(x / scale) + zero_point;
  return q != q ? (Q)0 : (Q)clamp(q, (T)Q_LOW, (T)Q_HIGH);
}
kernel void quantize_linear(const Layout layout, BUFFER(Q, y), BUFFER(T, x), BUFFER(T, scale), BUFFER(Q, zero_point)) {
  USE(Q, y);
  USE(T, x);
  USE(T, scale);
  USE(Q, zero_point);
  const long i = get_global_id(0);
  if (i >= layout.count) return;
  const long3 at = place(&layout, i);
  y[i] = quantized(x[at.s0], scale[at.s1], zero_point ? (T)zero_point[at.s2] : (T)0);
}
kernel void dequantize_linear(const Layout layout, BUFFER(T, y), BUFFER(Q, x), BUFFER(T, scale), BUFFER(Q, zero_point)) {
  USE(T, y);
  USE(Q, x);
  USE(T, scale);
  USE(Q, zero_point);
  const long i = get_global_id(0);
  if (i >= layout.count) return;
  const long3 at = place(&layout, i);
  y[i] = ((T)x[at.s0] - (zero_point ? (T)zero_point[at.s2] : (T)0)) * scale[at.s1];
}

#define IS_GREATER(a, b) ((a) > (b))
#define IS_LESS(a, b) ((a) < (b))
BEST_OF_LANES(max_of_lanes, T, IS_GREATER)
BEST_OF_LANES(min_of_lanes, T, IS_LESS)
// One work-group: scale and zero_point of the range of x and 0.
kernel void range_of(const long count, BUFFER(T, scale), BUFFER(uchar, zero_point), BUFFER(T, x)) {
  local T shared[GROUP_SIZE];
  USE(T, scale);
  USE(uchar, zero_point);
  USE(T, x);
  T low = 0, high = 0;
  for (long i = get_local_id(0); i < count; i += GROUP_SIZE) {
    if (x[i] < low) low = x[i];
    if (x[i] > high) high = x[i];
  }
  low = min_of_lanes(low, GROUP_SIZE, shared);
  high = max_of_lanes(high, GROUP_SIZE, shared);
  if (get_local_id(0) != 0) return;
  const T range = high - low, step = (range == 0 ? 1 : range) / 255;
  *scale = step;
  *zero_point = (uchar)rint(clamp(0 - low / step, (T)0, (T)255));
}
