// SPDX-License-Identifier: Apache-2.0
// Element i of integers of `bits` bits, the first in the lowest bits of a byte.
static inline int element_at(const global uchar *bytes, long i, int bits) {
  return bits == 8 ? bytes[i] : bytes[i / 2] >> (4 * (i % 2)) & 15;
}
kernel void matmul_nbits(const long count, const long n, const long k, const long blocks, const long bytes, const long block_size,
                         const int bits, BUFFER(T, y), BUFFER(T, a), BUFFER(uchar, b), BUFFER(T, scales), BUFFER(uchar, zero_points),
                         BUFFER(T, bias)) {
  USE(T, y);
  USE(T, a);
  USE(uchar, b);
  USE(T, scales);
  USE(uchar, zero_points);
  USE(T, bias);
  const long e = get_global_id(0);
  if (e >= count) return;
  const long row = e / n, j = e - row * n, zero_bytes = (blocks * bits + 7) / 8;
  T sum = bias ? bias[j] : 0;
  for (long i = 0; i < k; ++i) {
    const long block = i / block_size;
    const int zero = zero_points ? element_at(zero_points + j * zero_bytes, block, bits) : 1 << (bits - 1);
    sum = fma(a[row * k + i], (element_at(b + j * blocks * bytes, i, bits) - zero) * scales[j * blocks + block], sum);
  }
  y[e] = sum;
}
