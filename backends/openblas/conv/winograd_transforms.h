// SPDX-License-Identifier: Apache-2.0
// winograd_transforms.h - the one-dimensional transforms of Winograd's algorithms, Y = A' [(G w G') * (B' x B)] A, for one instruction set.
// F(4x4, 3x3) and F(2x2, 5x5) share B' and the scales of G, which depend on the points only. Include it after foreach_target.h, like
// simd.h.
#if defined(TENON_OPENBLAS_WINOGRAD_TRANSFORMS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_WINOGRAD_TRANSFORMS_H
#undef TENON_OPENBLAS_WINOGRAD_TRANSFORMS_H
#else
#define TENON_OPENBLAS_WINOGRAD_TRANSFORMS_H
#endif

#include "simd/simd.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

/// The interpolation points are 0, p, -p, q, -q and infinity. They have a third of the error of the usual 1 and 2, and all matrices but G
/// are exact.
struct WinogradPoints {
  static constexpr float p = 0.75F, p2 = p * p, p3 = p2 * p;
  static constexpr float q = 1.5F, q2 = q * q, q3 = q2 * q;
  // The scales of G's rows for the points 0, p and q.
  static constexpr double zero_scale = 1 / (double{p2} * q2);
  static constexpr double p_scale = 1 / (2 * double{p2} * (double{p2} - q2));
  static constexpr double q_scale = 1 / (2 * double{q2} * (double{q2} - p2));
};

/// y = B' x
template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_input(D d, const V (&x)[6], V (&y)[6]) {
  using Points = WinogradPoints;
  const V product = hn::Set(d, Points::p2 * Points::q2), sum = hn::Set(d, Points::p2 + Points::q2);
  const V p = hn::Set(d, Points::p), p2 = hn::Set(d, Points::p2);
  const V q = hn::Set(d, Points::q), q2 = hn::Set(d, Points::q2);
  const V p_even = hn::NegMulAdd(q2, x[2], x[4]), p_odd = hn::NegMulAdd(q2, x[1], x[3]);
  const V q_even = hn::NegMulAdd(p2, x[2], x[4]), q_odd = hn::NegMulAdd(p2, x[1], x[3]);
  y[0] = hn::MulAdd(product, x[0], hn::NegMulAdd(sum, x[2], x[4]));
  y[1] = hn::MulAdd(p, p_odd, p_even);
  y[2] = hn::NegMulAdd(p, p_odd, p_even);
  y[3] = hn::MulAdd(q, q_odd, q_even);
  y[4] = hn::NegMulAdd(q, q_odd, q_even);
  y[5] = hn::MulAdd(product, x[1], hn::NegMulAdd(sum, x[3], x[5]));
}

