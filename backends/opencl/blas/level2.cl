// SPDX-License-Identifier: Apache-2.0
// BLAS level 2: a matrix and vectors.
#include "blas/elements.cl"

// y = alpha A x + beta y; `width`, a power of two, work-items share a row.
kernel void matrix_vector(const uint width, SCALAR(alpha), MATRIX(a), VECTOR(x), SCALAR(beta), VECTOR(y)) {
  local T sums[GROUP_SIZE];
  USE(R, a);
  USE(R, x);
  USE(R, y);
  READ(alpha);
  const uint item = get_local_id(0), lane = item & (width - 1);
  const long i = get_global_id(0) / width;
  T sum = of_real(0);
  if (i < a_view.m && !equals(alpha, 0)) {
    const long first = first_of_row(&a_view, i) + lane, end = end_of_row(&a_view, i);
    if (a_view.kind == GENERAL && a_view.growth == 0 && a_view.unit == 0) {  // the next entry is at a fixed distance
      const long row = index_of(&a_view, i, 0), step = a_view.by_rows ? 1 : a_view.lead;
      for (long j = first; j < end; j += width) sum += multiply(conj_if(a_view.conjugate, load(a, row + j * step)), load(x, j * x_step));
    } else {
      for (long j = first; j < end; j += width) sum += multiply(entry(&a_view, a, i, j), load(x, j * x_step));
    }
  }
  if (width > 1) {
    sums[item] = sum;
    for (uint step = width / 2; step > 0; step /= 2) {
      barrier(CLK_LOCAL_MEM_FENCE);
      if (lane < step) sums[item] += sums[item + step];
    }
    sum = sums[item];
  }
  if (i >= a_view.m || lane != 0) return;
  READ(beta);
  store(y, i * y_step, scaled(alpha, sum) + scaled(beta, load(y, i * y_step)));
}

// x = alpha A^-1 x, A triangular, for the vectors at multiples of `line_step`: one work-group for each. Column by column: a column of A is
// subtracted as soon as its element of x is known.
kernel void solve(SCALAR(alpha), MATRIX(a), VECTOR(x), const long line_step) {
  USE(R, a);
  USE(R, x);
  READ(alpha);
  global R *const own = x + get_group_id(0) * line_step * (long)(sizeof(T) / sizeof(R));
  const long n = a_view.n, item = get_local_id(0), items = get_local_size(0);
  for (long i = item; i < n; i += items) store(own, i * x_step, scaled(alpha, load(own, i * x_step)));
  if (equals(alpha, 0)) return;
  const int is_upper = a_view.below == 0;
  for (long step = 0; step < n; ++step) {
    barrier(CLK_GLOBAL_MEM_FENCE);
    const long j = is_upper ? n - 1 - step : step;
    T value = load(own, j * x_step);
    if (!a_view.unit) value = divide(value, entry(&a_view, a, j, j));
    const long first = is_upper ? first_of_column(&a_view, j) : j + 1, end = is_upper ? j : end_of_column(&a_view, j);
    for (long i = first + item; i < end; i += items) {
      store(own, i * x_step, load(own, i * x_step) - multiply(entry(&a_view, a, i, j), value));
    }
    barrier(CLK_GLOBAL_MEM_FENCE);  // all have read x(j)
    if (item == 0) store(own, j * x_step, value);
  }
}

// A += alpha x op(y), and with `both` also op(alpha) y op(x), where A is stored; op is the transpose or, with `conjugate`, the conjugate
// transpose.
kernel void rank_update(SCALAR(alpha), VECTOR(x), VECTOR(y), MATRIX(a), const int conjugate, const int both) {
  USE(R, a);
  USE(R, x);
  USE(R, y);
  READ(alpha);
  ELEMENT(&a_view, i, j);
  if (equals(alpha, 0)) return;
  T sum = multiply(load(x, i * x_step), multiply(alpha, conj_if(conjugate, load(y, j * y_step))));
  if (both) sum += multiply(load(y, i * y_step), conj_if(conjugate, multiply(alpha, load(x, j * x_step))));
  const long at = index_of(&a_view, i, j);
  sum += load(a, at);
  store(a, at, a_view.kind == HERMITIAN && i == j ? of_real(real_of(sum)) : sum);
}
