// SPDX-License-Identifier: Apache-2.0
// winograd_forms.h - the forms of Winograd's algorithm: sizes, transforms and the matrix G of each, for one instruction set. Include it
// after foreach_target.h, like simd.h.
#if defined(TENON_OPENBLAS_WINOGRAD_FORMS_H) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_OPENBLAS_WINOGRAD_FORMS_H
#undef TENON_OPENBLAS_WINOGRAD_FORMS_H
#else
#define TENON_OPENBLAS_WINOGRAD_FORMS_H
#endif

#include <array>
#include <cstddef>

#include "conv/winograd_geometry.h"
#include "conv/winograd_transforms.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::openblas {
namespace HWY_NAMESPACE {

template <int taps>
using WinogradRow = std::array<double, static_cast<std::size_t>(taps)>;

/// G's row of a point: scale point^k.
template <int taps>
constexpr WinogradRow<taps> winograd_row(double scale, double point) {
  WinogradRow<taps> row{};
  for (double& value : row) {
    value = scale;
    scale *= point;
  }
  return row;
}
/// That of infinity.
template <int taps>
constexpr WinogradRow<taps> winograd_last_row() {
  WinogradRow<taps> row{};
  row.back() = 1;
  return row;
}

/// `reach` pixels along a dimension become as many values, and `points` sums of their products become `results` results; the transforms are
/// those for as many values, unless a form has its own.
template <int taps_, int results_, int stride = 1, int points_ = stride*(results_ - 1) + taps_>
struct WinogradSizes {
  static constexpr int taps = taps_, results = results_, step = stride * results_;
  static constexpr int reach = stride * (results_ - 1) + taps_, points = points_;
  template <class D, class X, class Y>
  static HWY_INLINE void input(D d, const X& x, Y& y) {
    winograd_input(d, x, y);
  }
  template <class D, class X, class Y>
  static HWY_INLINE void output(D d, const X& x, Y& y) {
    winograd_output(d, x, y);
  }
};

/// F(4x4, 3x3) and F(2x2, 5x5)
template <int taps, int results>
struct WinogradLarge : WinogradSizes<taps, results> {
  using Points = WinogradPoints;
  static constexpr WinogradRow<taps> g[6] = {
      winograd_row<taps>(Points::zero_scale, 0),       winograd_row<taps>(Points::p_scale, Points::p),
      winograd_row<taps>(Points::p_scale, -Points::p), winograd_row<taps>(Points::q_scale, Points::q),
      winograd_row<taps>(Points::q_scale, -Points::q), winograd_last_row<taps>()};
};

/// F(3x3, 3x3)
struct WinogradMiddle : WinogradSizes<3, 3> {
  using Points = WinogradPoints3;
  static constexpr WinogradRow<3> g[5] = {winograd_row<3>(Points::zero_scale, 0), winograd_row<3>(Points::plus_scale, Points::p),
                                          winograd_row<3>(Points::minus_scale, -Points::p), winograd_row<3>(Points::q_scale, Points::q),
                                          winograd_last_row<3>()};
};

/// F(3x3, 5x5)
struct WinogradLargest : WinogradSizes<5, 3> {
  using Points = WinogradPoints7;
  static constexpr WinogradRow<5> g[7] = {winograd_row<5>(Points::p_scale, Points::p),
                                          winograd_row<5>(-Points::p_scale, -Points::p),
                                          winograd_row<5>(Points::q_scale, Points::q),
                                          winograd_row<5>(-Points::q_scale, -Points::q),
                                          winograd_row<5>(Points::r_scale, Points::r),
                                          winograd_row<5>(-Points::r_scale, -Points::r),
                                          winograd_last_row<5>()};
};

/// F(2x2, 3x3)
struct WinogradSmall : WinogradSizes<3, 2> {
  static constexpr WinogradRow<3> g[4] = {winograd_row<3>(-1, 0), winograd_row<3>(0.5, 1), winograd_row<3>(0.5, -1),
                                          winograd_last_row<3>()};
};

/// F(2x2, 3x3) of stride 2
struct WinogradStrided : WinogradSizes<3, 2, 2, 3> {
  static constexpr WinogradRow<3> g[5] = {{1, 0, 0}, {0, 1, 0}, {1, 0, 1}, {0, 0, 1}, {0, 1, 0}};
  template <class D, class X, class Y>
  static HWY_INLINE void input(D d, const X& x, Y& y) {
    winograd_strided_input(d, x, y);
  }
  template <class D, class X, class Y>
  static HWY_INLINE void output(D d, const X& x, Y& y) {
    winograd_strided_output(d, x, y);
  }
};

/// function(the form of `conv`)
template <class Function>
void with_winograd_form(const WinogradConv& conv, const Function& function) {
  if (conv.stride == 2) return function(WinogradStrided());
  if (conv.taps == 5) return conv.results == 3 ? function(WinogradLargest()) : function(WinogradLarge<5, 2>());
  if (conv.results == 4) return function(WinogradLarge<3, 4>());
  conv.results == 3 ? function(WinogradMiddle()) : function(WinogradSmall());
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::openblas
HWY_AFTER_NAMESPACE();
#endif
