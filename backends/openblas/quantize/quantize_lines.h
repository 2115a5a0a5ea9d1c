// SPDX-License-Identifier: Apache-2.0
// quantize_lines.h - floats as integers of 8 or 16 bits, for one instruction set. A source file includes it after foreach_target.h, as it
// does simd.h.
#if defined(TENON_OPENBLAS_QUANTIZE_LINES_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_QUANTIZE_LINES_H
#undef TENON_OPENBLAS_QUANTIZE_LINES_H
#else
#define TENON_OPENBLAS_QUANTIZE_LINES_H
#endif

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// saturate(round(x / scale) + zero_point), ties to even; 0 for NaN.
template <class Q, class T>
HWY_INLINE Q quantized(T x, T scale, Q zero_point) {
  const T q = std::nearbyint(x / scale) + static_cast<T>(zero_point);
  if (std::isnan(q)) return 0;
  const T low = std::numeric_limits<Q>::lowest(), high = std::numeric_limits<Q>::max();
  return static_cast<Q>(q < low ? low : q > high ? high : q);
}

// Below, scale and zero_point are arrays as long as x, or one element for all.

/// Integers of 32 bits as integers of Q, saturated.
template <class Q, class V>
HWY_INLINE hn::Vec<hn::Rebind<Q, Wide<float>>> narrowed(V integers) {
#if HWY_TARGET == HWY_AVX3  // two operations where Highway has five
  if constexpr (sizeof(V) == 64 && std::is_same_v<Q, std::uint8_t>) {
    return {_mm512_maskz_cvtusepi32_epi8(0xFFFF, _mm512_max_epi32(integers.raw, _mm512_setzero_si512()))};
  } else if constexpr (sizeof(V) == 64 && std::is_same_v<Q, std::int8_t>) {
    return {_mm512_maskz_cvtsepi32_epi8(0xFFFF, integers.raw)};
  }
#endif
  return hn::DemoteTo(hn::Rebind<Q, Wide<float>>(), integers);
}

/// Quantises vectors by one scale and one zero point without a division, which takes as long as all that is done here. The quotient lies
/// between the products with numbers just below and above the reciprocal, and rounding is monotonic, so where both round to one integer
/// the quotient does. A product added to 1.5 * 2^23 is rounded to an integer, which is then in the low bits of the sum. Where that is not
/// so, from quotients of 2^22 on, the two sums differ, or they are positive or infinite and their bits saturate as the quotient does.
template <class Q>
class ReciprocalQuantizer {
  using D = Wide<float>;
  using Whole = hn::RebindToSigned<D>;
  using Narrow = hn::Rebind<Q, D>;
  hn::Vec<D> below_, above_, rounder_;
  hn::Vec<Whole> centre_;

 public:
  /// Whether the reciprocal is a normal number; there is no quantizer for other scales.
  static bool takes(float scale) { return scale > 0x1p-100F && scale < 0x1p100F; }

  HWY_INLINE ReciprocalQuantizer(float scale, Q zero_point) : ReciprocalQuantizer(1 / scale, 0x1p-22F, zero_point) {}
  /// For what lies between the products of v with reciprocal (1 - spread) and reciprocal (1 + spread).
  HWY_INLINE ReciprocalQuantizer(float reciprocal, float spread, Q zero_point) {
    const D d;
    const Whole whole;
    below_ = hn::Set(d, reciprocal * (1 - spread));
    above_ = hn::Set(d, reciprocal * (1 + spread));
    rounder_ = hn::Set(d, 0x1.8p23F);
    centre_ = hn::Sub(hn::Set(whole, static_cast<std::int32_t>(zero_point)), hn::BitCast(whole, rounder_));
  }

  /// The integers of v; false if one of them may be wrong, because there are two candidates or v has a NaN.
  HWY_INLINE bool operator()(hn::Vec<D> v, hn::Vec<Narrow>& out) const {
    const D d;
    // Of a negative v, the product with above_ is the lower one.
    const auto one = hn::MulAdd(v, below_, rounder_), other = hn::MulAdd(v, above_, rounder_);
    out = narrowed<Q>(hn::Add(hn::BitCast(Whole(), one), centre_));
    return hn::AllTrue(d, hn::Eq(one, other));
  }
};

/// The same by a division: any scales, and centres that are the zero points.
template <class Q>
HWY_INLINE hn::Vec<hn::Rebind<Q, Wide<float>>> quantized_by_division(hn::Vec<Wide<float>> v, hn::Vec<Wide<float>> scales,
                                                                     hn::Vec<Wide<float>> centres) {
  const Wide<float> d;
  const auto q = hn::Add(hn::Round(hn::Div(v, scales)), centres);
  const auto saturated = clamp(d, q, std::numeric_limits<Q>::lowest(), std::numeric_limits<Q>::max());
  const auto integers = hn::ConvertTo(hn::RebindToSigned<Wide<float>>(), hn::IfThenZeroElse(hn::IsNaN(q), saturated));
  return hn::DemoteTo(hn::Rebind<Q, Wide<float>>(), integers);
}

// Below, scale and zero_point are arrays as long as x, or one element for all.

/// The beginning of quantize_each for one scale and one zero point; returns the number of elements that are done.
template <class Q>
HWY_INLINE std::int64_t quantize_by_reciprocal(const float* x, float scale, Q zero_point, Q* y, std::int64_t n) {
  const Wide<float> d;
  const hn::Rebind<Q, Wide<float>> narrow;
  if (!ReciprocalQuantizer<Q>::takes(scale)) return 0;
  const ReciprocalQuantizer<Q> quantizer(scale, zero_point);
  std::int64_t i = 0;
  for (; i + lanes(d) <= n; i += lanes(d)) {
    hn::Vec<hn::Rebind<Q, Wide<float>>> integers;
    if (!quantizer(hn::LoadU(d, x + i), integers)) return i;
    hn::StoreU(integers, narrow, y + i);
  }
  return i;
}

/// y[i] = saturate(round(x[i] / scale) + zero_point), ties to even; 0 for NaN.
template <class Q, class T>
void quantize_each(const T* x, const T* scale, const Q* zero_point, bool one_scale, bool one_zero_point, Q* y, std::int64_t n) {
  std::int64_t i = 0;
  if constexpr (std::is_same_v<T, float>) {
    const Wide<float> d;
    const hn::RebindToSigned<Wide<float>> whole;
    const hn::Rebind<Q, Wide<float>> narrow;
    auto scales = hn::Set(d, *scale), centres = hn::Set(d, static_cast<float>(*zero_point));
    for (; i + lanes(d) <= n; i += lanes(d)) {
      if (one_scale && one_zero_point) {
        i += quantize_by_reciprocal(x + i, *scale, *zero_point, y + i, n - i);
        if (i + lanes(d) > n) break;
      }
      if (!one_scale) scales = hn::LoadU(d, scale + i);
      if (!one_zero_point) centres = hn::ConvertTo(d, hn::PromoteTo(whole, hn::LoadU(narrow, zero_point + i)));
      hn::StoreU(quantized_by_division<Q>(hn::LoadU(d, x + i), scales, centres), narrow, y + i);
    }
  }
  for (; i < n; ++i) y[i] = quantized(x[i], scale[one_scale ? 0 : i], zero_point[one_zero_point ? 0 : i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
