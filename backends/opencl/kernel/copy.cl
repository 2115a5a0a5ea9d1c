// SPDX-License-Identifier: Apache-2.0
// y = x, where both have strides over one shape.
kernel void copy(const Layout layout, BUFFER(T, y), BUFFER(T, x)) {
  USE(T, y);
  USE(T, x);
  const long i = get_global_id(0);
  if (i >= layout.count) return;
  const long3 at = place(&layout, i);
  y[at.s1] = x[at.s0];
}
