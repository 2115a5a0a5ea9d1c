// SPDX-License-Identifier: Apache-2.0
// Float to integer truncates toward zero and saturates, NaN becomes 0; integer to a narrower integer keeps the low bits; anything to bool
// is x != 0; the rest rounds to nearest, once. f16 and bf16 are reached through f32: a value that f32 cannot hold is first made odd in its
// last bit, so that the second rounding decides as a single one would.
#if defined(T_F16)
#define LOAD(x, i) vload_half(i, (global const half *)x)
#define V float
#elif defined(T_BF16)
#define LOAD(x, i) as_float((uint)x[i] << 16)
#define V float
#else
#define LOAD(x, i) x[i]
#define V T
#endif

#if defined(T_F64)
static inline float odd_float(double x) {
  const float nearest = convert_float_rtz(x);
  return x != x || isinf(x) || nearest == x ? (float)x : as_float(as_uint(nearest) | 1);
}
#elif defined(T_FLOATING) || defined(T_F16) || defined(T_BF16)
static inline float odd_float(float x) {
  return x;
}
#else
static inline float odd_float(T x) {
  ulong magnitude = x < 0 ? -(ulong)x : (ulong)x;
  int shift = 40 - (int)clz(magnitude);
  if (shift > 0) magnitude = magnitude >> shift | (magnitude << (64 - shift) ? 1 : 0);
  const float value = ldexp((float)magnitude, shift > 0 ? shift : 0);
  return x < 0 ? -value : value;
}
#endif

static inline ushort bf16_bits(float x) {
  const uint bits = as_uint(x);
  return x != x ? (ushort)(bits >> 16 | 64) : (ushort)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

#if defined(T_FLOATING) || defined(T_F16) || defined(T_BF16)
#define TO_INTEGER(type, x) (x != x ? (type)0 : convert_##type##_sat_rtz(x))  // some drivers convert NaN to the smallest integer
#else
#define TO_INTEGER(type, x) (type)(x)
#endif

#define CAST(name, U, STORE)                                                 \
  kernel void cast_##name(const Layout layout, BUFFER(U, y), BUFFER(T, x)) { \
    USE(U, y);                                                               \
    USE(T, x);                                                               \
    const long i = get_global_id(0);                                         \
    if (i >= layout.count) return;                                           \
    const V v = LOAD(x, place(&layout, i).s0);                               \
    STORE;                                                                   \
  }
CAST(f16, half, vstore_half_rte(odd_float(v), i, y))
CAST(bf16, ushort, y[i] = bf16_bits(odd_float(v)))
CAST(f32, float, y[i] = (float)v)
#ifdef cl_khr_fp64
CAST(f64, double, y[i] = (double)v)
#endif
CAST(i8, char, y[i] = TO_INTEGER(char, v))
CAST(i16, short, y[i] = TO_INTEGER(short, v))
CAST(i32, int, y[i] = TO_INTEGER(int, v))
CAST(i64, long, y[i] = TO_INTEGER(long, v))
CAST(u8, uchar, y[i] = TO_INTEGER(uchar, v))
CAST(u16, ushort, y[i] = TO_INTEGER(ushort, v))
CAST(u32, uint, y[i] = TO_INTEGER(uint, v))
CAST(u64, ulong, y[i] = TO_INTEGER(ulong, v))
CAST(bool, uchar, y[i] = v != 0)