/// y = A' x
template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_output(D d, const V (&x)[6], V (&y)[4]) {
  using Points = WinogradPoints;
  const V p_sum = hn::Add(x[1], x[2]), p_difference = hn::Sub(x[1], x[2]);
  const V q_sum = hn::Add(x[3], x[4]), q_difference = hn::Sub(x[3], x[4]);
  y[0] = hn::Add(hn::Add(x[0], p_sum), q_sum);
  y[1] = hn::MulAdd(hn::Set(d, Points::p), p_difference, hn::Mul(hn::Set(d, Points::q), q_difference));
  y[2] = hn::MulAdd(hn::Set(d, Points::p2), p_sum, hn::Mul(hn::Set(d, Points::q2), q_sum));
  y[3] = hn::MulAdd(hn::Set(d, Points::p3), p_difference, hn::MulAdd(hn::Set(d, Points::q3), q_difference, x[5]));
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_output(D d, const V (&x)[6], V (&y)[2]) {
  using Points = WinogradPoints;
  y[0] = hn::Add(hn::Add(x[0], hn::Add(x[1], x[2])), hn::Add(x[3], x[4]));
  y[1] = hn::MulAdd(hn::Set(d, Points::p), hn::Sub(x[1], x[2]), hn::MulAdd(hn::Set(d, Points::q), hn::Sub(x[3], x[4]), x[5]));
}

/// Those of F(3x3, 3x3): 0, p, -p, q and infinity.
struct WinogradPoints3 {
  static constexpr float p = 0.75F, p2 = p * p;
  static constexpr float q = 2.0F, q2 = q * q;
  static constexpr double zero_scale = 1 / (double{p2} * q);
  static constexpr double plus_scale = 1 / (2 * double{p2} * (double{p} - q));
  static constexpr double minus_scale = -1 / (2 * double{p2} * (double{p} + q));
  static constexpr double q_scale = 1 / (double{q} * (double{q2} - p2));
};

template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_input(D d, const V (&x)[5], V (&y)[5]) {
  using Points = WinogradPoints3;
  const V p = hn::Set(d, Points::p), p2 = hn::Set(d, Points::p2), q = hn::Set(d, Points::q);
  const V first = hn::NegMulAdd(q, x[0], x[1]), second = hn::NegMulAdd(q, x[1], x[2]);
  const V third = hn::NegMulAdd(q, x[2], x[3]), fourth = hn::NegMulAdd(q, x[3], x[4]);
  y[0] = hn::NegMulAdd(p2, first, third);
  y[1] = hn::MulAdd(p, second, third);
  y[2] = hn::NegMulAdd(p, second, third);
  y[3] = hn::NegMulAdd(p2, x[1], x[3]);
  y[4] = hn::NegMulAdd(p2, second, fourth);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_output(D d, const V (&x)[5], V (&y)[3]) {
  using Points = WinogradPoints3;
  const V sum = hn::Add(x[1], x[2]), difference = hn::Sub(x[1], x[2]);
  y[0] = hn::Add(hn::Add(x[0], sum), x[3]);
  y[1] = hn::MulAdd(hn::Set(d, Points::p), difference, hn::Mul(hn::Set(d, Points::q), x[3]));
  y[2] = hn::MulAdd(hn::Set(d, Points::p2), sum, hn::MulAdd(hn::Set(d, Points::q2), x[3], x[4]));
}

/// Those of F(3x3, 5x5): p, -p, q, -q, r, -r and infinity.
struct WinogradPoints7 {
  static constexpr float p = 0.25F, p2 = p * p;
  static constexpr float q = 0.75F, q2 = q * q;
  static constexpr float r = 2.0F, r2 = r * r;
  static constexpr double p_scale = 1 / (2 * double{p} * (double{p2} - q2) * (double{p2} - r2));
  static constexpr double q_scale = 1 / (2 * double{q} * (double{q2} - p2) * (double{q2} - r2));
  static constexpr double r_scale = 1 / (2 * double{r} * (double{r2} - p2) * (double{r2} - q2));
};

/// The values of the points a and -a, given the sum and the product of the squares of the other points.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_input_pair(D d, const V (&x)[7], float a, float sum, float product, V& plus, V& minus) {
  const V even = hn::MulAdd(hn::Set(d, product), x[0], hn::NegMulAdd(hn::Set(d, sum), x[2], x[4]));
  const V odd = hn::MulAdd(hn::Set(d, product), x[1], hn::NegMulAdd(hn::Set(d, sum), x[3], x[5]));
  plus = hn::MulAdd(hn::Set(d, a), even, odd);
  minus = hn::NegMulAdd(hn::Set(d, a), even, odd);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_input(D d, const V (&x)[7], V (&y)[7]) {
  using Points = WinogradPoints7;
  constexpr float p2 = Points::p2, q2 = Points::q2, r2 = Points::r2;
  winograd_input_pair(d, x, Points::p, q2 + r2, q2 * r2, y[0], y[1]);
  winograd_input_pair(d, x, Points::q, p2 + r2, p2 * r2, y[2], y[3]);
  winograd_input_pair(d, x, Points::r, p2 + q2, p2 * q2, y[4], y[5]);
  const V inner = hn::NegMulAdd(hn::Set(d, p2 * q2 * r2), x[0], hn::Mul(hn::Set(d, p2 * q2 + p2 * r2 + q2 * r2), x[2]));
  y[6] = hn::Add(hn::NegMulAdd(hn::Set(d, p2 + q2 + r2), x[4], x[6]), inner);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_output(D d, const V (&x)[7], V (&y)[3]) {
  using Points = WinogradPoints7;
  const V p_sum = hn::Add(x[0], x[1]), q_sum = hn::Add(x[2], x[3]), r_sum = hn::Add(x[4], x[5]);
  const V p_difference = hn::Sub(x[0], x[1]), q_difference = hn::Sub(x[2], x[3]), r_difference = hn::Sub(x[4], x[5]);
  const auto combined = [&](float p, V of_p, float q, V of_q, float r, V of_r) HWY_ATTR {
    return hn::MulAdd(hn::Set(d, p), of_p, hn::MulAdd(hn::Set(d, q), of_q, hn::Mul(hn::Set(d, r), of_r)));
  };
  y[0] = hn::Add(hn::Add(p_sum, q_sum), r_sum);
  y[1] = combined(Points::p, p_difference, Points::q, q_difference, Points::r, r_difference);
  y[2] = hn::Add(combined(Points::p2, p_sum, Points::q2, q_sum, Points::r2, r_sum), x[6]);
}

/// F(2x2, 3x3), with the points 0, 1, -1 and infinity.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_input(D, const V (&x)[4], V (&y)[4]) {
  y[0] = hn::Sub(x[2], x[0]);
  y[1] = hn::Add(x[2], x[1]);
  y[2] = hn::Sub(x[2], x[1]);
  y[3] = hn::Sub(x[3], x[1]);
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_output(D, const V (&x)[4], V (&y)[2]) {
  y[0] = hn::Add(x[0], hn::Add(x[1], x[2]));
  y[1] = hn::Add(hn::Sub(x[1], x[2]), x[3]);
}

/// F(2x2, 3x3) with strides of 2: F(2, 2) of x[0], x[2] and x[4] with the outer taps, by the points 0, 1 and infinity, and the products of
/// x[1] and x[3] with the tap between them. The latter are y[1] and y[4], whose products are added to those of y[0] and y[3].
template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_strided_input(D, const V (&x)[5], V (&y)[5]) {
  y[0] = hn::Sub(x[0], x[2]);
  y[1] = x[1];
  y[2] = x[2];
  y[3] = hn::Sub(x[4], x[2]);
  y[4] = x[3];
}

template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_strided_output(D, const V (&x)[3], V (&y)[2]) {
  y[0] = hn::Add(x[0], x[1]);
  y[1] = hn::Add(x[1], x[2]);
}

/// y = A x, the transform of the gradient of Y.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_output_grad(D d, const V (&x)[4], V (&y)[6]) {
  using Points = WinogradPoints;
  const V p_even = hn::MulAdd(hn::Set(d, Points::p2), x[2], x[0]);
  const V p_odd = hn::MulAdd(hn::Set(d, Points::p3), x[3], hn::Mul(hn::Set(d, Points::p), x[1]));
  const V q_even = hn::MulAdd(hn::Set(d, Points::q2), x[2], x[0]);
  const V q_odd = hn::MulAdd(hn::Set(d, Points::q3), x[3], hn::Mul(hn::Set(d, Points::q), x[1]));
  y[0] = x[0];
  y[1] = hn::Add(p_even, p_odd);
  y[2] = hn::Sub(p_even, p_odd);
  y[3] = hn::Add(q_even, q_odd);
  y[4] = hn::Sub(q_even, q_odd);
  y[5] = x[3];
}

/// y = G' x, the transform from the sums to the gradient of w.
template <class D, class V = hn::Vec<D>>
HWY_INLINE void winograd_weight_grad(D d, const V (&x)[6], V (&y)[3]) {
  using Points = WinogradPoints;
  const V p_sum = hn::Mul(hn::Set(d, static_cast<float>(Points::p_scale)), hn::Add(x[1], x[2]));
  const V p_difference = hn::Mul(hn::Set(d, static_cast<float>(Points::p_scale)), hn::Sub(x[1], x[2]));
  const V q_sum = hn::Mul(hn::Set(d, static_cast<float>(Points::q_scale)), hn::Add(x[3], x[4]));
  const V q_difference = hn::Mul(hn::Set(d, static_cast<float>(Points::q_scale)), hn::Sub(x[3], x[4]));
  y[0] = hn::MulAdd(hn::Set(d, static_cast<float>(Points::zero_scale)), x[0], hn::Add(p_sum, q_sum));
  y[1] = hn::MulAdd(hn::Set(d, Points::p), p_difference, hn::Mul(hn::Set(d, Points::q), q_difference));
  y[2] = hn::MulAdd(hn::Set(d, Points::p2), p_sum, hn::MulAdd(hn::Set(d, Points::q2), q_sum, x[5]));
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
