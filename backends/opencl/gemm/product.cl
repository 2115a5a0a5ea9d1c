// SPDX-License-Identifier: Apache-2.0
// y = alpha a b + beta y for matrices of any strides: products that are small, or that CLBlast does not read in place.
typedef struct {
  long m, n, k;
  long a_row, a_column, b_row, b_column;
} Matrices;

kernel void product(const Matrices s, const Layout batch, BUFFER(T, y), BUFFER(T, a), BUFFER(T, b), const T alpha, const T beta) {
  USE(T, y);
  USE(T, a);
  USE(T, b);
  const long e = get_global_id(0), size = s.m * s.n;
  if (e >= batch.count * size) return;
  const long entry = e / size, i = (e - entry * size) / s.n, j = e % s.n;
  const long3 at = place(&batch, entry);
  const global T *const row = a + at.s0 + i * s.a_row, *const column = b + at.s1 + j * s.b_column;
  T sum = 0;
  for (long p = 0; p < s.k; ++p) sum = fma(row[p * s.a_column], column[p * s.b_row], sum);
  y[e] = beta != 0 ? alpha * sum + beta * y[e] : alpha * sum;
}
