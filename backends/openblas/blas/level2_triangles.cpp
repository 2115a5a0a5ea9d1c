// SPDX-License-Identifier: Apache-2.0
// level2_triangles.cpp - products and solves with a triangular matrix. Dense products are divided among threads by their result; solves,
// bands and packed triangles run on one thread.
#include "level2.h"

namespace tenon::openblas {
namespace {

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

}  // namespace

TENON_BLAS_ROUTINE(trmv)
TENON_BLAS_ROUTINE(tbmv)
TENON_BLAS_ROUTINE(tpmv)
TENON_BLAS_ROUTINE(trsv)
TENON_BLAS_ROUTINE(tbsv)
TENON_BLAS_ROUTINE(tpsv)

}  // namespace tenon::openblas
