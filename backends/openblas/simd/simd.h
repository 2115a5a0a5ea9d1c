// SPDX-License-Identifier: Apache-2.0
// simd.h - vector loops and functions for one instruction set, in tenon::openblas::HWY_NAMESPACE. A source file includes it after
// foreach_target.h, which compiles that file once per instruction set; the guard admits one inclusion per pass.
#if defined(TENON_OPENBLAS_SIMD_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_SIMD_H
#undef TENON_OPENBLAS_SIMD_H
#else
#define TENON_OPENBLAS_SIMD_H
#endif

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

/// A full vector of T.
template <class T>
using Wide = hn::ScalableTag<T>;

template <class D>
HWY_INLINE std::int64_t lanes(D d) {
  return static_cast<std::int64_t>(hn::Lanes(d));
}

// AVX2 and AVX-512 have masked loads and stores, which do not touch the memory of inactive lanes: AVX2 of elements of 4 and 8 bytes.
#define TENON_MASKED_MEMORY (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)
template <class T>
inline constexpr bool masked_memory = HWY_TARGET == HWY_AVX3 || (HWY_TARGET == HWY_AVX2 && sizeof(T) >= 4);

/// Loads the first n elements at p, 0 < n < lanes; the other lanes hold `fill`.
template <class D>
HWY_INLINE hn::Vec<D> load_first(D d, const hn::TFromD<D>* p, std::int64_t n, hn::TFromD<D> fill = 0) {
  if constexpr (masked_memory<hn::TFromD<D>>) {
    const auto mask = hn::FirstN(d, static_cast<std::size_t>(n));
    return hn::IfThenElse(mask, hn::MaskedLoad(mask, d, p), hn::Set(d, fill));
  } else {
    HWY_ALIGN hn::TFromD<D> buffer[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
    hn::Store(hn::Set(d, fill), d, buffer);
    std::memcpy(buffer, p, static_cast<std::size_t>(n) * sizeof *p);
    return hn::Load(d, buffer);
  }
}

/// Stores the first n lanes, 0 < n < lanes.
template <class D>
HWY_INLINE void store_first(hn::Vec<D> v, D d, hn::TFromD<D>* p, std::int64_t n) {
  if constexpr (masked_memory<hn::TFromD<D>>) {
    hn::BlendedStore(v, hn::FirstN(d, static_cast<std::size_t>(n)), d, p);
  } else {
    HWY_ALIGN hn::TFromD<D> buffer[HWY_MAX_BYTES / sizeof(hn::TFromD<D>)];
    hn::Store(v, d, buffer);
    std::memcpy(p, buffer, static_cast<std::size_t>(n) * sizeof *p);
  }
}

/// y[i] = f(x[i]); y may be x. For integers f maps numbers instead of vectors, in a plain loop that the compiler vectorises.
template <class T, class F>
HWY_INLINE void map(const F& f, const T* x, T* y, std::int64_t n) {
  if constexpr (std::is_integral_v<T>) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(x[i]);
  } else {
    const Wide<T> d;
    std::int64_t i = 0;
    for (; i + lanes(d) <= n; i += lanes(d)) hn::StoreU(f(d, hn::LoadU(d, x + i)), d, y + i);
    if (i < n) store_first(f(d, load_first(d, x + i, n - i)), d, y + i, n - i);
  }
}

/// map() for a function object without state, as a function for TENON_DISPATCH.
template <class F, class T>
void map_all(const T* x, T* y, std::int64_t n) {
  map(F{}, x, y, n);
}

