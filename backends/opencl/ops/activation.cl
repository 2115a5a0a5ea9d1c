// SPDX-License-Identifier: Apache-2.0
// Formulas as in the CUDA backend: each avoids the overflow or the cancellation of the textbook form.
static inline T softplus_of(T x) {
  return (x < 0 ? (T)0 : x) + log1p(exp(-fabs(x)));
}

// x tanh(softplus(x)) = x t / (t + 2), t = n (n + 2), n = exp(x)
static inline T mish_of(T x) {
  if (x > 20) return x;
  if (isinf(x)) return (T)-0.0;
  const T n = exp(x);
  const T t = fma(n, n, 2 * n);
  return x * (t / (t + 2));
}

// x / (1 + exp(-u)); -0 at minus infinity
static inline T gated(T x, T u) {
  if (isinf(x) && x < 0) return (T)-0.0;
  const T e = exp(-u);
  return isinf(e) ? x * sigmoid_of(u) : x / (1 + e);
}

#ifdef T_F64
// x/2 erfc(-x sqrt(1/2)): erf cancels below -3. The argument's rounding error counts tenfold there, so it is carried along: sqrt(1/2) is
// high + low, and erfc'(z) = -2/sqrt(pi) exp(-z^2).
static inline T gelu_of(T x) {
  if (isinf(x)) return x > 0 ? x : -0.0;
  const T high = 0.70710678118654752440, low = -4.833646656726457e-17;
  const T z = -x * high;
  const T rest = fma(-x, high, -z) - x * low;
  return 0.5 * x * (erfc(z) - 1.1283791670955126 * exp(-z * z) * rest);
}
#else
// x Phi(x) with Phi(-a) = exp(-a^2/2) R(a) for a >= 0. R(a) (a + 3) = erfcx(a sqrt(1/2)) (a + 3) / 2 is a polynomial of
// t = (a - 3) / (a + 3): minimax on [0, 15], 2^-24. The errors of a^2 and of its product with log2 e are carried along, because the
// exponential enlarges them up to 112 times. Beyond 15 Phi(-a) is 0.
constant float gelu_coefficients[] = {5.44891664e-05f, 0.000131330336f, -0.000244730152f, -0.00103257375f, 0.00102475402f, 0.00696931127f,
                                      -0.0104625132f,  -0.0472626872f,  0.230017707f,     -0.509332001f,   0.729083717f};
static inline T gelu_of(T x) {
  const float log2_e = 1.44269502f, log2_e_low = 1.92596299e-8f;
  const float bounded = x > 15 ? 15.0f : x < -15 ? -15.0f : x;  // keeps NaN
  const float a = fabs(bounded), half_a = 0.5f * a;
  const float square = a * half_a, square_low = fma(a, half_a, -square);
  const float whole = rint(-square * log2_e);
  const float part = fma(-square_low, log2_e, fma(-square, log2_e_low, fma(-square, log2_e, -whole)));
  const float t = (a - 3) / (a + 3);
  float polynomial = gelu_coefficients[0];
  for (int i = 1; i < 11; ++i) polynomial = fma(polynomial, t, gelu_coefficients[i]);
  const float tail = exp2(part) * (polynomial / (a + 3));
  const float product = bounded * tail * exp2(whole);  // the power of two last: a denormal result is rounded once
  return x > 0 ? x - product : product;
}
#endif

#define ALPHA , const T alpha
MAP_1(op_leaky_relu, T, T, a > 0 ? a : alpha * a, ALPHA)
MAP_1(op_elu, T, T, a > 0 ? a : alpha * expm1(a), ALPHA)
MAP_1(op_softplus, T, T, softplus_of(a))
MAP_1(op_mish, T, T, mish_of(a))
MAP_1(op_silu, T, T, gated(a, a))
MAP_1(op_gelu, T, T, gelu_of(a))
MAP_1(op_gelu_tanh, T, T, gated(a, (T)1.5957691216057308 * (a + (T)0.044715 * a * a * a)))  // 2 sqrt(2/pi)
