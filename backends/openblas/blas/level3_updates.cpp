// SPDX-License-Identifier: Apache-2.0
// level3_updates.cpp - updates of a stored triangle by products of matrices. It is divided into a few large blocks, computed by gemm except
// for those on the diagonal.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "level3.h"

namespace tenon::openblas {
namespace {

/// C = beta C for the stored triangle; with `hermitian`, the diagonal becomes real.
template <class T>
void scale_triangle(const Threads& threads, std::uint32_t uplo, std::int64_t n, T beta, T* c, std::int64_t ldc, bool hermitian) {
  if (beta == T(1)) return;
  const double bytes = static_cast<double>(n) * static_cast<double>(n) / 2 * sizeof(T);
  const std::int64_t pieces = piece_count(threads, bytes, smallest_matrix_piece);
  for_triangle(threads, n, uplo == TENON_UPPER, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (uplo == TENON_UPPER) {
        scale_block(1, n - i, beta, c + i * ldc + i, ldc);
      } else {
        scale_block(1, i + 1, beta, c + i * ldc, ldc);
      }
      if (hermitian) c[i * ldc + i] = T(real_part(c[i * ldc + i]));
    }
  });
}

/// Calls panel(row, rows, column, columns) for off-diagonal parts of C (n, n), block(begin, end) for diagonal ones; `work` is the total.
template <class Block, class Panel>
void for_triangle_blocks(const Threads& threads, std::uint32_t uplo, std::int64_t n, double work, const Block& block, const Panel& panel) {
  // Pieces of rows of a lower triangle, of columns of an upper one, reach from the matrix's edge to the diagonal.
  const std::int64_t pieces = piece_count(threads, work, smallest_product_block);
  for_triangle(threads, n, false, pieces, column_tile, [&](std::int64_t begin, std::int64_t end) {
    if (begin > 0) {
      uplo == TENON_LOWER ? panel(begin, end - begin, std::int64_t{0}, begin) : panel(std::int64_t{0}, begin, begin, end - begin);
    }
    block(begin, end);
  });
}

/// The block [begin, end) on the diagonal, halved recursively until a full block is small enough for a buffer on the stack.
template <class T>
void multiply_triangle(const MatrixProduct<T>& p, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t side = sizeof(T) > 8 ? 32 : 64;
  const std::int64_t n = end - begin;
  if (n > side) {
    const std::int64_t middle = begin + std::max(column_tile, n / 2 / column_tile * column_tile);
    multiply_triangle(p, begin, middle);
    if (p.uplo == TENON_LOWER) {
      gemm_or_gemv(p, middle, end - middle, begin, middle - begin, p.beta, p.c + middle * p.ldc + begin, p.ldc);
    } else {
      gemm_or_gemv(p, begin, middle - begin, middle, end - middle, p.beta, p.c + begin * p.ldc + middle, p.ldc);
    }
    multiply_triangle(p, middle, end);
    return;
  }
  alignas(64) std::byte bytes[side * side * sizeof(T)];
  T* const whole = reinterpret_cast<T*>(bytes);
  std::fill_n(whole, n * n, T(0));
  gemm_or_gemv(p, begin, n, begin, n, T(0), whole, n);
  for (std::int64_t i = 0; i < n; ++i) {
    T* const c = p.c + (begin + i) * p.ldc + begin;
    const std::int64_t last = p.uplo == TENON_LOWER ? i + 1 : n;
    for (std::int64_t j = p.uplo == TENON_LOWER ? 0 : i; j < last; ++j) {
      c[j] = p.beta == T(0) ? whole[i * n + j] : whole[i * n + j] + times(p.beta, c[j]);
    }
  }
}

template <class T>
void gemmt(const sdk::arguments::gemm<T>& given) {
  sdk::arguments::gemm<T> square = given;
  square.m = given.n;
  check_product("gemmt", square);
  if (square.n == 0) return;
  const MatrixProduct<T> p(square);
  if (p.scales_only()) {
    scale_triangle(Threads(given), p.uplo, p.n, p.beta, p.c, p.ldc, false);
    return;
  }
  for_triangle_blocks(
      Threads(given), p.uplo, p.n, work_of<T>(p.n, p.n, p.k) / 2,
      [&](std::int64_t begin, std::int64_t end) { multiply_triangle(p, begin, end); },
      [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
        gemm_or_gemv(p, row, rows, column, columns, p.beta, p.c + row * p.ldc + column, p.ldc);
      });
}

/// syrk, herk, syr2k or her2k, converted to row-major.
template <class T>
struct RankUpdate : sdk::arguments::syrk<T> {
  std::uint32_t transposition;  ///< of the second factor, or the first

  RankUpdate(const sdk::arguments::syrk<T>& p, bool hermitian)
      : sdk::arguments::syrk<T>(p), transposition(hermitian ? std::uint32_t{TENON_CONJ_TRANS} : std::uint32_t{TENON_TRANS}) {
    if (p.layout == TENON_LAYOUT_ROW_MAJOR) return;
    this->uplo = other_triangle(p.uplo);
    if (is_transposed(p.trans)) {
      this->trans = TENON_NO_TRANS;
    } else {
      this->trans = transposition;
    }
    // (alpha A B^H)^T = alpha conj(B) A^T: in her2k the two are swapped.
    if (hermitian && p.b != nullptr) {
      std::swap(this->a, this->b);
      std::swap(this->lda, this->ldb);
    }
  }

