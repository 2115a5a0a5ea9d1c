// SPDX-License-Identifier: Apache-2.0
// normal_tail.h - the tail of the normal distribution near 0 from a table in registers, for AVX-512. A source file includes it after
// foreach_target.h, as it does simd.h.
#if defined(TENON_OPENBLAS_NORMAL_TAIL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_NORMAL_TAIL_H
#undef TENON_OPENBLAS_NORMAL_TAIL_H
#else
#define TENON_OPENBLAS_NORMAL_TAIL_H
#endif

#include "simd/simd.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// Where normal_tail_near() is precise: 0 <= t <= this.
constexpr float normal_tail_near_end = 4.875f;

/// Q(t) = erfc(t / sqrt 2) / 2 for 0 <= t <= normal_tail_near_end, within 1.4 epsilon of f32 relative to Q. Beyond, and for NaN, the result
/// is unspecified.
///
/// A polynomial of degree 5 around the nearest of 32 points, whose coefficients one instruction selects from two registers: AVX-512 has
/// half as many operations to do as with an exponential. They interpolate Q at Chebyshev nodes of the interval (mpmath, 200 bits), which
/// makes the error proportional to Q: 1.2e-7 at the far end, 2.7e-8 at t = 3.
template <class D, class V>
HWY_INLINE V normal_tail_near(D d, V t) {
  static_assert(sizeof(V) == 64);
  constexpr float width = 0.15625f, to_whole = 12582912.0f;  // 1.5 * 2^23: adding it leaves an integer in the lowest bits
  // clang-format off
  HWY_ALIGN static constexpr float coefficients[6][32] = {
    {0.5f, 0.437917978f, 0.377330273f, 0.319624186f, 0.265985519f, 0.217327729f, 0.174250707f, 0.137032315f, 0.105649777f,
     0.0798249543f, 0.0590851232f, 0.0428299531f, 0.0303963609f, 0.0211148206f, 0.014353022f, 0.00954548176f, 0.00620966544f,
     0.00395075046f, 0.00245790114f, 0.00149506878f, 0.000889025279f, 0.000516740489f, 0.000293555349f, 0.000162976299f,
     8.84172841e-05f, 4.68697654e-05f, 2.42749738e-05f, 1.22830243e-05f, 6.07162428e-06f, 2.93178505e-06f, 1.38281359e-06f,
     6.37056189e-07f},
    {-0.398942292f, -0.394101977f, -0.379930615f, -0.357434988f, -0.328160971f, -0.294018f, -0.257073909f, -0.219350785f,
     -0.182649091f, -0.14842017f, -0.117697008f, -0.0910825282f, -0.0687862784f, -0.050695058f, -0.0364608318f, -0.0255908463f,
     -0.0175283011f, -0.0117163435f, -0.00764260581f, -0.0048650573f, -0.00302225794f, -0.0018321973f, -0.00108395203f,
     -0.000625813555f, -0.000352595671f, -0.000193867992f, -0.000104023718f, -5.44697905e-05f, -2.7834034e-05f, -1.38801361e-05f,
     -6.75473621e-06f, -3.20789513e-06f},
    {-4.12375689e-09f, 0.0307891909f, 0.0593641102f, 0.083773762f, 0.102550238f, 0.114850715f, 0.120503344f, 0.119957432f,
     0.114155665f, 0.104357935f, 0.0919508114f, 0.0782740712f, 0.0644871593f, 0.0514871962f, 0.0398790576f, 0.0299892891f,
     0.0219103862f, 0.0155607732f, 0.010747415f, 0.00722156744f, 0.00472227484f, 0.00300594466f, 0.00186303852f, 0.0011245053f,
     0.000661114114f, 0.000378646335f, 0.000211296661f, 0.000114896182f, 6.08862756e-05f, 3.14467579e-05f, 1.58311559e-05f,
     7.76897105e-06f},
    {0.0664905906f, 0.0640800372f, 0.0571379848f, 0.0464828275f, 0.0333288498f, 0.0190939512f, 0.00518835522f, -0.00717600947f,
     -0.0171233341f, -0.0241810717f, -0.0282748584f, -0.0296640787f, -0.028840078f, -0.026411932f, -0.0230016634f, -0.0191639848f,
     -0.0153372688f, -0.0118250446f, -0.0088019371f, -0.00633550389f, -0.00441533094f, -0.00298239035f, -0.00195407728f,
     -0.00124276488f, -0.000767629535f, -0.000460719893f, -0.000268795149f, -0.00015249553f, -8.41541914e-05f, -4.51848064e-05f,
     -2.36106716e-05f, -1.20091681e-05f},
    {-4.73488126e-06f, -0.00762311881f, -0.0143367648f, -0.0193821546f, -0.0222700406f, -0.0228440259f, -0.0212785266f, -0.0180170871f,
     -0.0136696212f, -0.00889411103f, -0.00428832555f, -0.000310950418f, 0.00275815465f, 0.00481902529f, 0.00592243439f, 0.0062232404f,
     0.00592935691f, 0.00525681628f, 0.00439720228f, 0.00349936681f, 0.00266395463f, 0.00194727664f, 0.00137050508f, 0.000930634269f,
     0.000610679854f, 0.00038773159f, 0.0002384369f, 0.000142135614f, 8.21904905e-05f, 4.61300515e-05f, 2.51424171e-05f,
     1.33130479e-05f},
    {-0.00993284211f, -0.00936347339f, -0.00766591635f, -0.00514900265f, -0.00221211486f, 0.000705724466f, 0.0032091178f,
     0.00501302676f, 0.00597976474f, 0.00612177327f, 0.00557453511f, 0.00455040624f, 0.00328675308f, 0.00200047786f, 0.000856989471f,
     -4.34953181e-05f, -0.000664036255f, -0.00101816456f, -0.00115194812f, -0.00112605526f, -0.00100130856f, -0.000829304976f,
     -0.000648065237f, -0.000481644645f, -0.000342232612f, -0.000233348241f, -0.000153091154f, -9.68386375e-05f, -5.91554599e-05f,
     -3.49416005e-05f, -1.99776023e-05f, -1.1065451e-05f},
  };
  // clang-format on
  const auto shifted = hn::MulAdd(t, hn::Set(d, 1 / width), hn::Set(d, to_whole));
  const V z = hn::NegMulAdd(hn::Sub(shifted, hn::Set(d, to_whole)), hn::Set(d, width), t);
  const auto points = _mm512_castps_si512(shifted.raw);  // of which the instruction reads the lowest 5 bits
  const auto of_point = [&](const float(&values)[32]) {
    return V{_mm512_permutex2var_ps(_mm512_load_ps(values), points, _mm512_load_ps(values + 16))};
  };
  V q = of_point(coefficients[5]);
  for (std::size_t i = 5; i-- > 0;) q = hn::MulAdd(q, z, of_point(coefficients[i]));
  return q;
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
#endif
