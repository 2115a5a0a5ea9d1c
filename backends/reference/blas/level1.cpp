// SPDX-License-Identifier: Apache-2.0
// BLAS level 1: vectors. x and y are the vectors, n their length, alpha and beta scalars; sums are accumulated in f64.
//
// Source  Lawson, Hanson, Kincaid, Krogh: Basic Linear Algebra Subprograms for Fortran Usage (1979), unless another source is named.
#include <cmath>

#include "blas/views.h"

namespace tenon::reference {
namespace {

/// f(x(i), y(i)) for each i; f gets the elements themselves. P: arguments with x and y.
template <class P, class Function>
void for_each_pair(const P& p, const Function& f) {
  const Vector x(p.x, p.n, p.incx);
  const Vector y(p.y, p.n, p.incy);
  for (std::int64_t i = 0; i < p.n; ++i) f(x[i], y[i]);
}

/// The rotation [c s; -conj(s) c] that turns (a, b) to (r, 0):
///
///   real      r = sigma sqrt(a^2 + b^2), sigma the sign of the larger of a and b; c = a / r, s = b / r; b = z, from which both can be had
///   complex   r = sgn(a) h, c = |a| / h, s = sgn(a) conj(b) / h; h = sqrt(|a|^2 + |b|^2), sgn(a) = a / |a|, sgn(0) = 1; b stays
///
/// Neither overflows or underflows where r does not.
/// Source  Anderson: Algorithm 978: Safe Scaling in the Level 1 BLAS (2017).
template <class T>
requires(!sdk::is_complex<T>) void rotg(const sdk::arguments::rotg<T>& p) {
  const double a{*p.a};
  const double b{*p.b};
  const bool a_is_larger = std::abs(a) > std::abs(b);
  if (b == 0) {
    *p.c = 1;
    *p.s = *p.b = 0;
  } else if (a == 0) {
    *p.c = 0;
    *p.s = 1;
    *p.a = *p.b;
    *p.b = 1;
  } else {
    const double r = std::copysign(std::hypot(a, b), a_is_larger ? a : b);
    *p.a = static_cast<T>(r);
    *p.c = static_cast<T>(a / r);
    *p.s = static_cast<T>(b / r);
    *p.b = a_is_larger ? *p.s : *p.c != 0 ? 1 / *p.c : T(1);
  }
}

/// x = scale * direction, 1 <= |direction| <= sqrt(2); 0 = 0 * 1.
struct Polar {
  double scale;
  std::complex<double> direction;

