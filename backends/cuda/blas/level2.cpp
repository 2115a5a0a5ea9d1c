// SPDX-License-Identifier: Apache-2.0
// BLAS level 2: a matrix and vectors.
#include "blas/vectors.h"

namespace tenon::cuda {
namespace blas {
namespace {

/// body(alpha, x, incx, beta) multiplies and adds to y; with `conjugate`, by the conjugate of its matrix: conj(y) = conj(alpha) A conj(x) +
/// conj(beta) conj(y).
template <class T, class Body>
void multiply_add(Queue& q, bool conjugate, Scalar<T> alpha, std::int64_t n, const T* x, std::int64_t incx, Scalar<T> beta, std::int64_t m,
                  T* y, std::int64_t incy, const Body& body) {
  if (m == 0 || n == 0) return;  // as in the reference, y is unchanged for any beta
  if (alpha.is_zero()) {         // cuBLAS multiplies by 0, also what is NaN, and reads x, which may be NULL
    return axpby<T>(q.stream, m, {T(0), nullptr}, vector<const T>(0, nullptr, 1), beta.read(), vector(m, y, incy));
  }
  if constexpr (sdk::is_complex<T>) {
    if (conjugate) {
      const Conjugated<T> x_conjugated(q, n, x, incx);
      conjugate_in_place(q, m, y, incy);
      body(q.conjugate(alpha), x_conjugated.data(), std::int64_t{1}, q.conjugate(beta));
      conjugate_in_place(q, m, y, incy);
      return;
    }
  }
  body(alpha, x, incx, beta);
}

template <class T>
void gemv(Queue& q, std::uint32_t layout, std::uint32_t trans, std::int64_t m, std::int64_t n, std::int64_t, std::int64_t, Scalar<T> alpha,
          const T* a, std::int64_t lda, const T* x, std::int64_t incx, Scalar<T> beta, T* y, std::int64_t incy) {
  const Operation op = operation(layout, trans, sdk::is_complex<T>);
  const auto [rows, columns] = in_order(layout, m, n);
  const std::int64_t result = transposes(trans) ? n : m;
  multiply_add(q, op.conjugate, alpha, m + n - result, x, incx, beta, result, y, incy,
               [&, rows = rows, columns = columns](Scalar<T> of_x, const T* vector, std::int64_t inc, Scalar<T> of_y) {
                 q.call<T>(q.cublas.gemv, op.op, rows, columns, of_x, a, lda, vector, inc, of_y, y, incy);
               });
}
template <class T>
void gbmv(Queue& q, std::uint32_t layout, std::uint32_t trans, std::int64_t m, std::int64_t n, std::int64_t kl, std::int64_t ku,
          Scalar<T> alpha, const T* a, std::int64_t lda, const T* x, std::int64_t incx, Scalar<T> beta, T* y, std::int64_t incy) {
  const Operation op = operation(layout, trans, sdk::is_complex<T>);
  const auto [rows, columns] = in_order(layout, m, n);
  const auto [below, above] = in_order(layout, kl, ku);
  const std::int64_t result = transposes(trans) ? n : m;
  multiply_add(
      q, op.conjugate, alpha, m + n - result, x, incx, beta, result, y, incy,
      [&, rows = rows, columns = columns, below = below, above = above](Scalar<T> of_x, const T* vector, std::int64_t inc, Scalar<T> of_y) {
        q.call<T>(q.cublas.gbmv, op.op, rows, columns, below, above, of_x, a, lda, vector, inc, of_y, y, incy);
      });
}

template <class T>
void symv(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, std::int64_t, Scalar<T> alpha, const T* a, std::int64_t lda,
          const T* x, std::int64_t incx, Scalar<T> beta, T* y, std::int64_t incy) {
  multiply_add(q, false, alpha, n, x, incx, beta, n, y, incy, [&](Scalar<T> of_x, const T* vector, std::int64_t inc, Scalar<T> of_y) {
    q.call<T>(q.cublas.symv, triangle(layout, uplo), n, of_x, a, lda, vector, inc, of_y, y, incy);
  });
}
template <class T>
void sbmv(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, std::int64_t k, Scalar<T> alpha, const T* a, std::int64_t lda,
          const T* x, std::int64_t incx, Scalar<T> beta, T* y, std::int64_t incy) {
  multiply_add(q, false, alpha, n, x, incx, beta, n, y, incy, [&](Scalar<T> of_x, const T* vector, std::int64_t inc, Scalar<T> of_y) {
    q.call<T>(q.cublas.sbmv, triangle(layout, uplo), n, k, of_x, a, lda, vector, inc, of_y, y, incy);
  });
}
template <class T>
void spmv(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, std::int64_t, Scalar<T> alpha, const T* a, std::int64_t,
          const T* x, std::int64_t incx, Scalar<T> beta, T* y, std::int64_t incy) {
  multiply_add(q, false, alpha, n, x, incx, beta, n, y, incy, [&](Scalar<T> of_x, const T* vector, std::int64_t inc, Scalar<T> of_y) {
    q.call<T>(q.cublas.spmv, triangle(layout, uplo), n, of_x, a, vector, inc, of_y, y, incy);
  });
}

template <class T>
void hemv(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, std::int64_t, Scalar<T> alpha, const T* a, std::int64_t lda,
          const T* x, std::int64_t incx, Scalar<T> beta, T* y, std::int64_t incy) {
  multiply_add(q, layout == TENON_LAYOUT_ROW_MAJOR, alpha, n, x, incx, beta, n, y, incy,
               [&](Scalar<T> of_x, const T* vector, std::int64_t inc, Scalar<T> of_y) {
                 q.call<T>(q.cublas.hemv, triangle(layout, uplo), n, of_x, a, lda, vector, inc, of_y, y, incy);
               });
}
template <class T>
void hbmv(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, std::int64_t k, Scalar<T> alpha, const T* a, std::int64_t lda,
          const T* x, std::int64_t incx, Scalar<T> beta, T* y, std::int64_t incy) {
  multiply_add(q, layout == TENON_LAYOUT_ROW_MAJOR, alpha, n, x, incx, beta, n, y, incy,
               [&](Scalar<T> of_x, const T* vector, std::int64_t inc, Scalar<T> of_y) {
                 q.call<T>(q.cublas.hbmv, triangle(layout, uplo), n, k, of_x, a, lda, vector, inc, of_y, y, incy);
               });
}
template <class T>
void hpmv(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, std::int64_t, Scalar<T> alpha, const T* a, std::int64_t,
          const T* x, std::int64_t incx, Scalar<T> beta, T* y, std::int64_t incy) {
  multiply_add(q, layout == TENON_LAYOUT_ROW_MAJOR, alpha, n, x, incx, beta, n, y, incy,
               [&](Scalar<T> of_x, const T* vector, std::int64_t inc, Scalar<T> of_y) {
                 q.call<T>(q.cublas.hpmv, triangle(layout, uplo), n, of_x, a, vector, inc, of_y, y, incy);
               });
}

/// body(uplo, op, diag) replaces x by the product with a triangle or the solution; for the conjugate of the triangle, x is conjugated
/// before and after.
template <class T, class Body>
void replace(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, std::int64_t n, T* x,
             std::int64_t incx, const Body& body) {
  const Operation op = operation(layout, trans, sdk::is_complex<T>);
  if constexpr (sdk::is_complex<T>) {
    if (op.conjugate) conjugate_in_place(q, n, x, incx);
  }
  body(triangle(layout, uplo), op.op, diagonal(diag));
  if constexpr (sdk::is_complex<T>) {
    if (op.conjugate) conjugate_in_place(q, n, x, incx);
  }
}

#define TENON_REPLACES(routine, ...)                                                                                            \
  template <class T>                                                                                                            \
  void routine(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, std::int64_t n,     \
               [[maybe_unused]] std::int64_t k, const T* a, [[maybe_unused]] std::int64_t lda, T* x, std::int64_t incx) {       \
    replace(q, layout, uplo, trans, diag, n, x, incx, [&](cublasFillMode_t part, cublasOperation_t op, cublasDiagType_t unit) { \
      q.call<T>(q.cublas.routine, part, op, unit, n, __VA_ARGS__, x, incx);                                                     \
    });                                                                                                                         \
  }
TENON_REPLACES(trmv, a, lda)
TENON_REPLACES(tbmv, k, a, lda)
TENON_REPLACES(tpmv, a)
TENON_REPLACES(trsv, a, lda)
TENON_REPLACES(tbsv, k, a, lda)
TENON_REPLACES(tpsv, a)
#undef TENON_REPLACES

template <class T>
void ger(Queue& q, std::uint32_t layout, std::int64_t m, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, const T* y,
         std::int64_t incy, T* a, std::int64_t lda) {
  if (layout == TENON_LAYOUT_COLUMN_MAJOR) return q.call<T>(q.cublas.ger, m, n, alpha, x, incx, y, incy, a, lda);
  q.call<T>(q.cublas.ger, n, m, alpha, y, incy, x, incx, a, lda);
}
template <class T>
void geru(Queue& q, std::uint32_t layout, std::int64_t m, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, const T* y,
          std::int64_t incy, T* a, std::int64_t lda) {
  if (layout == TENON_LAYOUT_COLUMN_MAJOR) return q.call<T>(q.cublas.geru, m, n, alpha, x, incx, y, incy, a, lda);
  q.call<T>(q.cublas.geru, n, m, alpha, y, incy, x, incx, a, lda);
}
/// Row-major: A' += alpha conj(y) x'.
template <class T>
void gerc(Queue& q, std::uint32_t layout, std::int64_t m, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, const T* y,
          std::int64_t incy, T* a, std::int64_t lda) {
  if (layout == TENON_LAYOUT_COLUMN_MAJOR) return q.call<T>(q.cublas.gerc, m, n, alpha, x, incx, y, incy, a, lda);
  const Conjugated<T> y_conjugated(q, n, y, incy);
  q.call<T>(q.cublas.geru, n, m, alpha, y_conjugated.data(), std::int64_t{1}, x, incx, a, lda);
}

template <class T>
void syr(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, const T*,
         std::int64_t, T* a, std::int64_t lda) {
  q.call<T>(q.cublas.syr, triangle(layout, uplo), n, alpha, x, incx, a, lda);
}
template <class T>
void spr(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, const T*,
         std::int64_t, T* a, std::int64_t) {
  q.call<T>(q.cublas.spr, triangle(layout, uplo), n, alpha, x, incx, a);
}
template <class T>
void syr2(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, const T* y,
          std::int64_t incy, T* a, std::int64_t lda) {
  q.call<T>(q.cublas.syr2, triangle(layout, uplo), n, alpha, x, incx, y, incy, a, lda);
}
template <class T>
void spr2(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, const T* y,
          std::int64_t incy, T* a, std::int64_t) {
  q.call<T>(q.cublas.spr2, triangle(layout, uplo), n, alpha, x, incx, y, incy, a);
}

/// body(x, incx) adds alpha x conj(x)'. Row-major: A' += alpha conj(x) x', which is the same with conj(x).
template <class T, class Body>
void rank_1(Queue& q, std::uint32_t layout, std::int64_t n, const T* x, std::int64_t incx, const Body& body) {
  if (layout == TENON_LAYOUT_COLUMN_MAJOR) return body(x, incx);
  const Conjugated<T> x_conjugated(q, n, x, incx);
  body(x_conjugated.data(), std::int64_t{1});
}
template <class T>
void her(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, Scalar<sdk::Real<T>> alpha, const T* x, std::int64_t incx,
         const T*, std::int64_t, T* a, std::int64_t lda) {
  rank_1(q, layout, n, x, incx,
         [&](const T* vector, std::int64_t inc) { q.call<T>(q.cublas.her, triangle(layout, uplo), n, alpha, vector, inc, a, lda); });
}
template <class T>
void hpr(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, Scalar<sdk::Real<T>> alpha, const T* x, std::int64_t incx,
         const T*, std::int64_t, T* a, std::int64_t) {
  rank_1(q, layout, n, x, incx,
         [&](const T* vector, std::int64_t inc) { q.call<T>(q.cublas.hpr, triangle(layout, uplo), n, alpha, vector, inc, a); });
}

/// body(x, incx, y, incy) adds alpha x conj(y)' + conj(alpha) y conj(x)'. Row-major: A' += alpha conj(y) x' + conj(alpha) conj(x) y', the
/// same of conj(y) and conj(x).
template <class T, class Body>
void rank_2(Queue& q, std::uint32_t layout, std::int64_t n, const T* x, std::int64_t incx, const T* y, std::int64_t incy,
            const Body& body) {
  if (layout == TENON_LAYOUT_COLUMN_MAJOR) return body(x, incx, y, incy);
  const Conjugated<T> x_conjugated(q, n, x, incx), y_conjugated(q, n, y, incy);
  body(y_conjugated.data(), std::int64_t{1}, x_conjugated.data(), std::int64_t{1});
}
template <class T>
void her2(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, const T* y,
          std::int64_t incy, T* a, std::int64_t lda) {
  rank_2(q, layout, n, x, incx, y, incy, [&](const T* first, std::int64_t first_inc, const T* second, std::int64_t second_inc) {
    q.call<T>(q.cublas.her2, triangle(layout, uplo), n, alpha, first, first_inc, second, second_inc, a, lda);
  });
}
template <class T>
void hpr2(Queue& q, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, Scalar<T> alpha, const T* x, std::int64_t incx, const T* y,
          std::int64_t incy, T* a, std::int64_t) {
  rank_2(q, layout, n, x, incx, y, incy, [&](const T* first, std::int64_t first_inc, const T* second, std::int64_t second_inc) {
    q.call<T>(q.cublas.hpr2, triangle(layout, uplo), n, alpha, first, first_inc, second, second_inc, a);
  });
}

}  // namespace
}  // namespace blas
TENON_CUDA_BLAS(gemv)
TENON_CUDA_BLAS(gbmv)
TENON_CUDA_BLAS(symv)
TENON_CUDA_BLAS(hemv)
TENON_CUDA_BLAS(sbmv)
TENON_CUDA_BLAS(hbmv)
TENON_CUDA_BLAS(spmv)
TENON_CUDA_BLAS(hpmv)
TENON_CUDA_BLAS(trmv)
TENON_CUDA_BLAS(tbmv)
TENON_CUDA_BLAS(tpmv)
TENON_CUDA_BLAS(trsv)
TENON_CUDA_BLAS(tbsv)
TENON_CUDA_BLAS(tpsv)
TENON_CUDA_BLAS(ger)
TENON_CUDA_BLAS(geru)
TENON_CUDA_BLAS(gerc)
TENON_CUDA_BLAS(syr)
TENON_CUDA_BLAS(her)
TENON_CUDA_BLAS(spr)
TENON_CUDA_BLAS(hpr)
TENON_CUDA_BLAS(syr2)
TENON_CUDA_BLAS(her2)
TENON_CUDA_BLAS(spr2)
TENON_CUDA_BLAS(hpr2)
}  // namespace tenon::cuda
