// SPDX-License-Identifier: Apache-2.0
// y[o, k, i] = x[o, indices[k], i]
kernel void gather(INDICES, const long count, const long inner, BUFFER(T, y), BUFFER(T, x)) {
  USE(T, y);
  USE(T, x);
  const long e = get_global_id(0);
  if (e >= count) return;
  const long row = e / inner, o = row / index_count;
  INDEX_AT(j, row - o * index_count)
  if (j >= 0) y[e] = x[(o * n + j) * inner + (e - row * inner)];
}

// `layout` maps the elements of y to x, with stride 0 along the axis, where the indices select with stride `step`.
kernel void gather_elements(INDICES, const Layout layout, const long step, BUFFER(T, y), BUFFER(T, x)) {
  USE(T, y);
  USE(T, x);
  const long i = get_global_id(0);
  if (i >= layout.count) return;
  INDEX_AT(j, i)
  if (j >= 0) y[i] = x[place(&layout, i).s0 + j * step];
}

// For calls that have indices but no other work: invalid indices are still an error.
kernel void check_indices(INDICES) {
  if (get_global_id(0) >= index_count) return;
  INDEX_AT(unused, get_global_id(0))
}
