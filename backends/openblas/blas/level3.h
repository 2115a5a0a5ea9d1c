// SPDX-License-Identifier: Apache-2.0
// level3.h - what the routines of level 3 share: the work of products, products of row-major matrices, and results that are only scaled.
// Routines convert everything to row-major first: a column-major matrix is the transposed row-major one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "cblas.h"
#include "split.h"

namespace tenon::openblas {

/// The time of a multiply-add of T, in those of f32.
template <class T>
inline constexpr double relative_cost = static_cast<double>(sizeof(T)) / 4 * (sdk::is_complex<T> ? 2 : 1);

/// The work of a product, in multiply-adds of f32 (see smallest_product_block).
template <class T>
double work_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * relative_cost<T>;
}

/// C = beta C, without reading C if beta is 0. C (rows, columns), row-major.
template <class T>
void scale_block(std::int64_t rows, std::int64_t columns, T beta, T* c, std::int64_t ldc) {
  if (beta == T(1)) return;
  for (std::int64_t i = 0; i < rows; ++i) {
    if (beta == T(0)) {
      std::fill_n(c + i * ldc, columns, T(0));
    } else {
      cblas::scal(to_int(columns), beta, c + i * ldc, 1);
    }
  }
}

template <class T>
void scale_all(const Threads& threads, std::int64_t m, std::int64_t n, T beta, T* c, std::int64_t ldc) {
  const double bytes = static_cast<double>(m) * static_cast<double>(n) * sizeof(T);
  for_pieces(threads, m, piece_count(threads, bytes, smallest_matrix_piece), 1,
             [&](std::int64_t, std::int64_t begin, std::int64_t end) { scale_block(end - begin, n, beta, c + begin * ldc, ldc); });
}

/// A product of row-major matrices.
template <class T>
struct MatrixProduct {
  std::uint32_t uplo, trans_a, trans_b;
  std::int64_t m, n, k;
  T alpha;
  const T* a;
  std::int64_t lda;
  const T* b;
  std::int64_t ldb;
  T beta;
  T* c;
  std::int64_t ldc;

  explicit MatrixProduct(const sdk::arguments::gemm<T>& p)
      : uplo(p.uplo),
        trans_a(p.trans_a),
        trans_b(p.trans_b),
        m(p.m),
        n(p.n),
        k(p.k),
        alpha(p.alpha),
        a(p.a),
        lda(p.lda),
        b(p.b),
        ldb(p.ldb),
        beta(p.beta),
        c(p.c),
        ldc(p.ldc) {
    if (p.layout == TENON_LAYOUT_ROW_MAJOR) return;
    uplo = other_triangle(uplo);
    std::swap(m, n);
    std::swap(trans_a, trans_b);
    std::swap(a, b);
    std::swap(lda, ldb);
  }

  bool scales_only() const { return k == 0 || alpha == T(0); }
  const T* a_from(std::int64_t row) const { return a + row * (is_transposed(trans_a) ? 1 : lda); }
  const T* b_from(std::int64_t column) const { return b + column * (is_transposed(trans_b) ? ldb : 1); }
};

/// The product of some rows and columns, by gemm, or by gemv if C is one row or column and its vector is not conjugated, because gemm would
/// pack the matrix first.
template <class T>
void gemm_or_gemv(const MatrixProduct<T>& p, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, T beta, T* c,
                  std::int64_t ldc) {
  const T* const a = p.a_from(row);
  const T* const b = p.b_from(column);
  const int lda = to_int(p.lda);
  const int ldb = to_int(p.ldb);
  const int k = to_int(p.k);
  if (columns == 1 && (!sdk::is_complex<T> || p.trans_b == TENON_NO_TRANS || p.trans_b == TENON_TRANS)) {
    const bool transposed = is_transposed(p.trans_a);
    cblas::gemv(TENON_LAYOUT_ROW_MAJOR, p.trans_a, transposed ? k : to_int(rows), transposed ? to_int(rows) : k, p.alpha, a, lda, b,
                is_transposed(p.trans_b) ? 1 : ldb, beta, c, to_int(ldc));
  } else if (rows == 1 && (!sdk::is_complex<T> || p.trans_a == TENON_NO_TRANS || p.trans_a == TENON_TRANS)) {
    const bool transposed = is_transposed(p.trans_b);
    cblas::gemv(TENON_LAYOUT_ROW_MAJOR, in_other_layout(p.trans_b), transposed ? to_int(columns) : k, transposed ? k : to_int(columns),
                p.alpha, b, ldb, a, is_transposed(p.trans_a) ? lda : 1, beta, c, 1);
  } else {
    cblas::gemm(p.trans_a, p.trans_b, to_int(rows), to_int(columns), k, p.alpha, a, lda, b, ldb, beta, c, to_int(ldc));
  }
}

template <class P>
void check_product(const char* routine, const P& p) {
  check_sizes(routine, {{"m", p.m}, {"n", p.n}, {"k", p.k}, {"lda", p.lda}, {"ldb", p.ldb}, {"ldc", p.ldc}});
}

}  // namespace tenon::openblas