  const T* line(const T* matrix, std::int64_t ld, std::int64_t i) const { return matrix + i * (is_transposed(this->trans) ? 1 : ld); }
  /// C = factor op(X) op(Y) + share C, off the diagonal.
  void panel(T factor, const T* x, std::int64_t ldx, const T* y, std::int64_t ldy, T share, std::int64_t row, std::int64_t rows,
             std::int64_t column, std::int64_t columns) const {
    std::uint32_t trans_x = TENON_NO_TRANS;
    std::uint32_t trans_y = TENON_NO_TRANS;
    (is_transposed(this->trans) ? trans_x : trans_y) = transposition;
    cblas::gemm(trans_x, trans_y, to_int(rows), to_int(columns), to_int(this->k), factor, line(x, ldx, row), to_int(ldx),
                line(y, ldy, column), to_int(ldy), share, this->c + row * this->ldc + column, to_int(this->ldc));
  }
};

/// Computes diagonal blocks by block(p, begin, end), and panels by gemm: one product of A with itself, or two of A and B.
template <class T, class Block>
void update(const char* routine, const sdk::arguments::syrk<T>& given, bool hermitian, bool with_b, const Block& block) {
  check_sizes(routine, {{"n", given.n}, {"k", given.k}, {"lda", given.lda}, {"ldb", with_b ? given.ldb : 1}, {"ldc", given.ldc}});
  if (given.n == 0) return;
  sdk::arguments::syrk<T> used = given;
  if (!with_b) used.b = nullptr;
  const RankUpdate<T> p(used, hermitian);
  if (p.k == 0 || p.alpha == T(0)) {
    scale_triangle(Threads(p), p.uplo, p.n, p.beta, p.c, p.ldc, hermitian);
    return;
  }
  for_triangle_blocks(
      Threads(p), p.uplo, p.n, work_of<T>(p.n, p.n, p.k) * (with_b ? 1 : 0.5),
      [&](std::int64_t begin, std::int64_t end) { block(p, begin, end); },
      [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
        if (with_b) {
          p.panel(p.alpha, p.a, p.lda, p.b, p.ldb, p.beta, row, rows, column, columns);
          p.panel(hermitian ? conjugate(p.alpha) : p.alpha, p.b, p.ldb, p.a, p.lda, T(1), row, rows, column, columns);
        } else {
          p.panel(p.alpha, p.a, p.lda, p.a, p.lda, p.beta, row, rows, column, columns);
        }
      });
}

template <class T>
void syrk(const sdk::arguments::syrk<T>& given) {
  update("syrk", given, false, false, [](const RankUpdate<T>& p, std::int64_t begin, std::int64_t end) {
    cblas::syrk(p.uplo, p.trans, to_int(end - begin), to_int(p.k), p.alpha, p.line(p.a, p.lda, begin), to_int(p.lda), p.beta,
                p.c + begin * p.ldc + begin, to_int(p.ldc));
  });
}

template <class T>
void herk(const sdk::arguments::syrk<T>& given) {
  update("herk", given, true, false, [](const RankUpdate<T>& p, std::int64_t begin, std::int64_t end) {
    cblas::herk(p.uplo, p.trans, to_int(end - begin), to_int(p.k), p.alpha.real(), p.line(p.a, p.lda, begin), to_int(p.lda), p.beta.real(),
                p.c + begin * p.ldc + begin, to_int(p.ldc));
  });
}

template <class T>
void syr2k(const sdk::arguments::syrk<T>& given) {
  update("syr2k", given, false, true, [](const RankUpdate<T>& p, std::int64_t begin, std::int64_t end) {
    cblas::syr2k(p.uplo, p.trans, to_int(end - begin), to_int(p.k), p.alpha, p.line(p.a, p.lda, begin), to_int(p.lda),
                 p.line(p.b, p.ldb, begin), to_int(p.ldb), p.beta, p.c + begin * p.ldc + begin, to_int(p.ldc));
  });
}

template <class T>
void her2k(const sdk::arguments::syrk<T>& given) {
  update("her2k", given, true, true, [](const RankUpdate<T>& p, std::int64_t begin, std::int64_t end) {
    cblas::her2k(p.uplo, p.trans, to_int(end - begin), to_int(p.k), p.alpha, p.line(p.a, p.lda, begin), to_int(p.lda),
                 p.line(p.b, p.ldb, begin), to_int(p.ldb), p.beta.real(), p.c + begin * p.ldc + begin, to_int(p.ldc));
  });
}

}  // namespace

TENON_BLAS_ROUTINE(gemmt)
TENON_BLAS_ROUTINE(syrk)
TENON_BLAS_ROUTINE(herk)
TENON_BLAS_ROUTINE(syr2k)
TENON_BLAS_ROUTINE(her2k)

}  // namespace tenon::openblas
