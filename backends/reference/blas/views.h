// SPDX-License-Identifier: Apache-2.0
// views.h - vectors and matrices indexed by (i, j) as in formulas; hides increments, layout, transposition and storage.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <tenon/sdk/blas.h>

namespace tenon::reference {

/// The compute type: f64, or std::complex of it.
template <class T>
using Wide = std::conditional_t<sdk::is_complex<std::remove_cv_t<T>>, std::complex<double>, double>;
template <class T>
Wide<T> wide(const T& x) {
  return Wide<T>(x);
}
template <class T>
T narrow(const Wide<T>& x) {
  return static_cast<T>(x);
}

/// a b. Complex: only the formula; std::complex also recovers infinities from each NaN.
inline double multiply(double a, double b) {
  return a * b;
}
inline std::complex<double> multiply(const std::complex<double>& a, const std::complex<double>& b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
/// a x, exact for a = 1; 0 for a = 0, for any x.
template <class W>
W scaled(const W& a, const W& x) {
  if (a == W(0)) return W(0);
  return a == W(1) ? x : multiply(a, x);
}

inline double conj_if(bool, double x) {
  return x;
}
inline std::complex<double> conj_if(bool condition, const std::complex<double>& x) {
  return condition ? std::conj(x) : x;
}
/// x, or only its real part.
template <class W>
W real_if(bool condition, const W& x) {
  return condition ? W(std::real(x)) : x;
}

/// x(i), i < n, at x[i * inc]; a negative inc counts from the array's end.
template <class T>
class Vector {
 public:
  Vector(T* x, std::int64_t n, std::int64_t inc) : first_(inc < 0 && n > 0 ? x - (n - 1) * inc : x), inc_(inc) {}
  T& operator[](std::int64_t i) const { return first_[i * inc_]; }

 private:
  T* first_;
  std::int64_t inc_;
};

/// [begin, end)
struct Range {
  std::int64_t begin, end;
  bool contains(std::int64_t i) const { return begin <= i && i < end; }
};

/// A(i, j), i < m, j < n, with diagonals -below ... above stored: all, a band or a triangle.
///
/// Lines are rows or columns. Element p of line l is at data[origin + l lead + growth l (l - 1) / 2 + p]:
///
///   dense          lead = lda
///   band           lead = lda - 1, since each line starts one element further right than the previous one; origin: the diagonals
///                  before the main one in line 0
///   packed         lines grow (lead = 1, growth = 1) or shrink (lead = n - 1, growth = -1)
template <class T>
struct Matrix {
  T* data;
  std::int64_t m, n, below, above;
  bool lines_are_rows;
  std::int64_t lead, growth = 0, origin = 0;
  bool conjugate = false;

  /// The stored columns of row i.
  Range columns(std::int64_t i) const { return {std::max<std::int64_t>(0, i - below), std::min(n, i + above + 1)}; }
  /// The stored element.
  T& at(std::int64_t i, std::int64_t j) const {
    const std::int64_t line = lines_are_rows ? i : j;
    return data[origin + line * lead + growth * (line * (line - 1) / 2) + (lines_are_rows ? j : i)];
  }
  Wide<T> operator()(std::int64_t i, std::int64_t j) const { return conj_if(conjugate, wide(at(i, j))); }

  Matrix transposed() const {
    Matrix a = *this;
    std::swap(a.m, a.n);
    std::swap(a.below, a.above);
    a.lines_are_rows = !lines_are_rows;
    return a;
  }
  /// op(A).
  Matrix op(std::uint32_t trans) const {
    Matrix a = trans == TENON_TRANS || trans == TENON_CONJ_TRANS ? transposed() : *this;
    a.conjugate = trans == TENON_CONJ_TRANS || trans == TENON_CONJ_NO_TRANS;
    return a;
  }
  /// A column of a dense matrix.
  Vector<T> column(std::int64_t j) const { return {&at(0, j), m, lines_are_rows ? lead : 1}; }
};

template <class T>
Matrix<T> dense(std::uint32_t layout, std::int64_t m, std::int64_t n, T* a, std::int64_t lda) {
  return {.data = a, .m = m, .n = n, .below = m, .above = n, .lines_are_rows = layout == TENON_LAYOUT_ROW_MAJOR, .lead = lda};
}
template <class T>
Matrix<T> banded(std::uint32_t layout, std::int64_t m, std::int64_t n, std::int64_t kl, std::int64_t ku, T* a, std::int64_t lda) {
  Matrix<T> band = dense(layout, m, n, a, lda - 1);
  band.below = kl;
  band.above = ku;
  band.origin = band.lines_are_rows ? kl : ku;
  return band;
}
/// The same of a triangle of an n x n matrix.
template <class T>
Matrix<T> dense_triangle(std::uint32_t layout, std::uint32_t uplo, std::int64_t n, T* a, std::int64_t lda) {
  Matrix<T> triangle = dense(layout, n, n, a, lda);
  (uplo == TENON_UPPER ? triangle.below : triangle.above) = 0;
  return triangle;
}
template <class T>
Matrix<T> banded_triangle(std::uint32_t layout, std::uint32_t uplo, std::int64_t n, std::int64_t k, T* a, std::int64_t lda) {
  return uplo == TENON_UPPER ? banded(layout, n, n, 0, k, a, lda) : banded(layout, n, n, k, 0, a, lda);
}
template <class T>
Matrix<T> packed_triangle(std::uint32_t layout, std::uint32_t uplo, std::int64_t n, T* a) {
  const bool shrinks = (uplo == TENON_UPPER) == (layout == TENON_LAYOUT_ROW_MAJOR);
  Matrix<T> triangle = dense_triangle(layout, uplo, n, a, shrinks ? n - 1 : 1);
  triangle.growth = shrinks ? -1 : 1;
  return triangle;
}

/// A = A' or A = conj(A)', with one triangle stored.
template <class T>
struct Symmetric {
  Matrix<const T> half;
  bool hermitian;
  std::int64_t m = half.m, n = half.n;

  Range columns(std::int64_t i) const {
    const std::int64_t reach = std::max(half.below, half.above);
    return {std::max<std::int64_t>(0, i - reach), std::min(n, i + reach + 1)};
  }
  Wide<T> operator()(std::int64_t i, std::int64_t j) const {
    if (i == j) return real_if(hermitian, half(i, i));
    return half.columns(i).contains(j) ? half(i, j) : conj_if(hermitian, half(j, i));
  }
};

/// op(A), A triangular; with `unit` the diagonal is all ones and not read.
template <class T>
struct Triangular {
  Matrix<const T> half;
  bool unit;

  Triangular(const Matrix<const T>& a, std::uint32_t trans, std::uint32_t diag) : half(a.op(trans)), unit(diag == TENON_UNIT) {}
  Triangular transposed() const {
    Triangular a = *this;
    a.half = half.transposed();
    return a;
  }

  /// x = alpha A x. Row by row, so that no row reads overwritten elements: from the first if A is upper, from the last if lower.
  void multiply_into(const Vector<T>& x, T alpha = T(1)) const {
    for (std::int64_t step = 0; step < half.n; ++step) {
      const std::int64_t i = is_upper() ? step : half.n - 1 - step;
      Wide<T> sum(0);
      if (alpha != T(0)) {
        sum = unit ? wide(x[i]) : multiply(half(i, i), wide(x[i]));
        sum += sum_off_diagonal(i, x);
      }
      x[i] = narrow<T>(scaled(wide(alpha), sum));
    }
  }
  /// x = alpha A^-1 x, by substitution: x(i) = (alpha x(i) - sum over j != i of a(i, j) x(j)) / a(i, i), where the x(j) are already solved.
  void solve_into(const Vector<T>& x, T alpha = T(1)) const {
    for (std::int64_t step = 0; step < half.n; ++step) {
      const std::int64_t i = is_upper() ? half.n - 1 - step : step;
      Wide<T> value = scaled(wide(alpha), wide(x[i]));
      if (alpha != T(0)) {
        value -= sum_off_diagonal(i, x);
        if (!unit) value /= half(i, i);
      }
      x[i] = narrow<T>(value);
    }
  }

 private:
  bool is_upper() const { return half.below == 0; }
  Wide<T> sum_off_diagonal(std::int64_t i, const Vector<T>& x) const {
    const Range columns = half.columns(i);
    Wide<T> sum(0);
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      if (j != i) sum += multiply(half(i, j), wide(x[j]));
    }
    return sum;
  }
};

}  // namespace tenon::reference
