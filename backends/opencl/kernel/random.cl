// SPDX-License-Identifier: Apache-2.0
// Random numbers as tenon/sdk/random.h specifies them, bit for bit: no multiply-add may be fused but those that are written.
#pragma OPENCL FP_CONTRACT OFF

#define KEY BUFFER(ulong, key), const uint stream
static inline uint4 lanes_of(const global ulong *key, uint stream, ulong block) {
  uint4 c = (uint4)((uint)block, (uint)(block >> 32), stream, (uint)key[1]);
  uint2 k = (uint2)((uint)key[0], (uint)(key[0] >> 32));
  for (int round = 0; round < 10; ++round) {
    const ulong p0 = (ulong)0xD2511F53u * c.s0, p1 = (ulong)0xCD9E8D57u * c.s2;
    c = (uint4)((uint)(p1 >> 32) ^ c.s1 ^ k.s0, (uint)p1, (uint)(p0 >> 32) ^ c.s3 ^ k.s1, (uint)p0);
    k += (uint2)(0x9E3779B9u, 0xBB67AE85u);
  }
  return c;
}
static inline uint lane(uint4 x, long j) {
  return j == 0 ? x.s0 : j == 1 ? x.s1 : j == 2 ? x.s2 : x.s3;
}
static inline ulong word_of(const global ulong *key, uint stream, long i) {
  const uint4 x = lanes_of(key, stream, i / 2);
  return i % 2 == 0 ? (ulong)x.s1 << 32 | x.s0 : (ulong)x.s3 << 32 | x.s2;
}

#ifdef T_FLOATING
// Each work-item computes the four elements of a block; FOR_EACH runs its statement for each i of them, whose random bits are LANE.
#define BLOCK                                                         \
  USE(T, y);                                                          \
  USE(ulong, key);                                                    \
  const long first = 4 * get_global_id(0), end = min(first + 4, count); \
  if (first >= count) return;                                         \
  const uint4 lanes = lanes_of(key, stream, first / 4);
#define LANE lane(lanes, i - first)
#define FOR_EACH(statement) \
  for (long i = first; i < end; ++i) statement

kernel void random_uniform(const long count, BUFFER(T, y), KEY, const T low, const T high) {
  BLOCK
#ifdef T_F64
  FOR_EACH(y[i] = low + (high - low) * ((T)(word_of(key, stream, i) >> 11) * 0x1p-53);)
#else
  FOR_EACH(y[i] = low + (high - low) * ((T)(LANE >> 8) * 0x1p-24f);)
#endif
}

kernel void random_bernoulli(const long count, BUFFER(T, y), KEY, const ulong threshold) {
  BLOCK
  FOR_EACH(y[i] = LANE < threshold ? (T)1 : (T)0;)
}

kernel void dropout(const long count, BUFFER(T, y), KEY, BUFFER(T, x), const ulong threshold, const T scale) {
  BLOCK
  USE(T, x);
  FOR_EACH(y[i] = LANE < threshold ? (T)0 : x[i] * scale;)
}

