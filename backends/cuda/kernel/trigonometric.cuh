// SPDX-License-Identifier: Apache-2.0
// trigonometric.cuh - sine and cosine of large arguments, without the local arrays of CUDA's functions, for which every thread of a kernel
// would have a stack. Below the thresholds from which those take their slow path, the results are theirs. NVRTC compiles this file too.
#pragma once

#include <cmath>

namespace tenon::cuda::functions {

/// An argument modulo pi / 2: r in [-pi/4, pi/4], and the multiple of pi / 2 that was subtracted, modulo 4.
struct Reduced {
  double r;
  int quadrant;
};

/// |x| of at least 2^16; NaN for infinities and NaN. Relative error of r: 2^-52. A template, so that what does not call it has no copy.
///
/// Source  Payne, Hanek: Radian reduction for trigonometric functions (1983).
template <class Double>
__attribute__((noinline)) __device__ Reduced reduced(Double x) {
  // The bits of 2 / pi after 64 zeros.
  static const unsigned long long bits[] = {0x0000000000000000ull, 0xA2F9836E4E441529ull, 0xFC2757D1F534DDC0ull, 0xDB6295993C439041ull,
                                            0xFE5163ABDEBBC561ull, 0xB7246E3A424DD2E0ull, 0x06492EEA09D1921Cull, 0xFE1DEB1CB129A73Eull,
                                            0xE88235F52EBB4484ull, 0xE99C7026B45F7E41ull, 0x3991D639835339F4ull, 0x9C845F8BBDF9283Bull,
                                            0x1FF897FFDE05980Full, 0xEF2F118B5A0A6D1Full, 0x6D367ECF27CB09B7ull, 0x4F463F669E5FEA2Dull,
                                            0x7527BAC7EBE5F17Bull, 0x3D0739F78A5292EAull, 0x6BFB5FB11F8D5D08ull, 0x56033046FC7B6BABull};
  constexpr unsigned long long half_pi = 0xC90FDAA22168C235ull;  // times 2^63
  const auto words = static_cast<unsigned long long>(__double_as_longlong(x));
  const int exponent = static_cast<int>(words >> 52 & 0x7FF) - 1075;
  if (exponent == 0x7FF - 1075) return {x - x, 0};
  const unsigned long long m = (words & 0xFFFFFFFFFFFFFull) | 0x10000000000000ull;  // |x| = m 2^exponent
  // Bits of a weight so large that their product with |x| is a multiple of 4 are left out; 192 bits follow.
  const int first = exponent - 2 + 64, i = first >> 6, shift = first & 63;
  const auto at = [&](int k) { return shift == 0 ? bits[k] : bits[k] << shift | bits[k + 1] >> (64 - shift); };
  const unsigned long long high = at(i), middle = at(i + 1), low = at(i + 2);
  // The product modulo 4: two bits of the quadrant, then the fraction.
  const unsigned long long p0 = m * low, carry0 = __umul64hi(m, low);
  const unsigned long long p1 = m * middle + carry0, carry1 = __umul64hi(m, middle) + (p1 < carry0 ? 1 : 0);
  const unsigned long long p2 = m * high + carry1;
  int quadrant = static_cast<int>(p2 >> 62);
  unsigned long long f1 = p2 << 2 | p1 >> 62, f0 = p1 << 2 | p0 >> 62;
  const bool above = f1 >> 63 != 0;  // the next multiple is nearer
  if (above) {
    quadrant = (quadrant + 1) & 3;
    f0 = 0 - f0;
    f1 = ~f1 + (f0 == 0 ? 1 : 0);
  }
  int zeros = f1 == 0 ? 64 : __clzll(static_cast<long long>(f1));
  if (zeros > 0) f1 = zeros == 64 ? f0 : f1 << zeros | f0 >> (64 - zeros);
  const unsigned long long magnitude = __umul64hi(f1, half_pi);
  const double scale = __longlong_as_double(static_cast<long long>(1023 - 63 - zeros) << 52);
  const double r = static_cast<double>(magnitude) * scale;
  const bool negative = x < 0;
  return {above != negative ? -r : r, negative ? (4 - quadrant) & 3 : quadrant};
}

/// The smallest arguments of CUDA's slow paths.
template <class T>
inline constexpr T large_angle = static_cast<T>(sizeof(T) == 4 ? 105615.0 : 2147483648.0);

/// sin(x + cosine pi / 2)
template <class T>
__device__ T of_large_angle(T x, int cosine) {
  const Reduced at = reduced(static_cast<double>(x));
  const int quadrant = at.quadrant + cosine;
  const T r = static_cast<T>(at.r);
  if (std::abs(r) >= large_angle<T>) return r;  // never: so the compiler leaves out the slow paths
  const T y = (quadrant & 1) != 0 ? std::cos(r) : std::sin(r);
  return (quadrant & 2) != 0 ? -y : y;
}

struct Sin {
  template <class T>
  __device__ T operator()(T x) const {
    return std::abs(x) >= large_angle<T> ? of_large_angle(x, 0) : std::sin(x);
  }
};
struct Cos {
  template <class T>
  __device__ T operator()(T x) const {
    return std::abs(x) >= large_angle<T> ? of_large_angle(x, 1) : std::cos(x);
  }
};

}  // namespace tenon::cuda::functions
