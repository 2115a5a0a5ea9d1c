// SPDX-License-Identifier: Apache-2.0
// BLAS level 1: vectors.
#include "blas/elements.cl"

#define PAIRS(name, statement, ...)                                      \
  kernel void name(const long n, VECTOR(x), VECTOR(y) __VA_ARGS__) {     \
    USE(R, x);                                                           \
    USE(R, y);                                                           \
    const long i = get_global_id(0);                                     \
    if (i >= n) return;                                                  \
    const T a = load(x, i * x_step), b = load(y, i * y_step);            \
    statement                                                            \
  }
#define SET_X(value) store(x, i * x_step, value)
#define SET_Y(value) store(y, i * y_step, value)

PAIRS(swap_vectors, { SET_X(b); SET_Y(a); })
PAIRS(copy_vector, { SET_Y(a); })
PAIRS(axpy, { READ(alpha); if (!equals(alpha, 0)) SET_Y(multiply(alpha, a) + b); }, , SCALAR(alpha))
PAIRS(axpby, { READ(alpha); READ(beta); SET_Y(scaled(alpha, a) + scaled(beta, b)); }, , SCALAR(alpha), SCALAR(beta))
PAIRS(rot, {
  READ(c);
  READ(s);
  SET_X(real_of(c) * a + multiply(s, b));
  SET_Y(real_of(c) * b - multiply(conj_if(1, s), a));
}, , SCALAR(c), SCALAR(s))

kernel void scal(const long n, VECTOR(x), SCALAR(alpha)) {
  USE(R, x);
  READ(alpha);
  const long i = get_global_id(0);
  if (i >= n) return;
  const T a = load(x, i * x_step);
  SET_X(alpha_form == REAL ? real_of(alpha) * a : multiply(alpha, a));
}

// Reductions: groups of work-items write `partials`, which one group combines. `gather` adds element i to `own`; JOIN(a, b) combines two.
#define REDUCTION(name, S, zero, JOIN, gather, finish, ...)                            \
  static inline S name##_of_group(S own, local S *all) {                               \
    const uint item = get_local_id(0);                                                 \
    all[item] = own;                                                                   \
    for (uint half_size = GROUP_SIZE / 2; half_size > 0; half_size /= 2) {             \
      barrier(CLK_LOCAL_MEM_FENCE);                                                    \
      if (item < half_size) all[item] = JOIN(all[item], all[item + half_size]);        \
    }                                                                                  \
    return all[0];                                                                     \
  }                                                                                    \
  kernel void name(const long n, VECTOR(x), VECTOR(y), BUFFER(S, partials)) {          \
    local S all[GROUP_SIZE];                                                           \
    USE(R, x);                                                                         \
    USE(R, y);                                                                         \
    USE(S, partials);                                                                  \
    S own = zero;                                                                      \
    for (long i = get_global_id(0); i < n; i += get_global_size(0)) { gather }         \
    own = name##_of_group(own, all);                                                   \
    if (get_local_id(0) == 0) partials[get_group_id(0)] = own;                         \
  }                                                                                    \
  kernel void name##_total(const int count, BUFFER(S, partials), BUFFER(R, result) __VA_ARGS__) { \
    local S all[GROUP_SIZE];                                                           \
    USE(S, partials);                                                                  \
    S own = zero;                                                                      \
    if (get_local_id(0) < count) own = partials[get_local_id(0)];                      \
    own = name##_of_group(own, all);                                                   \
    if (get_local_id(0) == 0) { finish }                                               \
  }
#define PLUS(a, b) ((a) + (b))
#define X load(x, i * x_step)
#define Y load(y, i * y_step)
#define RESULT(type, value) ((global type *)(result_buffer + result_offset))[0] = value

REDUCTION(dotu, T, of_real(0), PLUS, own += multiply(X, Y);, USE(R, result); store(result, 0, own);)
REDUCTION(dotc, T, of_real(0), PLUS, own += multiply(conj_if(1, X), Y);, USE(R, result); store(result, 0, own);)
REDUCTION(asum, R, 0, PLUS, own += size_of(X);, RESULT(R, own);)

#if defined(cl_khr_fp64) && !defined(COMPLEX)
#define WIDE_PRODUCT own += (double)X * (double)Y;
REDUCTION(sdsdot, double, 0, PLUS, WIDE_PRODUCT, READ(alpha); RESULT(R, (R)(own + (double)alpha));, , SCALAR(alpha))
REDUCTION(dsdot, double, 0, PLUS, WIDE_PRODUCT, RESULT(double, own);)
#endif

