// SPDX-License-Identifier: Apache-2.0
// functions.cuh - elementwise ops as function objects, shared by single-op kernels (ops/) and fused programs (elementwise/). f16 and bf16
// arrive as f32. NVRTC compiles this file too, with the few declarations of std that elementwise/program_source.cpp gives it.
//
// Accuracy  f32: that of CUDA's functions (4 ulp or better); silu, mish and softplus add the rounding errors of their formulas; gelu
// says its own.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernel/trigonometric.cuh"

namespace tenon::cuda::functions {

template <class T>
using Unsigned = std::make_unsigned_t<T>;

template <class T>
__device__ T negated(T x) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(Unsigned<T>{0} - static_cast<Unsigned<T>>(x));
  } else {
    return -x;
  }
}

// ---------------------------------------------------------------- two operands

/// Integers wrap.
#define TENON_WRAPPING(Name, sign)                                                           \
  struct Name {                                                                              \
    template <class T>                                                                       \
    __device__ T operator()(T a, T b) const {                                                \
      if constexpr (std::is_integral_v<T>) {                                                 \
        return static_cast<T>(static_cast<Unsigned<T>>(a) sign static_cast<Unsigned<T>>(b)); \
      } else {                                                                               \
        return a sign b;                                                                     \
      }                                                                                      \
    }                                                                                        \
  };
TENON_WRAPPING(Add, +)
TENON_WRAPPING(Sub, -)
TENON_WRAPPING(Mul, *)
#undef TENON_WRAPPING

struct Div {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a / b;
  }
};
struct Pow {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return std::pow(a, b);
  }
};
/// NaN wins; the first of equals.
struct Max {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a != a ? a : b != b ? b : b > a ? b : a;
  }
};
struct Min {
  template <class T>
  __device__ T operator()(T a, T b) const {
    return a != a ? a : b != b ? b : b < a ? b : a;
  }
};
struct Equal {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a == b;
  }
};
struct Less {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a < b;
  }
};
struct LessOrEqual {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a <= b;
  }
};
struct Greater {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a > b;
  }
};
struct GreaterOrEqual {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a >= b;
  }
};
/// Bool, or 0 and 1 of a fused program.
struct And {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a != T(0) && b != T(0);
  }
};
struct Or {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return a != T(0) || b != T(0);
  }
};
struct Xor {
  template <class T>
  __device__ bool operator()(T a, T b) const {
    return (a != T(0)) != (b != T(0));
  }
};
struct ReluGrad {
  template <class T>
  __device__ T operator()(T dy, T y) const {
    return y > 0 ? dy : y != y ? y : T(0);
  }
};
struct SigmoidGrad {
  template <class T>
  __device__ T operator()(T dy, T y) const {
    return dy * y * (1 - y);
  }
};
struct TanhGrad {
  template <class T>
  __device__ T operator()(T dy, T y) const {
    return dy * ((1 - y) * (1 + y));
  }
};
struct Where {
  template <class T>
  __device__ T operator()(bool condition, T a, T b) const {
    return condition ? a : b;
  }
};

// ---------------------------------------------------------------- one operand

