// SPDX-License-Identifier: Apache-2.0
// BLAS level 3: matrices; then the extensions. Sums are accumulated in f64; elements outside a triangle are not read.
//
// Source  Dongarra, Du Croz, Duff, Hammarling: A Set of Level 3 Basic Linear Algebra Subprograms (1990), except for the extensions.
#include <algorithm>
#include <vector>

#include "blas/views.h"

namespace tenon::reference {
namespace {

/// C(i, j) = alpha sum over p < k of left(i, p) right(p, j) + beta C(i, j), where C is stored; a Hermitian C has a real diagonal.
template <class T, class Left, class Right>
void multiply_add(T alpha, const Left& left, const Right& right, std::int64_t k, T beta, const Matrix<T>& c, bool hermitian = false) {
  if (alpha == T(0)) k = 0;
  if (k == 0 && beta == T(1)) return;
  // The right factor is widened once into rows, so that the innermost loop is contiguous for any layout.
  std::vector<Wide<T>> rows(static_cast<std::size_t>(k * c.n));
  for (std::int64_t p = 0; p < k; ++p) {
    for (std::int64_t j = 0; j < c.n; ++j) rows[static_cast<std::size_t>(p * c.n + j)] = right(p, j);
  }
  std::vector<Wide<T>> sums(static_cast<std::size_t>(c.n));
  for (std::int64_t i = 0; i < c.m; ++i) {
    const Range columns = c.columns(i);
    Wide<T>* const sum = sums.data();
    std::fill(sums.begin(), sums.end(), Wide<T>(0));
    for (std::int64_t p = 0; p < k; ++p) {
      const Wide<T> factor = left(i, p);
      const Wide<T>* const row = rows.data() + p * c.n;
      for (std::int64_t j = columns.begin; j < columns.end; ++j) sum[j] += multiply(factor, row[j]);
    }
    for (std::int64_t j = columns.begin; j < columns.end; ++j) {
      const bool is_real = hermitian && i == j;
      c.at(i, j) = narrow<T>(real_if(is_real, scaled(wide(alpha), sum[j])) + scaled(wide(beta), real_if(is_real, c(i, j))));
    }
  }
}

/// C = alpha op(A) op(B) + beta C
template <class T>
void multiply_add(const sdk::arguments::gemm<T>& p, const Matrix<T>& c) {
  const bool transposes_a = p.trans_a == TENON_TRANS || p.trans_a == TENON_CONJ_TRANS;
  const bool transposes_b = p.trans_b == TENON_TRANS || p.trans_b == TENON_CONJ_TRANS;
  const auto a = dense(p.layout, transposes_a ? p.k : c.m, transposes_a ? c.m : p.k, p.a, p.lda);
  const auto b = dense(p.layout, transposes_b ? p.n : p.k, transposes_b ? p.k : p.n, p.b, p.ldb);
  multiply_add(p.alpha, a.op(p.trans_a), b.op(p.trans_b), p.k, p.beta, c);
}

/// C = alpha op(A) op(B) + beta C
template <class T>
void gemm(const sdk::arguments::gemm<T>& p) {
  multiply_add(p, dense(p.layout, p.m, p.n, p.c, p.ldc));
}

/// C = alpha op(A) op(B) + beta C, a triangle of it
template <class T>
void gemmt(const sdk::arguments::gemm<T>& p) {
  multiply_add(p, dense_triangle(p.layout, p.uplo, p.n, p.c, p.ldc));
}

/// C = alpha A B + beta C, or alpha B A + beta C, A symmetric or Hermitian
template <class T>
void multiply_symmetric(const sdk::arguments::symm<T>& p, bool hermitian) {
  const Symmetric<T> a{dense_triangle(p.layout, p.uplo, p.side == TENON_LEFT ? p.m : p.n, p.a, p.lda), hermitian};
  const auto b = dense(p.layout, p.m, p.n, p.b, p.ldb);
  const auto c = dense(p.layout, p.m, p.n, p.c, p.ldc);
  if (p.side == TENON_LEFT) {
    multiply_add(p.alpha, a, b, p.m, p.beta, c);
  } else {
    multiply_add(p.alpha, b, a, p.n, p.beta, c);
  }
}

/// C = alpha A B + beta C (side left), alpha B A + beta C (right), A = A'
template <class T>
void symm(const sdk::arguments::symm<T>& p) {
  multiply_symmetric(p, false);
}

/// C = alpha A B + beta C (side left), alpha B A + beta C (right), A = conj(A)'
template <class T>
void hemm(const sdk::arguments::symm<T>& p) {
  multiply_symmetric(p, true);
}

/// op(A), n x k. With conj(A)' for A, A conj(A)' is conj(A)' A: one formula covers each trans.
template <class T>
Matrix<const T> left_factor(const sdk::arguments::syrk<T>& p, const T* a, std::int64_t lda) {
  const bool transposed = p.trans != TENON_NO_TRANS;
  return dense(p.layout, transposed ? p.k : p.n, transposed ? p.n : p.k, a, lda).op(p.trans);
}

/// C = alpha A A' + beta C, or alpha A conj(A)' + beta C, with op(A) for A
template <class T>
void rank_k(const sdk::arguments::syrk<T>& p, bool hermitian) {
  const auto a = left_factor(p, p.a, p.lda);
  const auto right = [&](std::int64_t q, std::int64_t j) { return conj_if(hermitian, a(j, q)); };
  multiply_add(p.alpha, a, right, p.k, p.beta, dense_triangle(p.layout, p.uplo, p.n, p.c, p.ldc), hermitian);
}

/// C = alpha A A' + beta C (trans none), alpha A' A + beta C (trans), a triangle of it
template <class T>
void syrk(const sdk::arguments::syrk<T>& p) {
  rank_k(p, false);
}

/// C = alpha A conj(A)' + beta C (trans none), alpha conj(A)' A + beta C (conj_trans), a triangle of it, alpha and beta real
template <class T>
void herk(const sdk::arguments::syrk<T>& p) {
  rank_k(p, true);
}

/// C = alpha A B' + alpha B A' + beta C, or alpha A conj(B)' + conj(alpha) B conj(A)' + beta C, with op(A), op(B) for A, B: one product of
/// [alpha A, alpha B] and [B, A]', 2k deep.
template <class T>
void rank_2k(const sdk::arguments::syrk<T>& p, bool hermitian) {
  const auto a = left_factor(p, p.a, p.lda);
  const auto b = left_factor(p, p.b, p.ldb);
  const Wide<T> alpha = wide(p.alpha);
  const auto left = [&](std::int64_t i, std::int64_t q) {
    return q < p.k ? multiply(alpha, a(i, q)) : multiply(conj_if(hermitian, alpha), b(i, q - p.k));
  };
  const auto right = [&](std::int64_t q, std::int64_t j) { return conj_if(hermitian, q < p.k ? b(j, q) : a(j, q - p.k)); };
  const std::int64_t depth = p.alpha == T(0) ? 0 : 2 * p.k;
  multiply_add(T(1), left, right, depth, p.beta, dense_triangle(p.layout, p.uplo, p.n, p.c, p.ldc), hermitian);
}

/// C = alpha A B' + alpha B A' + beta C (trans none), alpha A' B + alpha B' A + beta C (trans), a triangle of it
template <class T>
void syr2k(const sdk::arguments::syrk<T>& p) {
  rank_2k(p, false);
}

/// C = alpha A conj(B)' + conj(alpha) B conj(A)' + beta C (trans none), alpha conj(A)' B + conj(alpha) conj(B)' A + beta C (conj_trans), a
/// triangle of it, beta real
template <class T>
void her2k(const sdk::arguments::syrk<T>& p) {
  rank_2k(p, true);
}

/// f(A, x) for each column x of B and A = op(A), or for each row x and A = op(A)': B op(A) = (op(A)' B')'
template <class T, class Function>
void for_each_line(const sdk::arguments::trmm<T>& p, const Function& f) {
  if (p.m == 0 || p.n == 0) return;
  const bool left = p.side == TENON_LEFT;
  const Triangular<T> a(dense_triangle(p.layout, p.uplo, left ? p.m : p.n, p.a, p.lda), p.trans, p.diag);
  const Triangular<T> factor = left ? a : a.transposed();
  const Matrix<T> b = dense(p.layout, p.m, p.n, p.b, p.ldb);
  const Matrix<T> lines = left ? b : b.transposed();
  for (std::int64_t j = 0; j < lines.n; ++j) f(factor, lines.column(j));
}

/// B = alpha op(A) B (side left), alpha B op(A) (right), A triangular
template <class T>
void trmm(const sdk::arguments::trmm<T>& p) {
  for_each_line(p, [&](const Triangular<T>& a, const Vector<T>& x) { a.multiply_into(x, p.alpha); });
}

/// B = alpha op(A)^-1 B (side left), alpha B op(A)^-1 (right), A triangular
template <class T>
void trsm(const sdk::arguments::trmm<T>& p) {
  for_each_line(p, [&](const Triangular<T>& a, const Vector<T>& x) { a.solve_into(x, p.alpha); });
}

/// C = alpha op(A) + beta op(B); a matrix whose factor is 0 is not read.
template <class T>
void geam(const sdk::arguments::geam<T>& p) {
  const auto a = dense(p.layout, p.m, p.n, p.a, p.lda).op(p.trans_a);
  const auto b = dense(p.layout, p.m, p.n, p.b, p.ldb).op(p.trans_b);
  const auto c = dense(p.layout, p.m, p.n, p.c, p.ldc);
  const auto term = [](T factor, const Matrix<const T>& x, std::int64_t i, std::int64_t j) {
    return factor == T(0) ? Wide<T>(0) : scaled(wide(factor), x(i, j));
  };
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) c.at(i, j) = narrow<T>(term(p.alpha, a, i, j) + term(p.beta, b, i, j));
  }
}

