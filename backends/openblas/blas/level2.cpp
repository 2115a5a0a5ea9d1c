// SPDX-License-Identifier: Apache-2.0
// level2.cpp - matrices and vectors. Dense products and updates are divided among threads by their result, or by the stored triangle;
// partial sums are on the stack. Solves, bands of triangles, and packed complex and triangular matrices run on one thread.
#include <cstddef>

#include "cblas.h"
#include "split.h"

namespace tenon::openblas {
namespace {

/// The smallest number of bytes of a matrix worth handing to a thread.
constexpr double smallest_piece = 524288;
/// The stack memory of all pieces together.
constexpr std::size_t stack_bytes = 131072;
/// Lines of an off-diagonal panel that are processed at a time if they are read twice: they stay in the cache.
constexpr std::int64_t strip = 16;

template <class T>
std::int64_t pieces_of(const Threads& threads, double elements) {
  return piece_count(threads, elements * sizeof(T), smallest_piece);
}

/// Memory for `count` numbers, not initialised to 0 as an array of std::complex would be.
template <class T, std::int64_t count>
struct Scratch {
  alignas(64) std::byte bytes[static_cast<std::size_t>(count) * sizeof(T)];
  T* data() { return reinterpret_cast<T*>(bytes); }
};

/// The address of a(i, j).
template <class T>
T* element(std::uint32_t layout, T* a, std::int64_t lda, std::int64_t i, std::int64_t j) {
  return layout == TENON_LAYOUT_ROW_MAJOR ? a + i * lda + j : a + j * lda + i;
}

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

/// Whether a line of the stored triangle, a column of a column-major matrix, begins on the diagonal; else it ends there.
bool begins_on_diagonal(std::uint32_t layout, std::uint32_t uplo) {
  return (layout == TENON_LAYOUT_COLUMN_MAJOR) == (uplo == TENON_LOWER);
}

/// Calls panel(row, rows, column, columns) for the off-diagonal part of lines [begin, end), `lines` of them at a time.
template <class Panel>
void for_panels(std::uint32_t layout, std::uint32_t uplo, std::int64_t n, std::int64_t begin, std::int64_t end, std::int64_t lines,
                const Panel& panel) {
  const bool tail = begins_on_diagonal(layout, uplo);
  const std::int64_t from = tail ? end : 0;
  const std::int64_t others = (tail ? n : begin) - from;
  if (others == 0) return;
  for (std::int64_t line = begin; line < end; line += lines) {
    const std::int64_t count = std::min(lines, end - line);
    layout == TENON_LAYOUT_COLUMN_MAJOR ? panel(from, others, line, count) : panel(line, count, from, others);
  }
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

/// Line j of a packed triangle: its elements have the other index in [from, from + count).
struct PackedLine {
  std::int64_t offset, from, count;
};
PackedLine packed_line(bool tail, std::int64_t n, std::int64_t j) {
  return tail ? PackedLine{j * n - j * (j - 1) / 2, j, n - j} : PackedLine{j * (j + 1) / 2, 0, j + 1};
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

template <class T>
void check_triangular(const char* routine, const sdk::arguments::trmv<T>& p) {
  check_sizes(routine, {{"n", p.n}, {"k", p.k}, {"lda", p.lda}, {"incx", p.incx}, {"n * incx", offset_of_first(p.n, p.incx)}});
}

template <class T>
void trmv(const sdk::arguments::trmv<T>& p) {
  check_triangular("trmv", p);
  if (p.n == 0) return;
  constexpr std::int64_t capacity = static_cast<std::int64_t>(stack_bytes / sizeof(T));
  const std::int64_t pieces = p.n > capacity ? 1 : pieces_of<T>(Threads(p), static_cast<double>(p.n) * static_cast<double>(p.n) / 2);
  const int lda = to_int(p.lda);
  const int incx = to_int(p.incx);
  if (pieces == 1) {
    cblas::trmv(p.layout, p.uplo, p.trans, p.diag, to_int(p.n), p.a, lda, p.x, incx);
    return;
  }
  // Each piece computes rows of the result: from its own part of x by the diagonal block, in place, and from a copy of the rest.
  Scratch<T, capacity> scratch;
  T* const copied = scratch.data();
  cblas::copy(to_int(p.n), p.x, incx, copied, 1);
  const bool transposed = is_transposed(p.trans);
  const bool from_end = (p.uplo == TENON_UPPER) != transposed;
  for_triangle(Threads(p), p.n, from_end, pieces, 16, [&](std::int64_t begin, std::int64_t end) {
    const int rows = to_int(end - begin);
    T* const x = slice(p.x, p.n, p.incx, begin, end);
    cblas::trmv(p.layout, p.uplo, p.trans, p.diag, rows, element(p.layout, p.a, p.lda, begin, begin), lda, x, incx);
    const std::int64_t from = from_end ? end : 0;
    const int others = to_int((from_end ? p.n : begin) - from);
    if (others == 0) return;
    if (transposed) {
      cblas::gemv(p.layout, p.trans, others, rows, T(1), element(p.layout, p.a, p.lda, from, begin), lda, copied + from, 1, T(1), x, incx);
    } else {
      cblas::gemv(p.layout, p.trans, rows, others, T(1), element(p.layout, p.a, p.lda, begin, from), lda, copied + from, 1, T(1), x, incx);
    }
  });
}

template <class T>
void tbmv(const sdk::arguments::trmv<T>& p) {
  check_triangular("tbmv", p);
  cblas::tbmv(p.layout, p.uplo, p.trans, p.diag, to_int(p.n), to_int(p.k), p.a, to_int(p.lda), p.x, to_int(p.incx));
}

template <class T>
void tpmv(const sdk::arguments::trmv<T>& p) {
  check_triangular("tpmv", p);
  cblas::tpmv(p.layout, p.uplo, p.trans, p.diag, to_int(p.n), p.a, p.x, to_int(p.incx));
}

template <class T>
void trsv(const sdk::arguments::trmv<T>& p) {
  check_triangular("trsv", p);
  cblas::trsv(p.layout, p.uplo, p.trans, p.diag, to_int(p.n), p.a, to_int(p.lda), p.x, to_int(p.incx));
}

template <class T>
void tbsv(const sdk::arguments::trmv<T>& p) {
  check_triangular("tbsv", p);
  cblas::tbsv(p.layout, p.uplo, p.trans, p.diag, to_int(p.n), to_int(p.k), p.a, to_int(p.lda), p.x, to_int(p.incx));
}

template <class T>
void tpsv(const sdk::arguments::trmv<T>& p) {
  check_triangular("tpsv", p);
  cblas::tpsv(p.layout, p.uplo, p.trans, p.diag, to_int(p.n), p.a, p.x, to_int(p.incx));
}

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

}  // namespace tenon::openblas
