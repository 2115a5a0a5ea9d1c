// SPDX-License-Identifier: Apache-2.0
kernel void one_hot(BUFFER(T, y), BUFFER(INDEX, indices), const long count, const long depth, const long inner, const T off, const T on) {
  USE(T, y);
  USE(INDEX, indices);
  const long e = get_global_id(0);
  if (e >= count) return;
  const long row = e / inner, o = row / depth, j = row - o * depth;
  const long index = indices[o * inner + (e - row * inner)];
  y[e] = index == j || index == j - depth ? on : off;
}
