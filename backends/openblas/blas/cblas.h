// SPDX-License-Identifier: Apache-2.0
// cblas.h - OpenBLAS's CBLAS under names without the type letter. For real T, the Hermitian routines are the symmetric ones.
#pragma once

#include <cblas.h>

#include <complex>
#include <cstdint>

namespace tenon::openblas::cblas {

using c64 = std::complex<float>;
using c128 = std::complex<double>;

// CBLAS takes real scalars by value and complex ones by address.
inline float pass(const float& value) {
  return value;
}
inline double pass(const double& value) {
  return value;
}
inline const void* pass(const c64& value) {
  return &value;
}
inline const void* pass(const c128& value) {
  return &value;
}

inline CBLAS_ORDER order(std::uint32_t layout) {
  return static_cast<CBLAS_ORDER>(layout);
}
inline CBLAS_TRANSPOSE transpose(std::uint32_t trans) {
  return static_cast<CBLAS_TRANSPOSE>(trans);
}
inline CBLAS_UPLO triangle(std::uint32_t uplo) {
  return static_cast<CBLAS_UPLO>(uplo);
}
inline CBLAS_DIAG diagonal(std::uint32_t diag) {
  return static_cast<CBLAS_DIAG>(diag);
}
inline CBLAS_SIDE on_side(std::uint32_t side) {
  return static_cast<CBLAS_SIDE>(side);
}

// Functions of all four types.
#define TENON_CBLAS_OF(T, R, l, rl)                                                                                                        \
  inline void copy(int n, const T* x, int incx, T* y, int incy) {                                                                          \
    cblas_##l##copy(n, x, incx, y, incy);                                                                                                  \
  }                                                                                                                                        \
  inline void swap(int n, T* x, int incx, T* y, int incy) {                                                                                \
    cblas_##l##swap(n, x, incx, y, incy);                                                                                                  \
  }                                                                                                                                        \
  inline void scal(int n, T alpha, T* x, int incx) {                                                                                       \
    cblas_##l##scal(n, pass(alpha), x, incx);                                                                                              \
  }                                                                                                                                        \
  inline void axpy(int n, T alpha, const T* x, int incx, T* y, int incy) {                                                                 \
    cblas_##l##axpy(n, pass(alpha), x, incx, y, incy);                                                                                     \
  }                                                                                                                                        \
  inline R nrm2(int n, const T* x, int incx) {                                                                                             \
    return cblas_##rl##nrm2(n, x, incx);                                                                                                   \
  }                                                                                                                                        \
  inline R asum(int n, const T* x, int incx) {                                                                                             \
    return cblas_##rl##asum(n, x, incx);                                                                                                   \
  }                                                                                                                                        \
  inline std::int64_t iamax(int n, const T* x, int incx) {                                                                                 \
    return static_cast<std::int64_t>(cblas_i##l##amax(n, x, incx));                                                                        \
  }                                                                                                                                        \
  inline std::int64_t iamin(int n, const T* x, int incx) {                                                                                 \
    return static_cast<std::int64_t>(cblas_i##l##amin(n, x, incx));                                                                        \
  }                                                                                                                                        \
  inline void axpby(int n, T alpha, const T* x, int incx, T beta, T* y, int incy) {                                                        \
    cblas_##l##axpby(n, pass(alpha), x, incx, pass(beta), y, incy);                                                                        \
  }                                                                                                                                        \
  inline void gemv(std::uint32_t layout, std::uint32_t trans, int m, int n, T alpha, const T* a, int lda, const T* x, int incx, T beta,    \
                   T* y, int incy) {                                                                                                       \
    cblas_##l##gemv(order(layout), transpose(trans), m, n, pass(alpha), a, lda, x, incx, pass(beta), y, incy);                             \
  }                                                                                                                                        \
  inline void gbmv(std::uint32_t layout, std::uint32_t trans, int m, int n, int kl, int ku, T alpha, const T* a, int lda, const T* x,      \
                   int incx, T beta, T* y, int incy) {                                                                                     \
    cblas_##l##gbmv(order(layout), transpose(trans), m, n, kl, ku, pass(alpha), a, lda, x, incx, pass(beta), y, incy);                     \
  }                                                                                                                                        \
  inline void trmv(std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, int n, const T* a, int lda, T* x,    \
                   int incx) {                                                                                                             \
    cblas_##l##trmv(order(layout), triangle(uplo), transpose(trans), diagonal(diag), n, a, lda, x, incx);                                  \
  }                                                                                                                                        \
  inline void trsv(std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, int n, const T* a, int lda, T* x,    \
                   int incx) {                                                                                                             \
    cblas_##l##trsv(order(layout), triangle(uplo), transpose(trans), diagonal(diag), n, a, lda, x, incx);                                  \
  }                                                                                                                                        \
  inline void tbmv(std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, int n, int k, const T* a, int lda,   \
                   T* x, int incx) {                                                                                                       \
    cblas_##l##tbmv(order(layout), triangle(uplo), transpose(trans), diagonal(diag), n, k, a, lda, x, incx);                               \
  }                                                                                                                                        \
  inline void tbsv(std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, int n, int k, const T* a, int lda,   \
                   T* x, int incx) {                                                                                                       \
    cblas_##l##tbsv(order(layout), triangle(uplo), transpose(trans), diagonal(diag), n, k, a, lda, x, incx);                               \
  }                                                                                                                                        \
  inline void tpmv(std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, int n, const T* a, T* x, int incx) { \
    cblas_##l##tpmv(order(layout), triangle(uplo), transpose(trans), diagonal(diag), n, a, x, incx);                                       \
  }                                                                                                                                        \
  inline void tpsv(std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, int n, const T* a, T* x, int incx) { \
    cblas_##l##tpsv(order(layout), triangle(uplo), transpose(trans), diagonal(diag), n, a, x, incx);                                       \
  }                                                                                                                                        \
  inline void gemm(std::uint32_t trans_a, std::uint32_t trans_b, int m, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb,   \
                   T beta, T* c, int ldc) {                                                                                                \
    cblas_##l##gemm(CblasRowMajor, transpose(trans_a), transpose(trans_b), m, n, k, pass(alpha), a, lda, b, ldb, pass(beta), c, ldc);      \
  }                                                                                                                                        \
  inline void symm(std::uint32_t side, std::uint32_t uplo, int m, int n, T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c,  \
                   int ldc) {                                                                                                              \
    cblas_##l##symm(CblasRowMajor, on_side(side), triangle(uplo), m, n, pass(alpha), a, lda, b, ldb, pass(beta), c, ldc);                  \
  }                                                                                                                                        \
  inline void syrk(std::uint32_t uplo, std::uint32_t trans, int n, int k, T alpha, const T* a, int lda, T beta, T* c, int ldc) {           \
    cblas_##l##syrk(CblasRowMajor, triangle(uplo), transpose(trans), n, k, pass(alpha), a, lda, pass(beta), c, ldc);                       \
  }                                                                                                                                        \
  inline void syr2k(std::uint32_t uplo, std::uint32_t trans, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, T beta,      \
                    T* c, int ldc) {                                                                                                       \
    cblas_##l##syr2k(CblasRowMajor, triangle(uplo), transpose(trans), n, k, pass(alpha), a, lda, b, ldb, pass(beta), c, ldc);              \
  }                                                                                                                                        \
  inline void trmm(std::uint32_t side, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, int m, int n, T alpha, const T* a,     \
                   int lda, T* b, int ldb) {                                                                                               \
    cblas_##l##trmm(CblasRowMajor, on_side(side), triangle(uplo), transpose(trans), diagonal(diag), m, n, pass(alpha), a, lda, b, ldb);    \
  }                                                                                                                                        \
  inline void trsm(std::uint32_t side, std::uint32_t uplo, std::uint32_t trans, std::uint32_t diag, int m, int n, T alpha, const T* a,     \
                   int lda, T* b, int ldb) {                                                                                               \
    cblas_##l##trsm(CblasRowMajor, on_side(side), triangle(uplo), transpose(trans), diagonal(diag), m, n, pass(alpha), a, lda, b, ldb);    \
  }

// Symmetric routines for real types, Hermitian ones for complex types.
#define TENON_CBLAS_HERMITIAN(T, R, l, hemv_, hbmv_, hpmv_, her_, hpr_, her2_, hpr2_, geru_, gerc_)                                       \
  inline void hemv(std::uint32_t layout, std::uint32_t uplo, int n, T alpha, const T* a, int lda, const T* x, int incx, T beta, T* y,     \
                   int incy) {                                                                                                            \
    cblas_##l##hemv_(order(layout), triangle(uplo), n, pass(alpha), a, lda, x, incx, pass(beta), y, incy);                                \
  }                                                                                                                                       \
  inline void hbmv(std::uint32_t layout, std::uint32_t uplo, int n, int k, T alpha, const T* a, int lda, const T* x, int incx, T beta,    \
                   T* y, int incy) {                                                                                                      \
    cblas_##l##hbmv_(order(layout), triangle(uplo), n, k, pass(alpha), a, lda, x, incx, pass(beta), y, incy);                             \
  }                                                                                                                                       \
  inline void hpmv(std::uint32_t layout, std::uint32_t uplo, int n, T alpha, const T* a, const T* x, int incx, T beta, T* y, int incy) {  \
    cblas_##l##hpmv_(order(layout), triangle(uplo), n, pass(alpha), a, x, incx, pass(beta), y, incy);                                     \
  }                                                                                                                                       \
  inline void her(std::uint32_t layout, std::uint32_t uplo, int n, R alpha, const T* x, int incx, T* a, int lda) {                        \
    cblas_##l##her_(order(layout), triangle(uplo), n, alpha, x, incx, a, lda);                                                            \
  }                                                                                                                                       \
  inline void hpr(std::uint32_t layout, std::uint32_t uplo, int n, R alpha, const T* x, int incx, T* a) {                                 \
    cblas_##l##hpr_(order(layout), triangle(uplo), n, alpha, x, incx, a);                                                                 \
  }                                                                                                                                       \
  inline void her2(std::uint32_t layout, std::uint32_t uplo, int n, T alpha, const T* x, int incx, const T* y, int incy, T* a, int lda) { \
    cblas_##l##her2_(order(layout), triangle(uplo), n, pass(alpha), x, incx, y, incy, a, lda);                                            \
  }                                                                                                                                       \
  inline void hpr2(std::uint32_t layout, std::uint32_t uplo, int n, T alpha, const T* x, int incx, const T* y, int incy, T* a) {          \
    cblas_##l##hpr2_(order(layout), triangle(uplo), n, pass(alpha), x, incx, y, incy, a);                                                 \
  }                                                                                                                                       \
  inline void geru(std::uint32_t layout, int m, int n, T alpha, const T* x, int incx, const T* y, int incy, T* a, int lda) {              \
    cblas_##l##geru_(order(layout), m, n, pass(alpha), x, incx, y, incy, a, lda);                                                         \
  }                                                                                                                                       \
  inline void gerc(std::uint32_t layout, int m, int n, T alpha, const T* x, int incx, const T* y, int incy, T* a, int lda) {              \
    cblas_##l##gerc_(order(layout), m, n, pass(alpha), x, incx, y, incy, a, lda);                                                         \
  }

#define TENON_CBLAS_REAL(T, l)                                                                                                   \
  TENON_CBLAS_OF(T, T, l, l)                                                                                                     \
  TENON_CBLAS_HERMITIAN(T, T, l, symv, sbmv, spmv, syr, spr, syr2, spr2, ger, ger)                                               \
  inline T dotu(int n, const T* x, int incx, const T* y, int incy) {                                                             \
    return cblas_##l##dot(n, x, incx, y, incy);                                                                                  \
  }                                                                                                                              \
  inline T dotc(int n, const T* x, int incx, const T* y, int incy) {                                                             \
    return cblas_##l##dot(n, x, incx, y, incy);                                                                                  \
  }                                                                                                                              \
  inline void rot(int n, T* x, int incx, T* y, int incy, T c, T s) {                                                             \
    cblas_##l##rot(n, x, incx, y, incy, c, s);                                                                                   \
  }                                                                                                                              \
  inline void rotm(int n, T* x, int incx, T* y, int incy, const T* h) {                                                          \
    cblas_##l##rotm(n, x, incx, y, incy, h);                                                                                     \
  }                                                                                                                              \
  inline void rotmg(T* d1, T* d2, T* x1, T y1, T* h) {                                                                           \
    cblas_##l##rotmg(d1, d2, x1, y1, h);                                                                                         \
  }                                                                                                                              \
  inline void herk(std::uint32_t uplo, std::uint32_t trans, int n, int k, T alpha, const T* a, int lda, T beta, T* c, int ldc) { \
    syrk(uplo, trans, n, k, alpha, a, lda, beta, c, ldc);                                                                        \
  }

#define TENON_CBLAS_COMPLEX(T, R, l, rl, rot_)                                                                                            \
  TENON_CBLAS_OF(T, R, l, rl)                                                                                                             \
  TENON_CBLAS_HERMITIAN(T, R, l, hemv, hbmv, hpmv, her, hpr, her2, hpr2, geru, gerc)                                                      \
  inline T dotu(int n, const T* x, int incx, const T* y, int incy) {                                                                      \
    T sum;                                                                                                                                \
    cblas_##l##dotu_sub(n, x, incx, y, incy, &sum);                                                                                       \
    return sum;                                                                                                                           \
  }                                                                                                                                       \
  inline T dotc(int n, const T* x, int incx, const T* y, int incy) {                                                                      \
    T sum;                                                                                                                                \
    cblas_##l##dotc_sub(n, x, incx, y, incy, &sum);                                                                                       \
    return sum;                                                                                                                           \
  }                                                                                                                                       \
  inline void rot(int n, T* x, int incx, T* y, int incy, R c, R s) {                                                                      \
    cblas_##rot_(n, x, incx, y, incy, c, s);                                                                                              \
  }                                                                                                                                       \
  inline void hemm(std::uint32_t side, std::uint32_t uplo, int m, int n, T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c, \
                   int ldc) {                                                                                                             \
    cblas_##l##hemm(CblasRowMajor, on_side(side), triangle(uplo), m, n, &alpha, a, lda, b, ldb, &beta, c, ldc);                           \
  }                                                                                                                                       \
  inline void herk(std::uint32_t uplo, std::uint32_t trans, int n, int k, R alpha, const T* a, int lda, R beta, T* c, int ldc) {          \
    cblas_##l##herk(CblasRowMajor, triangle(uplo), transpose(trans), n, k, alpha, a, lda, beta, c, ldc);                                  \
  }                                                                                                                                       \
  inline void her2k(std::uint32_t uplo, std::uint32_t trans, int n, int k, T alpha, const T* a, int lda, const T* b, int ldb, R beta,     \
                    T* c, int ldc) {                                                                                                      \
    cblas_##l##her2k(CblasRowMajor, triangle(uplo), transpose(trans), n, k, &alpha, a, lda, b, ldb, beta, c, ldc);                        \
  }

TENON_CBLAS_REAL(float, s)
TENON_CBLAS_REAL(double, d)
TENON_CBLAS_COMPLEX(c64, float, c, sc, csrot)
TENON_CBLAS_COMPLEX(c128, double, z, dz, zdrot)
#undef TENON_CBLAS_OF
#undef TENON_CBLAS_HERMITIAN
#undef TENON_CBLAS_REAL
#undef TENON_CBLAS_COMPLEX

}  // namespace tenon::openblas::cblas
