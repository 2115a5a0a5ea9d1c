// SPDX-License-Identifier: Apache-2.0
// level3.cpp - matrices and matrices, divided into blocks of the result for the host's threads. Everything is converted to row-major first:
// a column-major matrix is the transposed row-major one. Triangles are divided into a few large blocks, computed by gemm except for those
// on the diagonal.
#include <cstddef>

#include "cblas.h"
#include "split.h"

namespace tenon::openblas {
namespace {

/// The smallest number of f32 multiply-adds worth handing to a thread; other types take longer (see `weight`).
constexpr double smallest_block = 1e6;
/// The same for products with one row or column, which are bound by memory bandwidth.
constexpr double smallest_vector_block = 128e3;
/// The same in bytes, for results that are only scaled, added or copied.
constexpr double smallest_bytes = 524288;

template <class T>
constexpr double weight = static_cast<double>(sizeof(T)) / 4 * (sdk::is_complex<T> ? 2 : 1);

template <class T>
double work_of(std::int64_t m, std::int64_t n, std::int64_t k) {
  return static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k) * weight<T>;
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
  for_pieces(threads, m, piece_count(threads, bytes, smallest_bytes), 1,
             [&](std::int64_t, std::int64_t begin, std::int64_t end) { scale_block(end - begin, n, beta, c + begin * ldc, ldc); });
}

/// C = beta C for the stored triangle; with `hermitian`, the diagonal becomes real.
template <class T>
void scale_triangle(const Threads& threads, std::uint32_t uplo, std::int64_t n, T beta, T* c, std::int64_t ldc, bool hermitian) {
  if (beta == T(1)) return;
  const double bytes = static_cast<double>(n) * static_cast<double>(n) / 2 * sizeof(T);
  for_triangle(threads, n, uplo == TENON_UPPER, piece_count(threads, bytes, smallest_bytes), 1, [&](std::int64_t begin, std::int64_t end) {
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

/// A product of row-major matrices.
template <class T>
struct Product {
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

  explicit Product(const sdk::arguments::gemm<T>& p)
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

/// gemm, or gemv if C is one row or column and its vector is not conjugated, because gemm would pack the matrix first.
template <class T>
void multiply(const Product<T>& p, std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns, T beta, T* c,
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

template <class T>
double smallest_of(std::int64_t m, std::int64_t n) {
  return m == 1 || n == 1 ? smallest_vector_block : smallest_block;
}

template <class T>
void multiply_block(const Product<T>& p, const Tiling& tiling, std::int64_t block) {
  const std::int64_t row = block / tiling.column_blocks * tiling.rows;
  const std::int64_t column = block % tiling.column_blocks * tiling.columns;
  multiply(p, row, std::min(tiling.rows, p.m - row), column, std::min(tiling.columns, p.n - column), p.beta, p.c + row * p.ldc + column,
           p.ldc);
}

template <class T>
void gemm(const sdk::arguments::gemm<T>& given) {
  check_product("gemm", given);
  if (given.m == 0 || given.n == 0) return;
  const Product<T> p(given);
  const Threads threads(given);
  if (p.scales_only()) {
    scale_all(threads, p.m, p.n, p.beta, p.c, p.ldc);
    return;
  }
  const std::int64_t pieces = piece_count(threads, work_of<T>(p.m, p.n, p.k), smallest_of<T>(p.m, p.n));
  if (pieces == 1) {
    multiply(p, 0, p.m, 0, p.n, p.beta, p.c, p.ldc);
    return;
  }
  const Tiling tiling = tile_into(p.m, p.n, pieces);
  threads.parallel_for(tiling.blocks(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) multiply_block(p, tiling, block);
  });
}

/// Calls panel(row, rows, column, columns) for off-diagonal parts of C (n, n), block(begin, end) for diagonal ones; `work` is the total.
template <class Block, class Panel>
void for_triangle_blocks(const Threads& threads, std::uint32_t uplo, std::int64_t n, double work, const Block& block, const Panel& panel) {
  // Pieces of rows of a lower triangle, of columns of an upper one, reach from the matrix's edge to the diagonal.
  for_triangle(threads, n, false, piece_count(threads, work, smallest_block), column_tile, [&](std::int64_t begin, std::int64_t end) {
    if (begin > 0) {
      uplo == TENON_LOWER ? panel(begin, end - begin, std::int64_t{0}, begin) : panel(std::int64_t{0}, begin, begin, end - begin);
    }
    block(begin, end);
  });
}

/// The block [begin, end) on the diagonal, halved recursively until a full block is small enough for a buffer on the stack.
template <class T>
void multiply_triangle(const Product<T>& p, std::int64_t begin, std::int64_t end) {
  constexpr std::int64_t side = sizeof(T) > 8 ? 32 : 64;
  const std::int64_t n = end - begin;
  if (n > side) {
    const std::int64_t middle = begin + std::max(column_tile, n / 2 / column_tile * column_tile);
    multiply_triangle(p, begin, middle);
    if (p.uplo == TENON_LOWER) {
      multiply(p, middle, end - middle, begin, middle - begin, p.beta, p.c + middle * p.ldc + begin, p.ldc);
    } else {
      multiply(p, begin, middle - begin, middle, end - middle, p.beta, p.c + begin * p.ldc + middle, p.ldc);
    }
    multiply_triangle(p, middle, end);
    return;
  }
  alignas(64) std::byte bytes[side * side * sizeof(T)];
  T* const whole = reinterpret_cast<T*>(bytes);
  std::fill_n(whole, n * n, T(0));
  multiply(p, begin, n, begin, n, T(0), whole, n);
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
  const Product<T> p(square);
  if (p.scales_only()) {
    scale_triangle(Threads(given), p.uplo, p.n, p.beta, p.c, p.ldc, false);
    return;
  }
  for_triangle_blocks(
      Threads(given), p.uplo, p.n, work_of<T>(p.n, p.n, p.k) / 2,
      [&](std::int64_t begin, std::int64_t end) { multiply_triangle(p, begin, end); },
      [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
        multiply(p, row, rows, column, columns, p.beta, p.c + row * p.ldc + column, p.ldc);
      });
}

/// Calls product(side, uplo, m, n, alpha, a, lda, b, ldb, beta, c, ldc) on columns of C (side left) or rows, which are independent.
template <class T, class Multiply>
void multiply_symmetric(const char* routine, const sdk::arguments::symm<T>& p, const Multiply& product) {
  check_sizes(routine, {{"m", p.m}, {"n", p.n}, {"lda", p.lda}, {"ldb", p.ldb}, {"ldc", p.ldc}});
  if (p.m == 0 || p.n == 0) return;
  const bool column_major = p.layout == TENON_LAYOUT_COLUMN_MAJOR;
  const std::int64_t m = column_major ? p.n : p.m;
  const std::int64_t n = column_major ? p.m : p.n;
  const std::uint32_t side = column_major ? other_side(p.side) : p.side;
  const std::uint32_t uplo = column_major ? other_triangle(p.uplo) : p.uplo;
  if (p.alpha == T(0)) {
    scale_all(Threads(p), m, n, p.beta, p.c, p.ldc);
    return;
  }
  const bool left = side == TENON_LEFT;
  const std::int64_t pieces = piece_count(Threads(p), work_of<T>(m, n, left ? m : n), smallest_block);
  for_pieces(Threads(p), left ? n : m, pieces, left ? column_tile : row_tile, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t step = left ? 1 : p.ldb;
    product(side, uplo, to_int(left ? m : end - begin), to_int(left ? end - begin : n), p.alpha, p.a, to_int(p.lda), p.b + begin * step,
            to_int(p.ldb), p.beta, p.c + begin * (left ? 1 : p.ldc), to_int(p.ldc));
  });
}

template <class T>
void symm(const sdk::arguments::symm<T>& p) {
  multiply_symmetric("symm", p, [](auto... arguments) { cblas::symm(arguments...); });
}

template <class T>
void hemm(const sdk::arguments::symm<T>& p) {
  multiply_symmetric("hemm", p, [](auto... arguments) { cblas::hemm(arguments...); });
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

/// Calls compute(side, uplo, trans, diag, m, n, alpha, a, lda, b, ldb) on columns of B (side left) or rows, which are independent.
template <class T, class Compute>
void on_triangular(const char* routine, const sdk::arguments::trmm<T>& p, const Compute& compute) {
  check_sizes(routine, {{"m", p.m}, {"n", p.n}, {"lda", p.lda}, {"ldb", p.ldb}});
  if (p.m == 0 || p.n == 0) return;
  const bool column_major = p.layout == TENON_LAYOUT_COLUMN_MAJOR;
  const std::int64_t m = column_major ? p.n : p.m;
  const std::int64_t n = column_major ? p.m : p.n;
  const std::uint32_t side = column_major ? other_side(p.side) : p.side;
  const std::uint32_t uplo = column_major ? other_triangle(p.uplo) : p.uplo;
  if (p.alpha == T(0)) {
    scale_all(Threads(p), m, n, T(0), p.b, p.ldb);
    return;
  }
  const bool left = side == TENON_LEFT;
  const std::int64_t pieces = piece_count(Threads(p), work_of<T>(m, n, left ? m : n) / 2, smallest_block);
  for_pieces(Threads(p), left ? n : m, pieces, left ? column_tile : row_tile, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    compute(side, uplo, p.trans, p.diag, to_int(left ? m : end - begin), to_int(left ? end - begin : n), p.alpha, p.a, to_int(p.lda),
            p.b + begin * (left ? 1 : p.ldb), to_int(p.ldb));
  });
}

template <class T>
void trmm(const sdk::arguments::trmm<T>& p) {
  on_triangular("trmm", p, [](auto... arguments) { cblas::trmm(arguments...); });
}

template <class T>
void trsm(const sdk::arguments::trmm<T>& p) {
  on_triangular("trsm", p, [](auto... arguments) { cblas::trsm(arguments...); });
}

/// How geam reads an operand.
enum class Read { none, plain, transposed };

/// An operand scale op(X)(i, j), which is not read if scale is 0.
template <class T>
struct Operand {
  const T* x;
  std::int64_t ld;
  T scale;
  bool conjugated;

  template <Read read>
  T at(std::int64_t i, std::int64_t j) const {
    if constexpr (read == Read::none) {
      return T(0);
    } else {
      const T value = read == Read::plain ? x[i * ld + j] : x[j * ld + i];
      return times(scale, conjugated ? conjugate(value) : value);
    }
  }
};

/// Calls body with the operand's Read as a constant.
template <class Body>
void with_read(bool absent, bool transposed, const Body& body) {
  if (absent) {
    body(std::integral_constant<Read, Read::none>{});
  } else if (transposed) {
    body(std::integral_constant<Read, Read::transposed>{});
  } else {
    body(std::integral_constant<Read, Read::plain>{});
  }
}

template <class T>
void geam(const sdk::arguments::geam<T>& p) {
  const bool column_major = p.layout == TENON_LAYOUT_COLUMN_MAJOR;
  const std::int64_t m = column_major ? p.n : p.m;
  const std::int64_t n = column_major ? p.m : p.n;
  const auto conjugated = [](std::uint32_t trans) { return trans == TENON_CONJ_TRANS || trans == TENON_CONJ_NO_TRANS; };
  const Operand<T> a{p.a, p.lda, p.alpha, conjugated(p.trans_a)};
  const Operand<T> b{p.b, p.ldb, p.beta, conjugated(p.trans_b)};
  const double bytes = static_cast<double>(m) * static_cast<double>(n) * sizeof(T);
  // Transposed operands are read by squares of whole cache lines.
  constexpr std::int64_t square = 32;
  with_read(p.alpha == T(0), is_transposed(p.trans_a), [&](auto read_a) {
    with_read(p.beta == T(0), is_transposed(p.trans_b), [&](auto read_b) {
      constexpr bool by_squares = read_a() == Read::transposed || read_b() == Read::transposed;
      const std::int64_t width = by_squares ? square : std::max<std::int64_t>(n, 1);
      for_pieces(Threads(p), m, piece_count(Threads(p), bytes, smallest_bytes), square,
                 [&](std::int64_t, std::int64_t begin, std::int64_t end) {
                   for (std::int64_t row = begin; row < end; row += square) {
                     for (std::int64_t column = 0; column < n; column += width) {
                       for (std::int64_t i = row; i < std::min(end, row + square); ++i) {
                         T* const c = p.c + i * p.ldc;
                         const std::int64_t last = std::min(n, column + width);
                         for (std::int64_t j = column; j < last; ++j) c[j] = a.template at<read_a()>(i, j) + b.template at<read_b()>(i, j);
                       }
                     }
                   }
                 });
    });
  });
}

template <class T>
void dgmm(const sdk::arguments::dgmm<T>& p) {
  const bool column_major = p.layout == TENON_LAYOUT_COLUMN_MAJOR;
  const std::int64_t m = column_major ? p.n : p.m;
  const std::int64_t n = column_major ? p.m : p.n;
  if (m == 0 || n == 0) return;
  const bool by_rows = (p.side == TENON_LEFT) != column_major;
  const T* const x = first(p.x, by_rows ? m : n, p.incx);
  const double bytes = static_cast<double>(m) * static_cast<double>(n) * sizeof(T);
  for_pieces(Threads(p), m, piece_count(Threads(p), bytes, smallest_bytes), 1, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const T* const a = p.a + i * p.lda;
      T* const c = p.c + i * p.ldc;
      if (by_rows) {
        const T factor = x[i * p.incx];
        for (std::int64_t j = 0; j < n; ++j) c[j] = times(factor, a[j]);
      } else if (p.incx == 1) {
        for (std::int64_t j = 0; j < n; ++j) c[j] = times(x[j], a[j]);
      } else {
        for (std::int64_t j = 0; j < n; ++j) c[j] = times(x[j * p.incx], a[j]);
      }
    }
  });
}

/// Divides the batch into whole products if there are enough for the threads, else into blocks of each.
template <class P>
void multiply_batch(const char* routine, const P& p) {
  check_product(routine, p);
  if (p.m == 0 || p.n == 0 || p.batch == 0) return;
  using T = decltype(p.alpha);
  const Threads threads(p);
  const bool column_major = p.layout == TENON_LAYOUT_COLUMN_MAJOR;
  const std::int64_t m = column_major ? p.n : p.m;
  const std::int64_t n = column_major ? p.m : p.n;
  const double work = work_of<T>(m, n, std::max<std::int64_t>(p.k, 1));
  const double smallest = smallest_of<T>(m, n);
  std::int64_t pieces = 1;
  if (work * static_cast<double>(p.batch) >= 2 * smallest) pieces = target_blocks(threads.count(), p.batch, work / smallest);
  const Tiling tiling = tile_into(m, n, pieces);
  const double block_work = work / static_cast<double>(tiling.blocks());
  const std::int64_t tasks = p.batch * tiling.blocks();
  const std::int64_t grain = static_cast<std::int64_t>(std::min(static_cast<double>(tasks), std::max(1.0, smallest / block_work)));
  threads.parallel_for(tasks, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t task = begin; task < end; ++task) {
      const Product<T> one(product(p, task / tiling.blocks()));
      if (!one.scales_only()) {
        multiply_block(one, tiling, task % tiling.blocks());
      } else if (task % tiling.blocks() == 0) {
        scale_block(one.m, one.n, one.beta, one.c, one.ldc);
      }
    }
  });
}

template <class T>
void gemm_batched(const sdk::arguments::gemm_batched<T>& p) {
  multiply_batch("gemm_batched", p);
}

template <class T>
void gemm_strided_batched(const sdk::arguments::gemm_strided_batched<T>& p) {
  multiply_batch("gemm_strided_batched", p);
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

}  // namespace tenon::openblas
