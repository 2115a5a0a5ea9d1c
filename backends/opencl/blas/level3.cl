// SPDX-License-Identifier: Apache-2.0
// BLAS level 3: matrices. Where C is Hermitian its diagonal becomes real.
#include "blas/elements.cl"

#define TILE 8

// C = alpha A B + beta C where C is stored, for each entry of a batch. A work-group computes a tile of C, a work-item one element of it.
kernel void product(SCALAR(alpha), MATRIX(a), MATRIX(b), SCALAR(beta), MATRIX(c), const long a_stride, const long b_stride,
                    const long c_stride) {
  local T a_tile[TILE][TILE + 1], b_tile[TILE][TILE + 1];
  USE(R, a);
  USE(R, b);
  USE(R, c);
  READ(alpha);
  const long parts = sizeof(T) / sizeof(R), m = c_view.m, n = c_view.n, k = a_view.n;
  const long tiles_down = (m + TILE - 1) / TILE, tiles = tiles_down * ((n + TILE - 1) / TILE);
  const long which = get_group_id(0) / tiles, tile = get_group_id(0) - which * tiles;
  const long row = tile % tiles_down * TILE, column = tile / tiles_down * TILE;
  if (column - row - (TILE - 1) > c_view.above || row - column - (TILE - 1) > c_view.below) return;  // nothing of the tile is stored
  const global R *const left = a + which * a_stride * parts, *const right = b + which * b_stride * parts;
  const int down = get_local_id(0) % TILE, across = get_local_id(0) / TILE;
  const long i = row + down, j = column + across;
  T sum = of_real(0);
  if (!equals(alpha, 0)) {
    // Only where both factors may differ from 0: 0 times infinity is NaN.
    const long first = max(first_of_row(&a_view, i), first_of_column(&b_view, j));
    const long end = min(end_of_row(&a_view, i), end_of_column(&b_view, j));
    for (long begin = 0; begin < k; begin += TILE) {
      barrier(CLK_LOCAL_MEM_FENCE);
      a_tile[across][down] = i < m && begin + across < k ? entry(&a_view, left, i, begin + across) : of_real(0);
      b_tile[down][across] = j < n && begin + down < k ? entry(&b_view, right, begin + down, j) : of_real(0);
      barrier(CLK_LOCAL_MEM_FENCE);
      const int stop = (int)(min(end, begin + TILE) - begin);
      for (int p = (int)max(first - begin, 0L); p < stop; ++p) sum += multiply(a_tile[p][down], b_tile[p][across]);
    }
  }
  if (i >= m || j >= n || !stores(&c_view, i, j)) return;
  READ(beta);
  global R *const to = c + which * c_stride * parts;
  sum = scaled(alpha, sum);
  if (c_view.kind == HERMITIAN && i == j) sum = of_real(real_of(sum));
  if (!equals(beta, 0)) sum += scaled(beta, entry(&c_view, to, i, j));
  store(to, index_of(&c_view, i, j), sum);
}

// C = alpha A + beta B where C is stored.
kernel void add(SCALAR(alpha), MATRIX(a), SCALAR(beta), MATRIX(b), MATRIX(c)) {
  USE(R, a);
  USE(R, b);
  USE(R, c);
  READ(alpha);
  READ(beta);
  ELEMENT(&c_view, i, j);
  T sum = of_real(0);
  if (!equals(alpha, 0)) sum = scaled(alpha, entry(&a_view, a, i, j));
  if (!equals(beta, 0)) sum += scaled(beta, entry(&b_view, b, i, j));
  store(c, index_of(&c_view, i, j), c_view.kind == HERMITIAN && i == j ? of_real(real_of(sum)) : sum);
}

// C = diag(x) A or, with `right`, A diag(x).
kernel void scale_lines(MATRIX(a), VECTOR(x), MATRIX(c), const int right) {
  USE(R, a);
  USE(R, x);
  USE(R, c);
  ELEMENT(&c_view, i, j);
  store(c, index_of(&c_view, i, j), multiply(load(x, (right ? j : i) * x_step), entry(&a_view, a, i, j)));
}