#ifdef cl_khr_fp64
static inline double log_fixed(double u) {
  ulong bits = as_ulong(u) + (0x3FF0000000000000ul - 0x3FE6A09E667F3BCDul);
  const double e = (double)((long)(bits >> 52) - 1023);
  bits = (bits & 0x000FFFFFFFFFFFFFul) + 0x3FE6A09E667F3BCDul;
  const double m = as_double(bits);
  const double s = (m - 1.0) / (m + 1.0), t = s * s;
  double p = 1.0 / 23.0;
  p = fma(p, t, 1.0 / 21.0);
  p = fma(p, t, 1.0 / 19.0);
  p = fma(p, t, 1.0 / 17.0);
  p = fma(p, t, 1.0 / 15.0);
  p = fma(p, t, 1.0 / 13.0);
  p = fma(p, t, 1.0 / 11.0);
  p = fma(p, t, 1.0 / 9.0);
  p = fma(p, t, 1.0 / 7.0);
  p = fma(p, t, 1.0 / 5.0);
  p = fma(p, t, 1.0 / 3.0);
  return fma(e, 0x1.62e42feep-1, fma(e, 0x1.a39ef35793c76p-33, fma(2.0 * s * t, p, 2.0 * s)));
}
// (cos, sin) of 2 pi (x + 1/2) / 2^32
static inline double2 on_circle(uint x) {
  const ulong quarter = ((ulong)x + (1u << 29)) >> 30;
  const long rest = (long)(2 * (ulong)x + 1) - (long)(quarter << 31);
  const double a = (double)rest * 0x1p-33 * 6.283185307179586, t = a * a;
  double s = 1.0 / 355687428096000.0;
  s = fma(s, t, -1.0 / 1307674368000.0);
  s = fma(s, t, 1.0 / 6227020800.0);
  s = fma(s, t, -1.0 / 39916800.0);
  s = fma(s, t, 1.0 / 362880.0);
  s = fma(s, t, -1.0 / 5040.0);
  s = fma(s, t, 1.0 / 120.0);
  s = fma(s, t, -1.0 / 6.0);
  s = fma(s * t, a, a);
  double c = 1.0 / 20922789888000.0;
  c = fma(c, t, -1.0 / 87178291200.0);
  c = fma(c, t, 1.0 / 479001600.0);
  c = fma(c, t, -1.0 / 3628800.0);
  c = fma(c, t, 1.0 / 40320.0);
  c = fma(c, t, -1.0 / 720.0);
  c = fma(c, t, 1.0 / 24.0);
  c = fma(c, t, -0.5);
  c = fma(c, t, 1.0);
  const double cosine = (quarter & 1) != 0 ? s : c, sine = (quarter & 1) != 0 ? c : s;
  return (double2)(quarter == 1 || quarter == 2 ? -cosine : cosine, quarter == 2 || quarter == 3 ? -sine : sine);
}
static inline double normal_of(uint4 x, long j) {
  const double u = ((double)(j < 2 ? x.s0 : x.s2) + 0.5) * 0x1p-32;
  const double2 point = on_circle(j < 2 ? x.s1 : x.s3);
  return sqrt(-2.0 * log_fixed(u)) * (j % 2 == 0 ? point.s0 : point.s1);
}
#define NORMAL double
#else
static inline float normal_of(uint4 x, long j) {
  const uint even = j < 2 ? x.s0 : x.s2;
  const bool upper = even >= 0x80000000u;
  const float distance = ((float)(upper ? ~even : even) + 0.5f) * 0x1p-32f;
  const float radius = sqrt(2.0f * (upper ? -log1p(-distance) : -log(distance)));
  const float angle = ((float)(int)(j < 2 ? x.s1 : x.s3) + 0.5f) * 0x1p-32f * 6.2831853f;
  return radius * (j % 2 == 0 ? cos(angle) : sin(angle));
}
#define NORMAL float
#endif
kernel void random_normal(const long count, BUFFER(T, y), KEY, const NORMAL mean, const NORMAL deviation) {
  BLOCK
  FOR_EACH(y[i] = (T)fma(deviation, normal_of(lanes, i - first), mean);)
}
#endif

// A random order: elements (word, index) are sorted by a bitonic network over the next power of two.
typedef struct {
  ulong word;
  long index;
} Draw;
kernel void begin_permutation(const long count, const long n, BUFFER(Draw, draws), KEY) {
  USE(Draw, draws);
  USE(ulong, key);
  const long i = get_global_id(0);
  if (i >= count) return;
  draws[i] = (Draw){i < n ? word_of(key, stream, i) : ULONG_MAX, i};
}
kernel void sort_draws(const long pairs, const long run, const long distance, BUFFER(Draw, draws)) {
  USE(Draw, draws);
  const long p = get_global_id(0);
  if (p >= pairs) return;
  const long i = p / distance * 2 * distance + p % distance, j = i + distance;
  const Draw a = draws[i], b = draws[j];
  const bool greater = a.word > b.word || (a.word == b.word && a.index > b.index);
  if (greater != ((i & run) != 0)) {
    draws[i] = b;
    draws[j] = a;
  }
}
kernel void end_permutation(const long n, BUFFER(long, y), BUFFER(Draw, draws)) {
  USE(long, y);
  USE(Draw, draws);
  const long i = get_global_id(0);
  if (i < n) y[i] = draws[i].index;
}