// sum (x / scale)^2. The scale, a power of two, is near that of the largest number, so that no square overflows, and none that matters
// underflows. Source: Blue: A Portable Fortran Program to Find the Euclidean Norm of a Vector (1978).
typedef struct {
  R scale, sum;
} Norm;
static inline R rescaled(Norm a, R scale) {
  const R ratio = a.scale / scale;
  return isfinite(a.sum) ? a.sum * ratio * ratio : a.sum;
}
static inline Norm joined_norms(Norm a, Norm b) {
  const R scale = fmax(a.scale, b.scale);
  return scale == 0 ? (Norm){0, a.sum + b.sum} : (Norm){scale, rescaled(a, scale) + rescaled(b, scale)};
}
static inline Norm with_square(Norm a, R x) {
  const R size = fabs(x);
  if (size == 0) return a;
  if (isfinite(size) && size >= 2 * a.scale) {
    const R scale = ldexp((R)1, ilogb(size));
    a = (Norm){scale, rescaled(a, scale)};
  }
  const R ratio = isfinite(size) ? size / a.scale : size;
  a.sum += ratio * ratio;
  return a;
}
#ifdef COMPLEX
#define ADD_SQUARES own = with_square(with_square(own, X.x), X.y);
#else
#define ADD_SQUARES own = with_square(own, X);
#endif
REDUCTION(nrm2, Norm, ((Norm){0, 0}), joined_norms, ADD_SQUARES, RESULT(R, own.scale == 0 ? own.sum : own.scale * sqrt(own.sum));)

// The first of the best elements; the sum of its parts may be infinite. NaN is never better than another, and nothing than NaN, so a NaN
// in front counts as the best of all.
typedef struct {
  R size;
  long index;
} Place;
#define EXTREME(name, BEATS, best)                                                                                   \
  static inline Place name##_of_two(Place a, Place b) {                                                              \
    const int takes_b = b.index >= 0 && (a.index < 0 || BEATS(b.size, a.size) || (b.size == a.size && b.index < a.index)); \
    return takes_b ? b : a;                                                                                          \
  }                                                                                                                  \
  REDUCTION(name, Place, ((Place){0, -1}), name##_of_two,                                                            \
    const R size = size_of(X);                                                                                       \
    if (!isnan(size) || i == 0) own = name##_of_two(own, ((Place){isnan(size) ? best : size, i}));                   \
  , RESULT(long, own.index);)
#define GREATER(a, b) ((a) > (b))
#define LESS(a, b) ((a) < (b))
EXTREME(iamax, GREATER, INFINITY)
EXTREME(iamin, LESS, -1)

#ifndef COMPLEX
PAIRS(rotm, {
  USE(R, param);
  const R flag = param[0];
  if (flag == -2) return;
  const R h11 = flag == 0 ? 1 : param[1];
  const R h21 = flag == 1 ? -1 : param[2];
  const R h12 = flag == 1 ? 1 : param[3];
  const R h22 = flag == 0 ? 1 : param[4];
  SET_X(h11 * a + h12 * b);
  SET_Y(h21 * a + h22 * b);
}, , BUFFER(R, param))
#endif

// sqrt(a^2 + b^2), scaled by a power of two.
static inline R hypotenuse(R a, R b) {
  const R largest = fmax(fabs(a), fabs(b));
  if (largest == 0 || !isfinite(largest)) return largest;
  const int exponent = ilogb(largest);
  const R x = ldexp(a, -exponent), y = ldexp(b, -exponent);
  return ldexp(sqrt(x * x + y * y), exponent);
}

