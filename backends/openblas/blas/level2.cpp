// SPDX-License-Identifier: Apache-2.0
// level2.cpp - products of a general, symmetric or Hermitian matrix with a vector. Dense products are divided among threads by their
// result, or by the stored triangle; partial sums are on the stack. Bands of triangles, and packed complex matrices, run on one thread.
// Triangular matrices are in level2_triangles.cpp, updates in level2_updates.cpp.
#include "level2.h"

namespace tenon::openblas {
namespace {

/// y = beta y, without reading y if beta is 0.
template <class T>
void scale(std::int64_t n, T beta, T* y, std::int64_t incy) {
  if (beta == T(1)) return;
  const std::int64_t step = std::abs(incy);
  if (beta == T(0)) {
    for (std::int64_t i = 0; i < n; ++i) y[i * step] = T(0);
  } else {
    cblas::scal(to_int(n), beta, y, to_int(step));
  }
}

/// y += x.
template <class T>
void add(std::int64_t n, const T* x, T* y, std::int64_t incy) {
  cblas::axpy(to_int(n), T(1), x, 1, y, to_int(incy));
}

/// Converts a gemv or gbmv to column-major, and handles the cases without a product. False if nothing is left to do.
template <class T>
bool begin_gemv(const char* routine, sdk::arguments::gemv<T>& p) {
  const bool transposed = is_transposed(p.trans);
  const std::int64_t outputs = transposed ? p.n : p.m;
  const std::int64_t inputs = transposed ? p.m : p.n;
  check_sizes(routine, {{"m", p.m},
                        {"n", p.n},
                        {"kl", p.kl},
                        {"ku", p.ku},
                        {"lda", p.lda},
                        {"incx", p.incx},
                        {"incy", p.incy},
                        {"n * incx", offset_of_first(inputs, p.incx)},
                        {"n * incy", offset_of_first(outputs, p.incy)}});
  if (p.m == 0 || p.n == 0) return false;
  if (p.alpha == T(0)) {
    scale(outputs, p.beta, p.y, p.incy);
    return false;
  }
  if (p.layout == TENON_LAYOUT_ROW_MAJOR) {
    p.layout = TENON_LAYOUT_COLUMN_MAJOR;
    p.trans = in_other_layout(p.trans);
    std::swap(p.m, p.n);
    std::swap(p.kl, p.ku);
  }
  return true;
}

/// gemv with a part of the matrix.
template <class T>
void gemv_part(const sdk::arguments::gemv<T>& p, std::int64_t m, std::int64_t n, const T* a, const T* x, T beta, T* y, std::int64_t incy) {
  cblas::gemv(TENON_LAYOUT_COLUMN_MAJOR, p.trans, to_int(m), to_int(n), p.alpha, a, to_int(p.lda), x, to_int(p.incx), beta, y,
              to_int(incy));
}

/// y = alpha op(A) x + beta y with few results and long sums: each piece computes a part of the sums.
template <class T>
void gemv_by_inputs(const sdk::arguments::gemv<T>& p, std::int64_t outputs, std::int64_t inputs, std::int64_t max_count) {
  constexpr std::int64_t max_outputs = 64;
  Scratch<T, max_pieces * max_outputs> scratch;
  T* const sums = scratch.data();
  const bool transposed = is_transposed(p.trans);
  const std::int64_t pieces = for_pieces(Threads(p), inputs, max_count, 16, [&](std::int64_t piece, std::int64_t begin, std::int64_t end) {
    T* const y = sums + piece * outputs;
    std::fill_n(y, outputs, T(0));
    const T* const x = slice(p.x, inputs, p.incx, begin, end);
    if (transposed) {
      gemv_part(p, end - begin, outputs, p.a + begin, x, T(0), y, 1);
    } else {
      gemv_part(p, outputs, end - begin, p.a + begin * p.lda, x, T(0), y, 1);
    }
  });
  scale(outputs, p.beta, p.y, p.incy);
  for (std::int64_t piece = 0; piece < pieces; ++piece) add(outputs, sums + piece * outputs, p.y, p.incy);
}

template <class T>
void gemv(const sdk::arguments::gemv<T>& given) {
  sdk::arguments::gemv<T> p = given;
  if (!begin_gemv("gemv", p)) return;
  const bool transposed = is_transposed(p.trans);
  const std::int64_t outputs = transposed ? p.n : p.m;
  const std::int64_t inputs = transposed ? p.m : p.n;
  const std::int64_t pieces = pieces_of<T>(Threads(p), static_cast<double>(p.m) * static_cast<double>(p.n));
  if (pieces > 1 && outputs <= 64 && inputs >= 64 * pieces) {
    gemv_by_inputs(p, outputs, inputs, pieces);
    return;
  }
  for_pieces(Threads(p), outputs, pieces, 16, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    T* const y = slice(p.y, outputs, p.incy, begin, end);
    if (transposed) {
      gemv_part(p, p.m, end - begin, p.a + begin * p.lda, p.x, p.beta, y, p.incy);
    } else {
      gemv_part(p, end - begin, p.n, p.a + begin, p.x, p.beta, y, p.incy);
    }
  });
}

template <class T>
void gbmv(const sdk::arguments::gemv<T>& given) {
  sdk::arguments::gemv<T> p = given;
  if (!begin_gemv("gbmv", p)) return;
  const bool transposed = is_transposed(p.trans);
  const std::int64_t outputs = transposed ? p.n : p.m;
  const std::int64_t inputs = transposed ? p.m : p.n;
  const double size = static_cast<double>(std::min(p.kl + p.ku + 1, p.m)) * static_cast<double>(p.n);
  for_pieces(Threads(p), outputs, pieces_of<T>(Threads(p), size), 16, [&](std::int64_t, std::int64_t begin, std::int64_t end) {
    // Rows i and columns j of the band that these results need: i - kl <= j <= i + ku. The corner moves along the diagonals.
    std::int64_t row = begin, rows = end - begin, column = begin, columns = end - begin;
    if (transposed) {
      row = std::min(std::max<std::int64_t>(0, begin - p.ku), p.m);
      rows = std::min(p.m, end + p.kl) - row;
    } else {
      column = std::min(std::max<std::int64_t>(0, begin - p.kl), p.n);
      columns = std::min(p.n, end + p.ku) - column;
    }
    T* const y = slice(p.y, outputs, p.incy, begin, end);
    if (rows <= 0 || columns <= 0) {
      scale(end - begin, p.beta, y, p.incy);
      return;
    }
    const T* const x = transposed ? slice(p.x, inputs, p.incx, row, row + rows) : slice(p.x, inputs, p.incx, column, column + columns);
    cblas::gbmv(TENON_LAYOUT_COLUMN_MAJOR, p.trans, to_int(rows), to_int(columns), to_int(p.kl - (row - column)),
                to_int(p.ku + (row - column)), p.alpha, p.a + column * p.lda, to_int(p.lda), x, to_int(p.incx), p.beta, y, to_int(p.incy));
  });
}

/// Checks the arguments and handles the cases without a product. False if nothing is left to do.
template <class T>
bool begin_symv(const char* routine, const sdk::arguments::symv<T>& p) {
  check_sizes(routine, {{"n", p.n},
                        {"k", p.k},
                        {"lda", p.lda},
                        {"incx", p.incx},
                        {"incy", p.incy},
                        {"n * incx", offset_of_first(p.n, p.incx)},
                        {"n * incy", offset_of_first(p.n, p.incy)}});
  if (p.n == 0) return false;
  if (p.alpha != T(0)) return true;
  scale(p.n, p.beta, p.y, p.incy);
  return false;
}

/// y += alpha A x over lines [begin, end) of the stored triangle; each element also counts for its mirror image.
template <class T>
void multiply_lines(const sdk::arguments::symv<T>& p, std::int64_t begin, std::int64_t end, T* y, std::int64_t incy) {
  const int lda = to_int(p.lda);
  const auto x_at = [&](std::int64_t from, std::int64_t count) { return slice(p.x, p.n, p.incx, from, from + count); };
  const auto y_at = [&](std::int64_t from, std::int64_t count) { return slice(y, p.n, incy, from, from + count); };
  cblas::hemv(p.layout, p.uplo, to_int(end - begin), p.alpha, element(p.layout, p.a, p.lda, begin, begin), lda, x_at(begin, end - begin),
              to_int(p.incx), T(1), y_at(begin, end - begin), to_int(incy));
  for_panels(p.layout, p.uplo, p.n, begin, end, strip, [&](std::int64_t row, std::int64_t rows, std::int64_t column, std::int64_t columns) {
    const T* const panel = element(p.layout, p.a, p.lda, row, column);
    cblas::gemv(p.layout, TENON_NO_TRANS, to_int(rows), to_int(columns), p.alpha, panel, lda, x_at(column, columns), to_int(p.incx), T(1),
                y_at(row, rows), to_int(incy));
    cblas::gemv(p.layout, TENON_CONJ_TRANS, to_int(rows), to_int(columns), p.alpha, panel, lda, x_at(row, rows), to_int(p.incx), T(1),
                y_at(column, columns), to_int(incy));
  });
}

/// The ends of the pieces of a triangle whose line j has j + 1 elements, such that all pieces take the same time. An element of an
/// off-diagonal panel takes `panel_cost` times as long as one of the diagonal block.
void divide_triangle(std::int64_t n, std::int64_t pieces, double panel_cost, std::int64_t* out_edges) {
  const auto next = [panel_cost](double begin, double work) {
    return std::sqrt(panel_cost * panel_cost * begin * begin + 2 * work) - (panel_cost - 1) * begin;
  };
  const double size = static_cast<double>(n);
  double too_little = 0;
  double enough = panel_cost * size * size;
  for (int step = 0; step < 24; ++step) {
    const double work = (too_little + enough) / 2;
    double edge = 0;
    for (std::int64_t piece = 0; piece < pieces; ++piece) edge = next(edge, work);
    (edge < size ? too_little : enough) = work;
  }
  double edge = 0;
  for (std::int64_t piece = 0; piece + 1 < pieces; ++piece) {
    edge = next(edge, enough);
    out_edges[piece] = std::min(n, static_cast<std::int64_t>(edge) / 16 * 16);
  }
  out_edges[pieces - 1] = n;
}

/// Calls whole() on one thread, or lines(begin, end, y, incy), which adds to y, on several.
template <class T, class Whole, class Lines>
void share_lines(const sdk::arguments::symv<T>& p, double panel_cost, const Whole& whole, const Lines& lines) {
  constexpr std::int64_t capacity = static_cast<std::int64_t>(stack_bytes / sizeof(T));
  const double size = static_cast<double>(p.n) * static_cast<double>(p.n) / 2;
  const std::int64_t pieces = std::min(pieces_of<T>(Threads(p), size), 1 + capacity / p.n);
  if (pieces == 1) {
    whole();
    return;
  }
  // The first piece adds to y, the others to their own sums.
  Scratch<T, capacity> scratch;
  T* const sums = scratch.data();
  std::int64_t edges[max_pieces];
  divide_triangle(p.n, pieces, panel_cost, edges);
  const bool from_end = begins_on_diagonal(p.layout, p.uplo);
  Threads(p).parallel_for(pieces, 1, [&](std::int64_t first_piece, std::int64_t end_piece) {
    for (std::int64_t piece = first_piece; piece < end_piece; ++piece) {
      T* const y = piece == 0 ? p.y : sums + (piece - 1) * p.n;
      const std::int64_t incy = piece == 0 ? p.incy : 1;
      scale(p.n, piece == 0 ? p.beta : T(0), y, incy);
      const std::int64_t begin = piece == 0 ? 0 : edges[piece - 1];
      const std::int64_t end = edges[piece];
      if (begin < end) lines(from_end ? p.n - end : begin, from_end ? p.n - begin : end, y, incy);
    }
  });
  for (std::int64_t piece = 1; piece < pieces; ++piece) add(p.n, sums + (piece - 1) * p.n, p.y, p.incy);
}

template <class T>
void multiply_self_adjoint(const char* routine, const sdk::arguments::symv<T>& p) {
  if (!begin_symv(routine, p)) return;
  // Elements of off-diagonal panels are read by two products instead of one.
  share_lines(
      p, 1.75,
      [&] { cblas::hemv(p.layout, p.uplo, to_int(p.n), p.alpha, p.a, to_int(p.lda), p.x, to_int(p.incx), p.beta, p.y, to_int(p.incy)); },
      [&](std::int64_t begin, std::int64_t end, T* y, std::int64_t incy) { multiply_lines(p, begin, end, y, incy); });
}

template <class T>
void symv(const sdk::arguments::symv<T>& p) {
  multiply_self_adjoint("symv", p);
}

template <class T>
void hemv(const sdk::arguments::symv<T>& p) {
  multiply_self_adjoint("hemv", p);
}

template <class T>
void multiply_band(const char* routine, const sdk::arguments::symv<T>& p) {
  if (!begin_symv(routine, p)) return;
  cblas::hbmv(p.layout, p.uplo, to_int(p.n), to_int(p.k), p.alpha, p.a, to_int(p.lda), p.x, to_int(p.incx), p.beta, p.y, to_int(p.incy));
}

template <class T>
void sbmv(const sdk::arguments::symv<T>& p) {
  multiply_band("sbmv", p);
}

template <class T>
void hbmv(const sdk::arguments::symv<T>& p) {
  multiply_band("hbmv", p);
}

template <class T>
void multiply_packed(const char* routine, const sdk::arguments::symv<T>& p) {
  if (!begin_symv(routine, p)) return;
  const auto whole = [&] { cblas::hpmv(p.layout, p.uplo, to_int(p.n), p.alpha, p.a, p.x, to_int(p.incx), p.beta, p.y, to_int(p.incy)); };
  if constexpr (sdk::is_complex<T>) {
    whole();
  } else {
    const bool tail = begins_on_diagonal(p.layout, p.uplo);
    const T* const x = first(p.x, p.n, p.incx);
    share_lines(p, 1, whole, [&](std::int64_t begin, std::int64_t end, T* y, std::int64_t incy) {
      for (std::int64_t j = begin; j < end; ++j) {
        const PackedLine line = packed_line(tail, p.n, j);
        const T* const a = p.a + line.offset;
        cblas::axpy(to_int(line.count), p.alpha * x[j * p.incx], a, 1, slice(y, p.n, incy, line.from, line.from + line.count),
                    to_int(incy));
        const std::int64_t from = tail ? j + 1 : 0;  // without the diagonal
        const int count = to_int(line.count - 1);
        first(y, p.n, incy)[j * incy] +=
            p.alpha * cblas::dotu(count, tail ? a + 1 : a, 1, slice(p.x, p.n, p.incx, from, from + count), to_int(p.incx));
      }
    });
  }
}

template <class T>
void spmv(const sdk::arguments::symv<T>& p) {
  multiply_packed("spmv", p);
}

template <class T>
void hpmv(const sdk::arguments::symv<T>& p) {
  multiply_packed("hpmv", p);
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

}  // namespace tenon::openblas
