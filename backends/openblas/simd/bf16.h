// SPDX-License-Identifier: Apache-2.0
// bf16.h - vectors of f32 from and to memory of bf16, for kernels that compute in f32 and are templates over the type that they store. A
// source file includes it after foreach_target.h, as it does simd.h.
#if defined(TENON_OPENBLAS_BF16_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_BF16_H
#undef TENON_OPENBLAS_BF16_H
#else
#define TENON_OPENBLAS_BF16_H
#endif

#include <tenon/sdk/kernel.h>

#include "gemm/product_types.h"
#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// The type that kernels compute in.
template <class T>
using Computed = SumOf<T>;

using Floats = Wide<float>;
using Bits16 = hn::Rebind<std::uint16_t, Floats>;

/// The floats of a vector of bf16. Exact.
HWY_INLINE hn::Vec<Floats> from_bf16(hn::Vec<Bits16> bits) {
  const hn::RebindToUnsigned<Floats> words;
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
}

/// Rounds to the nearest bf16, ties to even; NaN to a quiet NaN of the same sign.
HWY_INLINE hn::Vec<Bits16> to_bf16(hn::Vec<Floats> v) {
  const hn::RebindToUnsigned<Floats> bits;
  const hn::RebindToSigned<Floats> whole;
  const auto pattern = hn::BitCast(bits, v);
  const auto upper = hn::ShiftRight<16>(pattern);
  const auto odd = hn::And(upper, hn::Set(bits, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(pattern, hn::Add(odd, hn::Set(bits, 0x7fffu))));
  const auto quiet = hn::Or(hn::And(upper, hn::Set(bits, 0x8000u)), hn::Set(bits, 0x7fc0u));
  const auto result = hn::IfThenElse(hn::RebindMask(bits, hn::IsNaN(v)), quiet, rounded);
  return hn::DemoteTo(Bits16(), hn::BitCast(whole, result));
}

// Loads and stores of whole vectors, and of the first n lanes, 0 < n < lanes, of the type that a kernel stores: T itself, or bf16 for f32.

template <class T>
HWY_INLINE hn::Vec<Wide<T>> load_stored(Wide<T> d, const T* p) {
  return hn::LoadU(d, p);
}
HWY_INLINE hn::Vec<Floats> load_stored(Floats, const sdk::BFloat16* p) {
  return from_bf16(hn::LoadU(Bits16(), reinterpret_cast<const std::uint16_t*>(p)));
}

template <class T>
HWY_INLINE hn::Vec<Wide<T>> load_stored_first(Wide<T> d, const T* p, std::int64_t n) {
  return load_first(d, p, n);
}
HWY_INLINE hn::Vec<Floats> load_stored_first(Floats, const sdk::BFloat16* p, std::int64_t n) {
  HWY_ALIGN std::uint16_t buffer[HWY_MAX_BYTES / sizeof(float)] = {};
  std::memcpy(buffer, p, static_cast<std::size_t>(n) * sizeof *p);
  return from_bf16(hn::Load(Bits16(), buffer));
}

template <class T>
HWY_INLINE void store_rounded(hn::Vec<Wide<T>> v, Wide<T> d, T* p) {
  hn::StoreU(v, d, p);
}
HWY_INLINE void store_rounded(hn::Vec<Floats> v, Floats, sdk::BFloat16* p) {
  hn::StoreU(to_bf16(v), Bits16(), reinterpret_cast<std::uint16_t*>(p));
}

template <class T>
HWY_INLINE void store_rounded_first(hn::Vec<Wide<T>> v, Wide<T> d, T* p, std::int64_t n) {
  store_first(v, d, p, n);
}
HWY_INLINE void store_rounded_first(hn::Vec<Floats> v, Floats, sdk::BFloat16* p, std::int64_t n) {
  HWY_ALIGN std::uint16_t buffer[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(to_bf16(v), Bits16(), buffer);
  std::memcpy(p, buffer, static_cast<std::size_t>(n) * sizeof *p);
}

// load and store of partial_vectors.h: min(n, lanes) elements.
HWY_INLINE hn::Vec<Floats> load(Floats d, const sdk::BFloat16* p, std::int64_t n) {
  return n < lanes(d) ? load_stored_first(d, p, n) : load_stored(d, p);
}
HWY_INLINE void store(hn::Vec<Floats> v, Floats d, sdk::BFloat16* p, std::int64_t n) {
  if (n < lanes(d)) {
    store_rounded_first(v, d, p, n);
  } else {
    store_rounded(v, d, p);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