/// C = diag(x) A (side left), A diag(x) (right)
template <class T>
void dgmm(const sdk::arguments::dgmm<T>& p) {
  const auto a = dense(p.layout, p.m, p.n, p.a, p.lda);
  const auto c = dense(p.layout, p.m, p.n, p.c, p.ldc);
  const Vector x(p.x, p.side == TENON_LEFT ? p.m : p.n, p.incx);
  for (std::int64_t i = 0; i < p.m; ++i) {
    for (std::int64_t j = 0; j < p.n; ++j) c.at(i, j) = narrow<T>(multiply(wide(x[p.side == TENON_LEFT ? i : j]), a(i, j)));
  }
}

/// gemm of each triple
template <class T>
void gemm_batched(const sdk::arguments::gemm_batched<T>& p) {
  for (std::int64_t i = 0; i < p.batch; ++i) gemm(product(p, i));
}

/// gemm of each triple
template <class T>
void gemm_strided_batched(const sdk::arguments::gemm_strided_batched<T>& p) {
  for (std::int64_t i = 0; i < p.batch; ++i) gemm(product(p, i));
}

}  // namespace
TENON_BLAS_ROUTINE(gemm)
TENON_BLAS_ROUTINE(gemmt)
TENON_BLAS_ROUTINE(symm)
TENON_BLAS_ROUTINE(hemm)
TENON_BLAS_ROUTINE(syrk)
TENON_BLAS_ROUTINE(herk)
TENON_BLAS_ROUTINE(syr2k)
TENON_BLAS_ROUTINE(her2k)
TENON_BLAS_ROUTINE(trmm)
TENON_BLAS_ROUTINE(trsm)
TENON_BLAS_ROUTINE(geam)
TENON_BLAS_ROUTINE(dgmm)
TENON_BLAS_ROUTINE(gemm_batched)
TENON_BLAS_ROUTINE(gemm_strided_batched)
}  // namespace tenon::reference