  explicit Polar(const std::complex<double>& x) : scale(std::max(std::abs(x.real()), std::abs(x.imag()))), direction(1) {
    if (scale != 0) direction = {x.real() / scale, x.imag() / scale};
  }
};

template <class T>
requires(sdk::is_complex<T>) void rotg(const sdk::arguments::rotg<T>& p) {
  using R = sdk::Real<T>;
  if (*p.b == T(0)) {
    *p.c = 1;
    *p.s = 0;
    return;
  }
  const Polar a(wide(*p.a));
  const Polar b(wide(*p.b));
  // Everything in units of the larger scale: terms that underflow there are negligible.
  const double unit = std::max(a.scale, b.scale);
  const double size_a = std::abs(a.direction) * (a.scale / unit);
  const double size_b = std::abs(b.direction) * (b.scale / unit);
  const double h = std::hypot(size_a, size_b);
  const std::complex<double> sign_a = a.direction / std::abs(a.direction);
  *p.c = static_cast<R>(size_a / h);
  *p.s = narrow<T>(multiply(sign_a, std::conj(b.direction)) * (b.scale / unit / h));
  *p.a = narrow<T>(sign_a * h * unit);
}

/// The modified rotation H, for which the second component of H (sqrt(d1) x1, sqrt(d2) y1) is 0, without square roots: d1, d2, x1 are
/// replaced by those of the result. param: flag, h11, h21, h12, h22; those that the flag implies are not written:
///
///   flag  -1  H = [h11 h12; h21 h22]    0  H = [1 h12; h21 1]    1  H = [h11 1; -1 h22]    -2  H = I
///
/// d1 and |d2| are brought between gam^-2 and gam^2, gam = 4096. A negative d1, and a d2 that would make d1 negative, give H = 0.
/// Computed in T, since branches that depend on rounding are part of the result.
template <class T>
void rotmg(const sdk::arguments::rotmg<T>& p) {
  constexpr T gam = 4096;
  constexpr T gam_squared = gam * gam;
  constexpr T reciprocal_gam_squared = T(5.9604645e-8);  // as in the reference implementation
  T& d1 = *p.d1;
  T& d2 = *p.d2;
  T& x1 = *p.x1;
  const T y1 = *p.y1;
  T flag = -1, h11 = 0, h21 = 0, h12 = 0, h22 = 0;
  const T p1 = d1 * x1, p2 = d2 * y1;
  const T q1 = p1 * x1, q2 = p2 * y1;
  bool is_rotation = !(d1 < 0);
  if (is_rotation && p2 == 0) {
    p.param[0] = -2;
    return;
  }
  if (is_rotation && std::abs(q1) > std::abs(q2)) {
    h21 = -y1 / x1;
    h12 = p2 / p1;
    const T u = 1 - h12 * h21;
    is_rotation = u > 0;
    if (is_rotation) {
      flag = 0;
      d1 /= u;
      d2 /= u;
      x1 *= u;
    }
  } else if (is_rotation) {
    is_rotation = !(q2 < 0);
    if (is_rotation) {
      flag = 1;
      h11 = p1 / p2;
      h22 = x1 / y1;
      const T u = 1 + h11 * h22;
      const T first = d1;
      d1 = d2 / u;
      d2 = first / u;
      x1 = y1 * u;
    }
  }
  if (!is_rotation) {
    h21 = h12 = 0;
    d1 = d2 = x1 = 0;
  }

  // d by gam^2 and its row of H by 1 / gam, or vice versa; then all of H is written.
  const auto rescale = [&](T& d, T& h_first, T& h_second, T* x) {
    while (d != 0 && std::isfinite(d) && (std::abs(d) <= reciprocal_gam_squared || std::abs(d) >= gam_squared)) {
      if (flag == 0) h11 = h22 = 1;
      if (flag == 1) {
        h21 = -1;
        h12 = 1;
      }
      flag = -1;
      const bool is_small = std::abs(d) <= reciprocal_gam_squared;
      const T factor = is_small ? 1 / gam : gam;
      d = is_small ? d * gam_squared : d / gam_squared;
      h_first *= factor;
      h_second *= factor;
      if (x != nullptr) *x *= factor;
    }
  };
  rescale(d1, h11, h12, &x1);
  rescale(d2, h21, h22, nullptr);

  p.param[0] = flag;
  if (flag != 0) {
    p.param[1] = h11;
    p.param[4] = h22;
  }
  if (flag != 1) {
    p.param[2] = h21;
    p.param[3] = h12;
  }
}

/// x, y = c x + s y, c y - conj(s) x
template <class T>
void rot(const sdk::arguments::rot<T>& p) {
  const double c{p.c};
  const Wide<T> s = wide(p.s);
  for_each_pair(p, [&](T& x, T& y) {
    const Wide<T> was_x = wide(x);
    const Wide<T> was_y = wide(y);
    x = narrow<T>(c * was_x + multiply(s, was_y));
    y = narrow<T>(c * was_y - multiply(conj_if(true, s), was_x));
  });
}

/// x, y = h11 x + h12 y, h21 x + h22 y, with the H of rotmg's param.
template <class T>
void rotm(const sdk::arguments::rotm<T>& p) {
  const T flag = p.param[0];
  if (flag == -2) return;
  const double h11 = flag == 0 ? 1 : double{p.param[1]};
  const double h21 = flag == 1 ? -1 : double{p.param[2]};
  const double h12 = flag == 1 ? 1 : double{p.param[3]};
  const double h22 = flag == 0 ? 1 : double{p.param[4]};
  for_each_pair(p, [&](T& x, T& y) {
    const double was_x{x};
    const double was_y{y};
    x = static_cast<T>(h11 * was_x + h12 * was_y);
    y = static_cast<T>(h21 * was_x + h22 * was_y);
  });
}

/// x, y = y, x
template <class T>
void swap(const sdk::arguments::xy<T>& p) {
  for_each_pair(p, [](T& x, T& y) { std::swap(x, y); });
}

/// x = alpha x; NaN stays NaN for alpha = 0.
template <class T>
void scal(const sdk::arguments::scal<T>& p) {
  const Vector x(p.x, p.n, p.incx);
  for (std::int64_t i = 0; i < p.n; ++i) x[i] = narrow<T>(multiply(wide(p.alpha), wide(x[i])));
}

/// x = alpha x, alpha real
template <class T>
void rscal(const sdk::arguments::scal<T>& p) {
  const Vector x(p.x, p.n, p.incx);
  for (std::int64_t i = 0; i < p.n; ++i) x[i] = narrow<T>(double{p.alpha.real()} * wide(x[i]));
}

/// y = x
template <class T>
void copy(const sdk::arguments::xy<T>& p) {
  for_each_pair(p, [](const T& x, T& y) { y = x; });
}

/// y = alpha x + y; y is unchanged for alpha = 0, for any x.
template <class T>
void axpy(const sdk::arguments::axpy<T>& p) {
  if (p.alpha == T(0)) return;
  for_each_pair(p, [&](const T& x, T& y) { y = narrow<T>(multiply(wide(p.alpha), wide(x)) + wide(y)); });
}

/// y = alpha x + beta y; a vector whose factor is 0 is ignored, even if it has NaN.
template <class T>
void axpby(const sdk::arguments::axpby<T>& p) {
  for_each_pair(p, [&](const T& x, T& y) { y = narrow<T>(scaled(wide(p.alpha), wide(x)) + scaled(wide(p.beta), wide(y))); });
}

/// first + sum of x(i) y(i), or of conj(x(i)) y(i)
template <class T>
Wide<T> sum_of_products(const sdk::arguments::dot<T>& p, bool conjugate_x = false, T first = T(0)) {
  Wide<T> sum = wide(first);
  for_each_pair(p, [&](const T& x, const T& y) { sum += multiply(conj_if(conjugate_x, wide(x)), wide(y)); });
  return sum;
}

/// sum of x(i) y(i)
template <class T>
void dot(const sdk::arguments::dot<T>& p) {
  p.result.set(narrow<T>(sum_of_products(p)));
}

/// sum of x(i) y(i)
template <class T>
void dotu(const sdk::arguments::dot<T>& p) {
  p.result.set(narrow<T>(sum_of_products(p)));
}

/// sum of conj(x(i)) y(i)
template <class T>
void dotc(const sdk::arguments::dot<T>& p) {
  p.result.set(narrow<T>(sum_of_products(p, true)));
}

/// alpha + sum of x(i) y(i), rounded once
template <class T>
void sdsdot(const sdk::arguments::dot<T>& p) {
  p.result.set(narrow<T>(sum_of_products(p, false, p.alpha)));
}

/// sum of x(i) y(i), in f64
template <class T>
void dsdot(const sdk::arguments::dot<T>& p) {
  p.result.set(sum_of_products(p));
}

/// f(|re x(i)|), f(|im x(i)|) for each i
template <class T, class Function>
void for_each_part(const sdk::arguments::reduce<T>& p, const Function& f) {
  const Vector x(p.x, p.n, p.incx);
  for (std::int64_t i = 0; i < p.n; ++i) {
    f(std::abs(double{std::real(x[i])}));
    if constexpr (sdk::is_complex<T>) f(std::abs(double{std::imag(x[i])}));
  }
}

/// scale sqrt(sum of |x(i) / scale|^2); scale, the power of two of the largest part, keeps the squares from overflow and underflow.
/// Infinities give infinity, NaN gives NaN.
/// Source  Blue: A Portable Fortran Program to Find the Euclidean Norm of a Vector (1978); Anderson (2017).
template <class T>
void nrm2(const sdk::arguments::reduce<T>& p) {
  double largest = 0;
  for_each_part(p, [&](double part) { largest = std::max(largest, part); });
  const double scale = largest > 0 && std::isfinite(largest) ? std::ldexp(1.0, std::ilogb(largest)) : 1;
  double sum = 0;
  for_each_part(p, [&](double part) { sum += (part / scale) * (part / scale); });
  p.result.set(static_cast<sdk::Real<T>>(scale * std::sqrt(sum)));
}

/// sum of |re x(i)| + |im x(i)|
template <class T>
void asum(const sdk::arguments::reduce<T>& p) {
  double sum = 0;
  for_each_part(p, [&](double part) { sum += part; });
  p.result.set(static_cast<sdk::Real<T>>(sum));
}

/// The first i, from 0, whose magnitude |re x(i)| + |im x(i)| no later one beats; -1 if n = 0. Comparisons with NaN are false: it is never
/// better, nor beaten. Magnitudes are in T, so that all backends have the same ties.
template <class T, class Better>
std::int64_t best_place(const sdk::arguments::reduce<T>& p, const Better& better) {
  const Vector x(p.x, p.n, p.incx);
  const auto size = [&](std::int64_t i) { return std::abs(std::real(x[i])) + std::abs(std::imag(x[i])); };
  std::int64_t best = p.n > 0 ? 0 : -1;
  for (std::int64_t i = 1; i < p.n; ++i) {
    if (better(size(i), size(best))) best = i;
  }
  return best;
}

/// The first index of the largest |re x(i)| + |im x(i)|
template <class T>
void iamax(const sdk::arguments::reduce<T>& p) {
  p.result.set(best_place(p, [](auto a, auto b) { return a > b; }));
}

/// The first index of the smallest |re x(i)| + |im x(i)|
template <class T>
void iamin(const sdk::arguments::reduce<T>& p) {
  p.result.set(best_place(p, [](auto a, auto b) { return a < b; }));
}

}  // namespace
TENON_BLAS_ROUTINE(rotg)
TENON_BLAS_ROUTINE(rotmg)
TENON_BLAS_ROUTINE(rot)
TENON_BLAS_ROUTINE(rotm)
TENON_BLAS_ROUTINE(swap)
TENON_BLAS_ROUTINE(scal)
TENON_BLAS_ROUTINE(rscal)
TENON_BLAS_ROUTINE(copy)
TENON_BLAS_ROUTINE(axpy)
TENON_BLAS_ROUTINE(axpby)
TENON_BLAS_ROUTINE(dot)
TENON_BLAS_ROUTINE(dotu)
TENON_BLAS_ROUTINE(dotc)
TENON_BLAS_ROUTINE(sdsdot)
TENON_BLAS_ROUTINE(dsdot)
TENON_BLAS_ROUTINE(nrm2)
TENON_BLAS_ROUTINE(asum)
TENON_BLAS_ROUTINE(iamax)
TENON_BLAS_ROUTINE(iamin)
}  // namespace tenon::reference
