// SPDX-License-Identifier: Apache-2.0
// ops/slice.cpp
typedef struct {
  long count;
  int rank, mode;
  long outer[8], inner[8], before[8], strides[8];
} Frame;

kernel void pad(const Frame frame, BUFFER(T, y), BUFFER(T, x), const T value) {
  USE(T, y);
  USE(T, x);
  const long i = get_global_id(0);
  if (i >= frame.count) return;
  long rest = i, offset = 0;
  bool inside = true;
  for (int d = frame.rank; d-- > 0;) {
    const long size = frame.outer[d], above = rest / size, n = frame.inner[d];
    long j = rest - above * size - frame.before[d];
    if (frame.mode == 1) j = j < 0 ? -j : j < n ? j : 2 * n - 2 - j;  // TENON_PAD_REFLECT
    if (frame.mode == 2) j = j < 0 ? 0 : j < n ? j : n - 1;           // TENON_PAD_EDGE
    inside = inside && j >= 0 && j < n;
    offset += j * frame.strides[d];
    rest = above;
  }
  y[i] = inside ? x[offset] : value;
}
