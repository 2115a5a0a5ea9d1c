// SPDX-License-Identifier: Apache-2.0
// The operands have strides of their own, so only the chosen one is read.
kernel void op_where(const Layout layout, BUFFER(T, y), BUFFER(uchar, condition), BUFFER(T, a), BUFFER(T, b)) {
  USE(T, y);
  USE(uchar, condition);
  USE(T, a);
  USE(T, b);
  const long i = get_global_id(0);
  if (i >= layout.count) return;
  const long3 at = place(&layout, i);
  y[i] = condition[at.s0] ? a[at.s1] : b[at.s2];
}