/// y[i] = f(a[i], b[i]), likewise; y may be a or b.
template <class T, class F>
HWY_INLINE void map(const F& f, const T* a, const T* b, T* y, std::int64_t n) {
  if constexpr (std::is_integral_v<T>) {
    for (std::int64_t i = 0; i < n; ++i) y[i] = f(a[i], b[i]);
  } else {
    const Wide<T> d;
    std::int64_t i = 0;
    for (; i + lanes(d) <= n; i += lanes(d)) hn::StoreU(f(d, hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, y + i);
    if (i < n) store_first(f(d, load_first(d, a + i, n - i), load_first(d, b + i, n - i)), d, y + i, n - i);
  }
}

/// 1 / b for |b| in [2^-100, 2^100], within 1 ulp. AVX-512 divides 16 lanes of f32 in 16 cycles; a reciprocal of 14 bits and a step of
/// Newton's iteration take 3 instructions of a cycle or less.
template <class D, class V>
HWY_INLINE V reciprocal(D d, V b) {
  const V one = hn::Set(d, 1);
  if constexpr (HWY_TARGET == HWY_AVX3 && sizeof(hn::TFromD<D>) == 4) {
    const V approximate = hn::ApproximateReciprocal(b);
    return hn::MulAdd(hn::NegMulAdd(approximate, b, one), approximate, approximate);
  } else {
    return hn::Div(one, b);
  }
}
/// a / b likewise, a finite, within 0.6 ulp: the remainder is divided as well.
template <class D, class V>
HWY_INLINE V quotient(D d, V a, V b) {
  if constexpr (HWY_TARGET == HWY_AVX3 && sizeof(hn::TFromD<D>) == 4) {
    const V r = reciprocal(d, b), q = hn::Mul(a, r);
    return hn::MulAdd(hn::NegMulAdd(q, b, a), r, q);
  } else {
    return hn::Div(a, b);
  }
}

/// c[0] + c[1] x + ..., by Estrin's scheme, whose chain of operations is half as long as that of Horner's rule; x2 is x^2.
template <class D, class V>
HWY_INLINE V estrin(D d, V x, V x2, const float (&c)[4]) {
  const V low = hn::MulAdd(hn::Set(d, c[1]), x, hn::Set(d, c[0]));
  return hn::MulAdd(hn::MulAdd(hn::Set(d, c[3]), x, hn::Set(d, c[2])), x2, low);
}
template <class D, class V>
HWY_INLINE V estrin(D d, V x, V x2, const float (&c)[5]) {
  const V low = hn::MulAdd(hn::Set(d, c[1]), x, hn::Set(d, c[0]));
  const V high = hn::MulAdd(hn::Set(d, c[4]), x2, hn::MulAdd(hn::Set(d, c[3]), x, hn::Set(d, c[2])));
  return hn::MulAdd(high, x2, low);
}
template <class D, class V>
HWY_INLINE V estrin(D d, V x, V x2, const float (&c)[6]) {
  const V low = hn::MulAdd(hn::Set(d, c[1]), x, hn::Set(d, c[0]));
  const V middle = hn::MulAdd(hn::Set(d, c[3]), x, hn::Set(d, c[2]));
  const V high = hn::MulAdd(hn::Set(d, c[5]), x, hn::Set(d, c[4]));
  return hn::MulAdd(hn::MulAdd(high, x2, middle), x2, low);
}
template <class D, class V>
HWY_INLINE V estrin(D d, V x, V x2, const float (&c)[8]) {
  const V x4 = hn::Mul(x2, x2);
  const V c01 = hn::MulAdd(hn::Set(d, c[1]), x, hn::Set(d, c[0])), c23 = hn::MulAdd(hn::Set(d, c[3]), x, hn::Set(d, c[2]));
  const V c45 = hn::MulAdd(hn::Set(d, c[5]), x, hn::Set(d, c[4])), c67 = hn::MulAdd(hn::Set(d, c[7]), x, hn::Set(d, c[6]));
  return hn::MulAdd(hn::MulAdd(c67, x2, c45), x4, hn::MulAdd(c23, x2, c01));
}
/// x clamped to [low, high]. NaN becomes one of the bounds or stays NaN, depending on the target.
template <class D, class V>
HWY_INLINE V clamp(D d, V x, double low, double high) {
  using T = hn::TFromD<D>;
  return hn::Max(hn::Min(x, hn::Set(d, static_cast<T>(high))), hn::Set(d, static_cast<T>(low)));
}

/// e^x within 1 ulp for every x, with 0 and infinity beyond the range of T, NaN for NaN. Highway's Exp needs x < 104, turns NaN into 0 and,
/// on the scalar target, converts x to an integer without a range check.
template <class D, class V>
HWY_INLINE V exp_of(D d, V x) {
  constexpr bool narrow = sizeof(hn::TFromD<D>) == 4;
  const V y = hn::Exp(d, clamp(d, x, narrow ? -110.0 : -1010.0, narrow ? 90.0 : 710.0));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

/// max(bound, x); NaN if x is NaN.
template <class D, class V>
HWY_INLINE V raised_to(D d, V x, hn::TFromD<D> bound) {
  const V low = hn::Set(d, bound);
#if HWY_TARGET == HWY_AVX3
  return hn::Max(low, x);  // of vmaxps, which returns its second operand if one is NaN
#else
  return hn::IfThenElse(hn::Lt(x, low), low, x);
#endif
}

/// e^x for -110 <= x <= 0, NaN for NaN: f32 within 1 ulp.
template <class D, class V>
HWY_INLINE V exp_of_negative_f32(D d, V x) {
  // (e^r - 1) / r on [-log(2)/2, log(2)/2], error 1.1e-8 (chebyfit); log 2 in two parts
  constexpr float series[] = {1.000000011f, 0.5000000013f, 0.1666650526f, 0.04166646501f, 0.008369148491f, 0.001393364103f};
  const V to_whole = hn::Set(d, 12582912.0f);  // 1.5 * 2^23
  const V shifted = hn::MulAdd(x, hn::Set(d, 1.44269504f), to_whole);
  const V n = hn::Sub(shifted, to_whole);
  const V r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x));
  const V y = hn::MulAdd(r, estrin(d, r, hn::Mul(r, r), series), hn::Set(d, 1));
#if HWY_TARGET == HWY_AVX3
  if constexpr (sizeof(V) == 64) return V{_mm512_maskz_scalef_ps(0xFFFF, y.raw, n.raw)};  // GCC warns of the form without a mask
#endif
  // 2^n as two factors, because it may be subnormal
  const hn::RebindToSigned<D> bits;
  const auto exponent = hn::Sub(hn::BitCast(bits, shifted), hn::Set(bits, 0x4B400000));
  const auto half = hn::ShiftRight<1>(exponent);
  const V low = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(half, hn::Set(bits, 127))));
  const V high = hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(hn::Sub(exponent, half), hn::Set(bits, 127))));
  return hn::Mul(hn::Mul(y, low), high);
}