// The formulas of rotg and rotmg are those of backends/reference/blas/level1.cpp, which names the sources.
kernel void rotg(BUFFER(R, a), BUFFER(R, b), BUFFER(R, c), BUFFER(R, s)) {
  USE(R, a);
  USE(R, b);
  USE(R, c);
  USE(R, s);
  const T x = load(a, 0), y = load(b, 0);
#ifdef COMPLEX
  if (equals(y, 0)) {
    c[0] = 1;
    store(s, 0, of_real(0));
    return;
  }
  // Everything in units of the larger number; what underflows there is negligible.
  const R x_size = hypotenuse(x.x, x.y), largest = fmax(fmax(fabs(x.x), fabs(x.y)), fmax(fabs(y.x), fabs(y.y)));
  const int exponent = ilogb(largest), own = x_size == 0 ? 0 : ilogb(fmax(fabs(x.x), fabs(x.y)));
  const T x_scaled = (T)(ldexp(x.x, -own), ldexp(x.y, -own)), y_scaled = (T)(ldexp(y.x, -exponent), ldexp(y.y, -exponent));
  const R x_length = hypotenuse(x_scaled.x, x_scaled.y), x_unit = ldexp(x_length, own - exponent);
  const T sign = x_size == 0 ? of_real(1) : x_scaled / x_length;
  const R h = hypotenuse(x_unit, hypotenuse(y_scaled.x, y_scaled.y));
  c[0] = x_size == 0 ? 0 : x_unit / h;
  store(s, 0, multiply(sign, conj_if(1, y_scaled)) / h);
  const T r = sign * h;
  store(a, 0, (T)(ldexp(r.x, exponent), ldexp(r.y, exponent)));
#else
  if (y == 0) {
    c[0] = 1;
    s[0] = b[0] = 0;
  } else if (x == 0) {
    c[0] = 0;
    s[0] = b[0] = 1;
    a[0] = y;
  } else {
    // Of scaled numbers, so that c and s do not lose digits to an r that overflows or is subnormal.
    const int exponent = ilogb(fmax(fabs(x), fabs(y))), x_is_larger = fabs(x) > fabs(y);
    const R x_scaled = ldexp(x, -exponent), y_scaled = ldexp(y, -exponent);
    const R r = copysign(hypotenuse(x_scaled, y_scaled), x_is_larger ? x : y);
    const R cosine = x_scaled / r, sine = y_scaled / r;
    a[0] = ldexp(r, exponent);
    c[0] = cosine;
    s[0] = sine;
    b[0] = x_is_larger ? sine : cosine != 0 ? 1 / cosine : 1;
  }
#endif
}

#ifndef COMPLEX
// d by gam^2, gam = 4096, and its row of H by 1 / gam, or the reverse, until d is in range; then all of H is written.
static void rescale(R *d, R *h_first, R *h_second, R *x, R *flag, R *h) {
  const R gam = 4096, gam_squared = gam * gam, reciprocal = (R)5.9604645e-8f;
  while (*d != 0 && isfinite(*d) && (fabs(*d) <= reciprocal || fabs(*d) >= gam_squared)) {
    if (*flag == 0) h[0] = h[3] = 1;
    if (*flag == 1) {
      h[1] = -1;
      h[2] = 1;
    }
    *flag = -1;
    const int is_small = fabs(*d) <= reciprocal;
    const R factor = is_small ? 1 / gam : gam;
    *d = is_small ? *d * gam_squared : *d / gam_squared;
    *h_first *= factor;
    *h_second *= factor;
    *x *= factor;
  }
}

kernel void rotmg(BUFFER(R, d1), BUFFER(R, d2), BUFFER(R, x1), BUFFER(R, y1), BUFFER(R, param)) {
#pragma OPENCL FP_CONTRACT OFF  // branches that depend on rounding are part of the result
  USE(R, d1);
  USE(R, d2);
  USE(R, x1);
  USE(R, y1);
  USE(R, param);
  R first = d1[0], second = d2[0], x = x1[0], flag = -1, h[4] = {0, 0, 0, 0}, unused = 0;  // h11, h21, h12, h22
  const R y = y1[0], p1 = first * x, p2 = second * y, q1 = p1 * x, q2 = p2 * y;
  int is_rotation = !(first < 0);
  if (is_rotation && p2 == 0) {
    param[0] = -2;
    return;
  }
  if (is_rotation && fabs(q1) > fabs(q2)) {
    h[1] = -y / x;
    h[2] = p2 / p1;
    const R u = 1 - h[2] * h[1];
    is_rotation = u > 0;
    if (is_rotation) {
      flag = 0;
      first /= u;
      second /= u;
      x *= u;
    }
  } else if (is_rotation) {
    is_rotation = !(q2 < 0);
    if (is_rotation) {
      flag = 1;
      h[0] = p1 / p2;
      h[3] = x / y;
      const R u = 1 + h[0] * h[3], former = first;
      first = second / u;
      second = former / u;
      x = y * u;
    }
  }
  if (!is_rotation) h[1] = h[2] = first = second = x = 0;
  rescale(&first, &h[0], &h[2], &x, &flag, h);
  rescale(&second, &h[1], &h[3], &unused, &flag, h);
  d1[0] = first;
  d2[0] = second;
  x1[0] = x;
  param[0] = flag;
  for (int k = 0; k < 4; ++k) {
    const int implied = k == 0 || k == 3 ? flag == 0 : flag == 1;
    if (!implied) param[k + 1] = h[k];
  }
}
#endif
