// SPDX-License-Identifier: Apache-2.0
// level2_updates.cpp - updates of a matrix by one or two products of vectors, divided among threads by the result or by the stored
// triangle. Packed complex matrices run on one thread.
#include "level2.h"

namespace tenon::openblas {
namespace {

/// Calls update(layout, m, n, alpha, x, incx, y, incy, a, lda) on rows of a row-major A, or columns of a column-major one.
template <class T, class Update>
void update_general(const char* routine, const sdk::arguments::ger<T>& p, const Update& update) {
  check_sizes(routine, {{"m", p.m},
                        {"n", p.n},
                        {"lda", p.lda},
                        {"incx", p.incx},
                        {"incy", p.incy},
                        {"m * incx", offset_of_first(p.m, p.incx)},
                        {"n * incy", offset_of_first(p.n, p.incy)}});
  if (p.m == 0 || p.n == 0 || p.alpha == T(0)) return;
  const bool by_rows = p.layout == TENON_LAYOUT_ROW_MAJOR;
  const std::int64_t pieces = pieces_of<T>(Threads(p), static_cast<double>(p.m) * static_cast<double>(p.n));
  // Lines themselves are divided only if there are few.
  const bool by_row = by_rows == ((by_rows ? p.m : p.n) >= 4 * pieces);
  for_pieces(Threads(p), by_row ? p.m : p.n, pieces, 4, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    const std::int64_t row = by_row ? begin : 0, rows = by_row ? end - begin : p.m;
    const std::int64_t column = by_row ? 0 : begin, columns = by_row ? p.n : end - begin;
    update(p.layout, to_int(rows), to_int(columns), p.alpha, slice(p.x, p.m, p.incx, row, row + rows), to_int(p.incx),
           slice(p.y, p.n, p.incy, column, column + columns), to_int(p.incy), element(p.layout, p.a, p.lda, row, column), to_int(p.lda));
  });
}

template <class T>
void ger(const sdk::arguments::ger<T>& p) {
  update_general("ger", p, [](auto... arguments) { cblas::geru(arguments...); });
}

template <class T>
void geru(const sdk::arguments::ger<T>& p) {
  update_general("geru", p, [](auto... arguments) { cblas::geru(arguments...); });
}

template <class T>
void gerc(const sdk::arguments::ger<T>& p) {
  update_general("gerc", p, [](auto... arguments) { cblas::gerc(arguments...); });
}

/// Checks the arguments. False if there is nothing to add.
template <class T>
bool begin_syr(const char* routine, const sdk::arguments::syr<T>& p, bool with_y, bool dense) {
  check_sizes(routine, {{"n", p.n},
                        {"lda", dense ? p.lda : 0},
                        {"incx", p.incx},
                        {"incy", with_y ? p.incy : 1},
                        {"n * incx", offset_of_first(p.n, p.incx)},
                        {"n * incy", with_y ? offset_of_first(p.n, p.incy) : 0}});
  return p.n != 0 && p.alpha != T(0);
}

/// Divides the stored triangle's lines among threads: block(begin, end) on the diagonal, and panels of at most `lines` lines off it.
template <class T, class Block, class Panel>
void update_triangle(const sdk::arguments::syr<T>& p, std::int64_t lines, const Block& block, const Panel& panel) {
  const std::int64_t pieces = pieces_of<T>(Threads(p), static_cast<double>(p.n) * static_cast<double>(p.n) / 2);
  for_triangle(Threads(p), p.n, begins_on_diagonal(p.layout, p.uplo), pieces, 16, [&](std::int64_t begin, std::int64_t end) {
    block(begin, end);
    for_panels(p.layout, p.uplo, p.n, begin, end, lines, panel);
  });
}

template <class T>
void rank_1(const char* routine, const sdk::arguments::syr<T>& p) {
  if (!begin_syr(routine, p, false, true)) return;
  const auto x = [&](std::int64_t begin, std::int64_t count) { return slice(p.x, p.n, p.incx, begin, begin + count); };
  const int incx = to_int(p.incx);
  const int lda = to_int(p.lda);
  update_triangle(
      p, p.n,
      [&](std::int64_t begin, std::int64_t end) {
        cblas::her(p.layout, p.uplo, to_int(end - begin), real_part(p.alpha), x(begin, end - begin), incx,
                   element(p.layout, p.a, p.lda, begin, begin), lda);
      },
      [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
        cblas::gerc(p.layout, to_int(rows), to_int(columns), p.alpha, x(row, rows), incx, x(column, columns), incx,
                    element(p.layout, p.a, p.lda, row, column), lda);
      });
}

template <class T>
void rank_2(const char* routine, const sdk::arguments::syr<T>& p) {
  if (!begin_syr(routine, p, true, true)) return;
  const auto x = [&](std::int64_t begin, std::int64_t count) { return slice(p.x, p.n, p.incx, begin, begin + count); };
  const auto y = [&](std::int64_t begin, std::int64_t count) { return slice(p.y, p.n, p.incy, begin, begin + count); };
  const int incx = to_int(p.incx);
  const int incy = to_int(p.incy);
  const int lda = to_int(p.lda);
  update_triangle(
      p, strip,
      [&](std::int64_t begin, std::int64_t end) {
        cblas::her2(p.layout, p.uplo, to_int(end - begin), p.alpha, x(begin, end - begin), incx, y(begin, end - begin), incy,
                    element(p.layout, p.a, p.lda, begin, begin), lda);
      },
      [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
        T* const panel = element(p.layout, p.a, p.lda, row, column);
        cblas::gerc(p.layout, to_int(rows), to_int(columns), p.alpha, x(row, rows), incx, y(column, columns), incy, panel, lda);
        cblas::gerc(p.layout, to_int(rows), to_int(columns), conjugate(p.alpha), y(row, rows), incy, x(column, columns), incx, panel, lda);
      });
}

/// Calls whole() on one thread, or line(j, n, a, from) on several: the n elements at a begin at index `from`.
template <class T, class Whole, class Line>
void update_packed(const sdk::arguments::syr<T>& p, const Whole& whole, const Line& line) {
  const std::int64_t pieces = sdk::is_complex<T> ? 1 : pieces_of<T>(Threads(p), static_cast<double>(p.n) * static_cast<double>(p.n) / 2);
  if (pieces == 1) {
    whole();
    return;
  }
  const bool tail = begins_on_diagonal(p.layout, p.uplo);
  for_triangle(Threads(p), p.n, tail, pieces, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t j = begin; j < end; ++j) {
      const PackedLine at = packed_line(tail, p.n, j);
      line(j, at.count, p.a + at.offset, at.from);
    }
  });
}