/// -|x|, but not below -110, where e^x is 0 in f32; NaN for NaN.
template <class D, class V>
HWY_INLINE V minus_magnitude_f32(D d, V x) {
  return raised_to(d, hn::Or(x, hn::Set(d, -0.0f)), -110.0f);
}

/// e^-|x|, NaN for NaN: within 1 ulp in f32, exp_of(-|x|) in f64. The argument is bounded on one side, so it costs less than exp_of.
template <class D, class V>
HWY_INLINE V exp_of_minus_magnitude(D d, V x) {
  if constexpr (sizeof(hn::TFromD<D>) == 8) {
    return exp_of(d, hn::Neg(hn::Abs(x)));
  } else {
    return exp_of_negative_f32(d, minus_magnitude_f32(d, x));
  }
}

struct Identity {
  template <class D, class V>
  HWY_INLINE V operator()(D, V x) const {
    return x;
  }
};

/// max(0, x); NaN for NaN.
struct Relu {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenZeroElse(hn::Lt(x, hn::Zero(d)), x);
  }
};

/// 1 / (1 + e^-x), in a form whose exponential never overflows and which keeps small results precise.
struct Sigmoid {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    const V one = hn::Set(d, 1);
    const V z = exp_of_minus_magnitude(d, x);
    const V top = hn::IfThenElse(hn::Lt(x, hn::Zero(d)), z, one);
    return quotient(d, top, hn::Add(one, z));
  }
};

/// tanh x within 3 ulp. Beyond |x| = 20 it rounds to 1, in f64 too.
struct Tanh {
  template <class D, class V>
  HWY_INLINE V operator()(D d, V x) const {
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(d, clamp(d, x, -20.0, 20.0)));
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
