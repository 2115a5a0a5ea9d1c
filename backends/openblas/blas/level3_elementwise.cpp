// SPDX-License-Identifier: Apache-2.0
// level3_elementwise.cpp - sums of two matrices, and matrices times diagonal ones: operations element by element, on threads that divide
// the rows.
#include <algorithm>
#include <type_traits>

#include "level3.h"

namespace tenon::openblas {
namespace {

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
  const std::int64_t pieces = piece_count(Threads(p), bytes, smallest_matrix_piece);
  // Transposed operands are read by squares of whole cache lines.
  constexpr std::int64_t square = 32;
  with_read(p.alpha == T(0), is_transposed(p.trans_a), [&](auto read_a) {
    with_read(p.beta == T(0), is_transposed(p.trans_b), [&](auto read_b) {
      constexpr bool by_squares = read_a() == Read::transposed || read_b() == Read::transposed;
      const std::int64_t width = by_squares ? square : std::max<std::int64_t>(n, 1);
      for_pieces(Threads(p), m, pieces, square, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
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
  const std::int64_t pieces = piece_count(Threads(p), bytes, smallest_matrix_piece);
  for_pieces(Threads(p), m, pieces, 1, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
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

}  // namespace

TENON_BLAS_ROUTINE(geam)
TENON_BLAS_ROUTINE(dgmm)

}  // namespace tenon::openblas