struct Not {
  template <class T>
  __device__ bool operator()(T x) const {
    return x == T(0);
  }
};
struct IsNaN {
  template <class T>
  __device__ bool operator()(T x) const {
    return x != x;
  }
};
struct IsInf {
  template <class T>
  __device__ bool operator()(T x) const {
    return std::isinf(x);
  }
};
struct Neg {
  template <class T>
  __device__ T operator()(T x) const {
    return negated(x);
  }
};
/// relu(NaN) is NaN, relu(-0) is 0.
struct Relu {
  template <class T>
  __device__ T operator()(T x) const {
    return x <= 0 ? T(0) : x;
  }
};
struct Sigmoid {
  template <class T>
  __device__ T operator()(T x) const {
    const T e = std::exp(-std::abs(x));  // this exponent cannot overflow
    return (x < 0 ? e : T(1)) / (1 + e);
  }
};
struct Tanh {
  template <class T>
  __device__ T operator()(T x) const {
    return std::tanh(x);
  }
};
struct Abs {
  template <class T>
  __device__ T operator()(T x) const {
    if constexpr (std::is_integral_v<T>) {
      return x < 0 ? negated(x) : x;
    } else {
      return std::abs(x);
    }
  }
};
struct Sign {
  template <class T>
  __device__ T operator()(T x) const {
    return x > 0 ? T(1) : x < 0 ? T(-1) : x;
  }
};
struct Ceil {
  template <class T>
  __device__ T operator()(T x) const {
    return std::ceil(x);
  }
};
struct Floor {
  template <class T>
  __device__ T operator()(T x) const {
    return std::floor(x);
  }
};
/// Ties to even.
struct Round {
  template <class T>
  __device__ T operator()(T x) const {
    return std::nearbyint(x);
  }
};
struct Sqrt {
  template <class T>
  __device__ T operator()(T x) const {
    return std::sqrt(x);
  }
};
struct Rsqrt {
  template <class T>
  __device__ T operator()(T x) const {
    return 1 / std::sqrt(x);
  }
};
struct Reciprocal {
  template <class T>
  __device__ T operator()(T x) const {
    return 1 / x;
  }
};
/// NaN stays; low > high gives high.
template <class T>
struct Clip {
  T low, high;
  __device__ T operator()(T x) const {
    const T raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};
struct Exp {
  template <class T>
  __device__ T operator()(T x) const {
    return std::exp(x);
  }
};
struct Expm1 {
  template <class T>
  __device__ T operator()(T x) const {
    return std::expm1(x);
  }
};
struct Log {
  template <class T>
  __device__ T operator()(T x) const {
    return std::log(x);
  }
};
struct Log2 {
  template <class T>
  __device__ T operator()(T x) const {
    return std::log2(x);
  }
};
struct Log1p {
  template <class T>
  __device__ T operator()(T x) const {
    return std::log1p(x);
  }
};
struct Erf {
  template <class T>
  __device__ T operator()(T x) const {
    return std::erf(x);
  }
};
struct Atan {
  template <class T>
  __device__ T operator()(T x) const {
    return std::atan(x);
  }
};
template <class T>
struct LeakyRelu {
  T alpha;
  __device__ T operator()(T x) const { return x > 0 ? x : alpha * x; }
};
template <class T>
struct Elu {
  T alpha;
  __device__ T operator()(T x) const { return x > 0 ? x : alpha * std::expm1(x); }
};
struct Softplus {
  template <class T>
  __device__ T operator()(T x) const {
    return (x < 0 ? T(0) : x) + std::log1p(std::exp(-std::abs(x)));
  }
};
/// x tanh(softplus(x)) = x t / (t + 2), t = n (n + 2), n = exp(x)
struct Mish {
  template <class T>
  __device__ T operator()(T x) const {
    if (x > 20) return x;
    if (std::isinf(x)) return T(-0.0);
    const T n = std::exp(x);
    const T t = std::fma(n, n, 2 * n);
    return x * (t / (t + 2));
  }
};
/// x / (1 + exp(-u)): one rounding fewer than x times the sigmoid, which stands in where the exponential overflows; -0 at minus infinity
template <class T>
__device__ T gated(T x, T u) {
  if (std::isinf(x) && x < 0) return T(-0.0);
  const T e = std::exp(-u);
  return std::isinf(e) ? x * Sigmoid{}(u) : x / (1 + e);
}
struct Silu {
  template <class T>
  __device__ T operator()(T x) const {
    return gated(x, x);
  }
};
/// 2^x and 1/x by one instruction of the GPU: 2 ulp and 1 ulp. x is not denormal, and for the reciprocal its result is not.
__device__ inline float exp2_approximate(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("ex2.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return std::exp2(x);
#endif
}
__device__ inline float reciprocal_approximate(float x) {
#ifdef __CUDA_ARCH__
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
#else
  return 1 / x;
#endif
}

/// x Phi(x) in f32, with Phi(-a) = exp(-a^2/2) R(a) for a >= 0. 5.8 ulp at most, over all x whose result is normal.
/// R(a) (a + 3) = erfcx(a sqrt(1/2)) (a + 3) / 2 is a polynomial of t = (a - 3) / (a + 3): minimax on [0, 15], 2^-24 with these rounded
/// coefficients. The errors of a^2 and of its product with log2 e are carried along, because the exponential enlarges them up to 112 times.
/// Beyond 15 Phi(-a) is 0.
__device__ inline float gelu_f32(float x) {
  constexpr float coefficients[] = {5.44891664e-05f, 0.000131330336f, -0.000244730152f, -0.00103257375f, 0.00102475402f, 0.00696931127f,
                                    -0.0104625132f,  -0.0472626872f,  0.230017707f,     -0.509332001f,   0.729083717f};
  constexpr float log2_e = 1.44269502f, log2_e_low = 1.92596299e-8f;
  const float bounded = x > 15 ? 15.0f : x < -15 ? -15.0f : x;  // keeps NaN
  const float a = std::abs(bounded);
  const float half = 0.5f * a;
  const float square = a * half, square_low = std::fma(a, half, -square);
  const float whole = std::nearbyint(-square * log2_e);
  const float part = std::fma(-square_low, log2_e, std::fma(-square, log2_e_low, std::fma(-square, log2_e, -whole)));
  const float divisor = a + 3;
  const float estimate = reciprocal_approximate(divisor);
  const float quotient = std::fma(estimate, std::fma(-divisor, estimate, 1.0f), estimate);
  const float t = (a - 3) * quotient;
  float polynomial = coefficients[0];
#pragma unroll
  for (int i = 1; i < 11; ++i) polynomial = std::fma(polynomial, t, coefficients[i]);
  const float tail = exp2_approximate(part) * (polynomial * quotient);
  const float product = bounded * tail * exp2_approximate(whole);  // the power of two last: a denormal result is rounded once
  return x > 0 ? x - product : product;
}
struct Gelu {
  /// In f64 x/2 erfc(-x sqrt(1/2)): erf cancels below -3. The argument's rounding error counts tenfold there, so it is carried along:
  /// sqrt(1/2) is high + low, and erfc'(z) = -2/sqrt(pi) exp(-z^2).
  template <class T>
  __device__ T operator()(T x) const {
    if constexpr (sizeof(T) == 4) {
      return gelu_f32(x);
    } else {
      if (std::isinf(x)) return x > 0 ? x : T(-0.0);
      constexpr T high = 0.70710678118654752440, low = -4.833646656726457e-17;
      const T z = -x * high;
      const T rest = std::fma(-x, high, -z) - x * low;
      return T(0.5) * x * (std::erfc(z) - T(1.1283791670955126) * std::exp(-z * z) * rest);
    }
  }
};
struct GeluTanh {
  template <class T>
  __device__ T operator()(T x) const {
    return gated(x, T(1.5957691216057308) * (x + T(0.044715) * x * x * x));  // 2 sqrt(2/pi)
  }
};

}  // namespace tenon::cuda::functions