/// a += factor x[from, from + n).
template <class T>
void add_part(std::int64_t n, T factor, const T* x, std::int64_t size, std::int64_t incx, std::int64_t from, T* a) {
  cblas::axpy(to_int(n), factor, slice(x, size, incx, from, from + n), to_int(incx), a, 1);
}

template <class T>
void rank_1_packed(const char* routine, const sdk::arguments::syr<T>& p) {
  if (!begin_syr(routine, p, false, false)) return;
  const T* const x = first(p.x, p.n, p.incx);
  update_packed(
      p, [&] { cblas::hpr(p.layout, p.uplo, to_int(p.n), real_part(p.alpha), p.x, to_int(p.incx), p.a); },
      [&](std::int64_t j, std::int64_t n, T* a, std::int64_t from) {
        add_part(n, times(p.alpha, x[j * p.incx]), p.x, p.n, p.incx, from, a);
      });
}

template <class T>
void rank_2_packed(const char* routine, const sdk::arguments::syr<T>& p) {
  if (!begin_syr(routine, p, true, false)) return;
  const T* const x = first(p.x, p.n, p.incx);
  const T* const y = first(p.y, p.n, p.incy);
  update_packed(
      p, [&] { cblas::hpr2(p.layout, p.uplo, to_int(p.n), p.alpha, p.x, to_int(p.incx), p.y, to_int(p.incy), p.a); },
      [&](std::int64_t j, std::int64_t n, T* a, std::int64_t from) {
        add_part(n, times(p.alpha, y[j * p.incy]), p.x, p.n, p.incx, from, a);
        add_part(n, times(p.alpha, x[j * p.incx]), p.y, p.n, p.incy, from, a);
      });
}

template <class T>
void syr(const sdk::arguments::syr<T>& p) {
  rank_1("syr", p);
}

template <class T>
void her(const sdk::arguments::syr<T>& p) {
  rank_1("her", p);
}

template <class T>
void spr(const sdk::arguments::syr<T>& p) {
  rank_1_packed("spr", p);
}

template <class T>
void hpr(const sdk::arguments::syr<T>& p) {
  rank_1_packed("hpr", p);
}

template <class T>
void syr2(const sdk::arguments::syr<T>& p) {
  rank_2("syr2", p);
}

template <class T>
void her2(const sdk::arguments::syr<T>& p) {
  rank_2("her2", p);
}

template <class T>
void spr2(const sdk::arguments::syr<T>& p) {
  rank_2_packed("spr2", p);
}

template <class T>
void hpr2(const sdk::arguments::syr<T>& p) {
  rank_2_packed("hpr2", p);
}

}  // namespace

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

}  // namespace tenon::openblas
