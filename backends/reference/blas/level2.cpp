// SPDX-License-Identifier: Apache-2.0
// BLAS level 2: a matrix and vectors. Sums are accumulated in f64; elements outside a band or a triangle are not read.
//
// Source  Dongarra, Du Croz, Hammarling, Hanson: An Extended Set of FORTRAN Basic Linear Algebra Subprograms (1988).
#include "blas/views.h"

namespace tenon::reference {
namespace {

/// y = alpha A x + beta y. P: arguments with alpha, x, beta, y.
template <class P, class A>
void multiply_add(const P& p, const A& a) {
  const Vector x(p.x, a.n, p.incx);
  const Vector y(p.y, a.m, p.incy);
  const auto alpha = wide(p.alpha);
  for (std::int64_t i = 0; i < a.m; ++i) {
    auto sum = decltype(alpha * alpha)(0);
    if (p.alpha != decltype(p.alpha)(0)) {
      const Range columns = a.columns(i);
      for (std::int64_t j = columns.begin; j < columns.end; ++j) sum += multiply(a(i, j), wide(x[j]));
    }
    y[i] = narrow<std::remove_cvref_t<decltype(p.alpha)>>(scaled(alpha, sum) + scaled(wide(p.beta), wide(y[i])));
  }
}

/// y = alpha op(A) x + beta y
template <class T>
void gemv(const sdk::arguments::gemv<T>& p) {
  if (p.m > 0 && p.n > 0) multiply_add(p, dense(p.layout, p.m, p.n, p.a, p.lda).op(p.trans));
}

/// y = alpha op(A) x + beta y, A with kl diagonals below the main one and ku above
template <class T>
void gbmv(const sdk::arguments::gemv<T>& p) {
  if (p.m > 0 && p.n > 0) multiply_add(p, banded(p.layout, p.m, p.n, p.kl, p.ku, p.a, p.lda).op(p.trans));
}

/// y = alpha A x + beta y, A = A'
template <class T>
void symv(const sdk::arguments::symv<T>& p) {
  multiply_add(p, Symmetric<T>{dense_triangle(p.layout, p.uplo, p.n, p.a, p.lda), false});
}

/// y = alpha A x + beta y, A = conj(A)'
template <class T>
void hemv(const sdk::arguments::symv<T>& p) {
  multiply_add(p, Symmetric<T>{dense_triangle(p.layout, p.uplo, p.n, p.a, p.lda), true});
}

/// symv with k diagonals on either side of the main one
template <class T>
void sbmv(const sdk::arguments::symv<T>& p) {
  multiply_add(p, Symmetric<T>{banded_triangle(p.layout, p.uplo, p.n, p.k, p.a, p.lda), false});
}

/// hemv with k diagonals on either side of the main one
template <class T>
void hbmv(const sdk::arguments::symv<T>& p) {
  multiply_add(p, Symmetric<T>{banded_triangle(p.layout, p.uplo, p.n, p.k, p.a, p.lda), true});
}

/// symv, A packed
template <class T>
void spmv(const sdk::arguments::symv<T>& p) {
  multiply_add(p, Symmetric<T>{packed_triangle(p.layout, p.uplo, p.n, p.a), false});
}

/// hemv, A packed
template <class T>
void hpmv(const sdk::arguments::symv<T>& p) {
  multiply_add(p, Symmetric<T>{packed_triangle(p.layout, p.uplo, p.n, p.a), true});
}

/// x = op(A) x, A triangular
template <class T>
void trmv(const sdk::arguments::trmv<T>& p) {
  Triangular<T>(dense_triangle(p.layout, p.uplo, p.n, p.a, p.lda), p.trans, p.diag).multiply_into(Vector(p.x, p.n, p.incx));
}

/// x = op(A) x, A triangular with k diagonals next to the main one
template <class T>
void tbmv(const sdk::arguments::trmv<T>& p) {
  Triangular<T>(banded_triangle(p.layout, p.uplo, p.n, p.k, p.a, p.lda), p.trans, p.diag).multiply_into(Vector(p.x, p.n, p.incx));
}

/// x = op(A) x, A triangular, packed
template <class T>
void tpmv(const sdk::arguments::trmv<T>& p) {
  Triangular<T>(packed_triangle(p.layout, p.uplo, p.n, p.a), p.trans, p.diag).multiply_into(Vector(p.x, p.n, p.incx));
}

/// x = op(A)^-1 x, A triangular
template <class T>
void trsv(const sdk::arguments::trmv<T>& p) {
  Triangular<T>(dense_triangle(p.layout, p.uplo, p.n, p.a, p.lda), p.trans, p.diag).solve_into(Vector(p.x, p.n, p.incx));
}

/// x = op(A)^-1 x, A triangular with k diagonals next to the main one
template <class T>
void tbsv(const sdk::arguments::trmv<T>& p) {
  Triangular<T>(banded_triangle(p.layout, p.uplo, p.n, p.k, p.a, p.lda), p.trans, p.diag).solve_into(Vector(p.x, p.n, p.incx));
}

/// x = op(A)^-1 x, A triangular, packed
template <class T>
void tpsv(const sdk::arguments::trmv<T>& p) {
  Triangular<T>(packed_triangle(p.layout, p.uplo, p.n, p.a), p.trans, p.diag).solve_into(Vector(p.x, p.n, p.incx));
}

/// A(i, j) += term(i, j) where A is stored; the diagonal of a Hermitian A becomes real.
template <class T, class Term>
void add_to(const Matrix<T>& a, bool hermitian, const Term& term) {
  for (std::int64_t i = 0; i < a.m; ++i) {
    const Range columns = a.columns(i);
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      a.at(i, j) = narrow<T>(real_if(hermitian && i == j, a(i, j) + term(i, j)));
    }
  }
}

/// A += alpha x y', or alpha x conj(y)'
template <class T>
void rank_1(const sdk::arguments::ger<T>& p, bool conjugate_y) {
  if (p.alpha == T(0)) return;
  const Vector x(p.x, p.m, p.incx);
  const Vector y(p.y, p.n, p.incy);
  add_to(dense(p.layout, p.m, p.n, p.a, p.lda), false,
         [&](std::int64_t i, std::int64_t j) { return multiply(wide(x[i]), multiply(wide(p.alpha), conj_if(conjugate_y, wide(y[j])))); });
}

/// A = alpha x y' + A
template <class T>
void ger(const sdk::arguments::ger<T>& p) {
  rank_1(p, false);
}

/// A = alpha x y' + A
template <class T>
void geru(const sdk::arguments::ger<T>& p) {
  rank_1(p, false);
}

/// A = alpha x conj(y)' + A
template <class T>
void gerc(const sdk::arguments::ger<T>& p) {
  rank_1(p, true);
}

/// A += alpha x x', or alpha x conj(x)'
template <class T>
void symmetric_rank_1(const sdk::arguments::syr<T>& p, bool hermitian, const Matrix<T>& a) {
  if (p.alpha == T(0)) return;
  const Vector x(p.x, p.n, p.incx);
  add_to(a, hermitian,
         [&](std::int64_t i, std::int64_t j) { return multiply(wide(x[i]), multiply(wide(p.alpha), conj_if(hermitian, wide(x[j])))); });
}

/// A = alpha x x' + A, a triangle of it
template <class T>
void syr(const sdk::arguments::syr<T>& p) {
  symmetric_rank_1(p, false, dense_triangle(p.layout, p.uplo, p.n, p.a, p.lda));
}

/// A = alpha x conj(x)' + A, a triangle of it, alpha real
template <class T>
void her(const sdk::arguments::syr<T>& p) {
  symmetric_rank_1(p, true, dense_triangle(p.layout, p.uplo, p.n, p.a, p.lda));
}

/// syr, A packed
template <class T>
void spr(const sdk::arguments::syr<T>& p) {
  symmetric_rank_1(p, false, packed_triangle(p.layout, p.uplo, p.n, p.a));
}

/// her, A packed
template <class T>
void hpr(const sdk::arguments::syr<T>& p) {
  symmetric_rank_1(p, true, packed_triangle(p.layout, p.uplo, p.n, p.a));
}

/// A += alpha x y' + alpha y x', or alpha x conj(y)' + conj(alpha) y conj(x)'
template <class T>
void symmetric_rank_2(const sdk::arguments::syr<T>& p, bool hermitian, const Matrix<T>& a) {
  if (p.alpha == T(0)) return;
  const Vector x(p.x, p.n, p.incx);
  const Vector y(p.y, p.n, p.incy);
  const Wide<T> alpha = wide(p.alpha);
  add_to(a, hermitian, [&](std::int64_t i, std::int64_t j) {
    return multiply(wide(x[i]), multiply(alpha, conj_if(hermitian, wide(y[j])))) +
           multiply(wide(y[i]), conj_if(hermitian, multiply(alpha, wide(x[j]))));
  });
}

/// A = alpha x y' + alpha y x' + A, a triangle of it
template <class T>
void syr2(const sdk::arguments::syr<T>& p) {
  symmetric_rank_2(p, false, dense_triangle(p.layout, p.uplo, p.n, p.a, p.lda));
}

/// A = alpha x conj(y)' + conj(alpha) y conj(x)' + A, a triangle of it
template <class T>
void her2(const sdk::arguments::syr<T>& p) {
  symmetric_rank_2(p, true, dense_triangle(p.layout, p.uplo, p.n, p.a, p.lda));
}

/// syr2, A packed
template <class T>
void spr2(const sdk::arguments::syr<T>& p) {
  symmetric_rank_2(p, false, packed_triangle(p.layout, p.uplo, p.n, p.a));
}

/// her2, A packed
template <class T>
void hpr2(const sdk::arguments::syr<T>& p) {
  symmetric_rank_2(p, true, packed_triangle(p.layout, p.uplo, p.n, p.a));
}

}  // namespace
TENON_BLAS_ROUTINE(gemv)
TENON_BLAS_ROUTINE(gbmv)
TENON_BLAS_ROUTINE(symv)
TENON_BLAS_ROUTINE(hemv)
TENON_BLAS_ROUTINE(sbmv)
TENON_BLAS_ROUTINE(hbmv)
TENON_BLAS_ROUTINE(spmv)
TENON_BLAS_ROUTINE(hpmv)
TENON_BLAS_ROUTINE(trmv)
TENON_BLAS_ROUTINE(tbmv)
TENON_BLAS_ROUTINE(tpmv)
TENON_BLAS_ROUTINE(trsv)
TENON_BLAS_ROUTINE(tbsv)
TENON_BLAS_ROUTINE(tpsv)
TENON_BLAS_ROUTINE(ger)
TENON_BLAS_ROUTINE(geru)
TENON_BLAS_ROUTINE(gerc)
TENON_BLAS_ROUTINE(syr)
TENON_BLAS_ROUTINE(her)
TENON_BLAS_ROUTINE(spr)
TENON_BLAS_ROUTINE(hpr)
TENON_BLAS_ROUTINE(syr2)
TENON_BLAS_ROUTINE(her2)
TENON_BLAS_ROUTINE(spr2)
TENON_BLAS_ROUTINE(hpr2)
}  // namespace tenon::reference
