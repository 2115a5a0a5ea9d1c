// SPDX-License-Identifier: Apache-2.0
// CBLAS: a macro for each signature class of blas.def. Complex scalars are passed by address, real ones by value.
#include "call.h"
#include "letters.h"
#include "names.h"

using namespace tenon::shim;

namespace {
namespace blas = tenon::blas;

template <class T>
using ByValue = std::conditional_t<std::is_same_v<T, Real<T>>, T, const T*>;
inline float value(float given) {
  return given;
}
inline double value(double given) {
  return given;
}
inline std::complex<float> value(const std::complex<float>* given) {
  return *given;
}
inline std::complex<double> value(const std::complex<double>* given) {
  return *given;
}
using Index = std::size_t;

}  // namespace

#define CBLAS(name) JOIN(cblas_, name)
#define CALL(name, routine, signature, T, ...) \
  call<Cblas>(TEXT(CBLAS(name)), Routine::routine, &blas::routine<T>, arguments::signature<T>{__VA_ARGS__})

// Level 1. Calls with empty vectors return silently, as in the reference.
#define CBLAS_rotg(routine, l, T)                                        \
  SHIM_EXPORT void CBLAS(l##routine)(T * a, T * b, Real<T> * c, T * s) { \
    CALL(l##routine, routine, rotg, T, .a = a, .b = b, .c = c, .s = s);  \
  }
#define CBLAS_rotmg(routine, l, T)                                                                \
  SHIM_EXPORT void CBLAS(l##routine)(T * d1, T * d2, T * x1, T y1, T * param) {                   \
    CALL(l##routine, routine, rotmg, T, .d1 = d1, .d2 = d2, .x1 = x1, .y1 = &y1, .param = param); \
  }
#define CBLAS_rot(routine, l, T)                                                                               \
  SHIM_EXPORT void CBLAS(NAME_OF_rot(l))(int n, T* x, int incx, T* y, int incy, Real<T> c, Real<T> s) {        \
    if (n <= 0) return;                                                                                        \
    CALL(NAME_OF_rot(l), routine, rot, T, .n = n, .x = x, .incx = incx, .y = y, .incy = incy, .c = c, .s = s); \
  }
#define CBLAS_rotm(routine, l, T)                                                                           \
  SHIM_EXPORT void CBLAS(l##routine)(int n, T* x, int incx, T* y, int incy, const T* param) {               \
    if (n <= 0) return;                                                                                     \
    CALL(l##routine, routine, rotm, T, .n = n, .x = x, .incx = incx, .y = y, .incy = incy, .param = param); \
  }
#define CBLAS_xy(routine, l, T)                                                                             \
  SHIM_EXPORT void CBLAS(l##routine)(int n, T* x, int incx, T* y, int incy) {                               \
    swap_or_copy<Cblas>(TEXT(CBLAS(l##routine)), Routine::routine, &blas::routine<T>, n, x, incx, y, incy); \
  }
#define CBLAS_scal(routine, l, T) CBLAS_scal_##routine(routine, l, T)
#define CBLAS_scal_scal(routine, l, T) CBLAS_scaling(l##routine, routine, T)
#define CBLAS_scal_rscal(routine, l, T) CBLAS_scaling(NAME_OF_rscal(l), routine, T)
#define CBLAS_scaling(name, routine, T)                                                            \
  SHIM_EXPORT void CBLAS(name)(int n, ByValue<Alpha<Routine::routine, T>> alpha, T* x, int incx) { \
    if (n <= 0 || incx <= 0) return;                                                               \
    CALL(name, routine, scal, T, .n = n, .alpha = value(alpha), .x = x, .incx = incx);             \
  }
#define CBLAS_axpy(routine, l, T)                                                                                  \
  SHIM_EXPORT void CBLAS(l##routine)(int n, ByValue<T> alpha, const T* x, int incx, T* y, int incy) {              \
    if (n <= 0) return;                                                                                            \
    CALL(l##routine, routine, axpy, T, .n = n, .alpha = value(alpha), .x = x, .incx = incx, .y = y, .incy = incy); \
  }
#define CBLAS_axpby(routine, l, T)
#define CBLAS_dot(routine, l, T) CBLAS_dot_##routine(routine, l, T)
#define CBLAS_dot_dot(routine, l, T) CBLAS_product(l##routine, routine, T, T)
#define CBLAS_dot_dsdot(routine, l, T) CBLAS_product(routine, routine, T, double)
#define CBLAS_product(name, routine, T, R)                                                                      \
  SHIM_EXPORT R CBLAS(name)(int n, const T* x, int incx, const T* y, int incy) {                                \
    return dot<Cblas, R, T>(TEXT(CBLAS(name)), Routine::routine, &blas::routine<T>, n, T(0), x, incx, y, incy); \
  }
#define CBLAS_dot_sdsdot(routine, l, T)                                                                             \
  SHIM_EXPORT T CBLAS(routine)(int n, T alpha, const T* x, int incx, const T* y, int incy) {                        \
    return dot<Cblas, T, T>(TEXT(CBLAS(routine)), Routine::routine, &blas::routine<T>, n, alpha, x, incx, y, incy); \
  }
#define CBLAS_dot_dotu(routine, l, T)                                                                                              \
  SHIM_EXPORT void CBLAS(l##routine##_sub)(int n, const T* x, int incx, const T* y, int incy, T* out_result) {                     \
    *out_result = dot<Cblas, T, T>(TEXT(CBLAS(l##routine##_sub)), Routine::routine, &blas::routine<T>, n, T(0), x, incx, y, incy); \
  }
#define CBLAS_dot_dotc CBLAS_dot_dotu
#define CBLAS_reduce(routine, l, T) CBLAS_reduce_##routine(routine, l, T)
#define CBLAS_reduce_nrm2(routine, l, T) CBLAS_sum(NAME_OF_nrm2(l), routine, T)
#define CBLAS_reduce_asum(routine, l, T) CBLAS_sum(NAME_OF_asum(l), routine, T)
#define CBLAS_sum(name, routine, T)                                                           \
  SHIM_EXPORT Real<T> CBLAS(name)(int n, const T* x, int incx) {                              \
    return reduce<Cblas>(TEXT(CBLAS(name)), Routine::routine, &blas::routine<T>, n, x, incx); \
  }
#define CBLAS_reduce_iamax(routine, l, T)                                                                                           \
  SHIM_EXPORT Index CBLAS(NAME_OF_iamax(l))(int n, const T* x, int incx) {                                                          \
    const std::int64_t index = index_of_max<Cblas>(TEXT(CBLAS(NAME_OF_iamax(l))), Routine::routine, &blas::routine<T>, n, x, incx); \
    return index < 0 ? 0 : static_cast<Index>(index);                                                                               \
  }
#define CBLAS_reduce_iamin(routine, l, T)

// Level 2.
#define ORDER .layout = layout(order)
#define CBLAS_gemv(routine, l, T) CBLAS_gemv_##routine(routine, l, T)
#define CBLAS_gemv_gemv(routine, l, T)                                                                                                \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int trans, int m, int n, ByValue<T> alpha, const T* a, int lda, const T* x, int incx, \
                                     ByValue<T> beta, T* y, int incy) {                                                               \
    CALL(l##routine, routine, gemv, T, ORDER, .trans = op(trans), .m = m, .n = n, .alpha = value(alpha), .a = a, .lda = lda, .x = x,  \
         .incx = incx, .beta = value(beta), .y = y, .incy = incy);                                                                    \
  }
#define CBLAS_gemv_gbmv(routine, l, T)                                                                                               \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int trans, int m, int n, int kl, int ku, ByValue<T> alpha, const T* a, int lda,      \
                                     const T* x, int incx, ByValue<T> beta, T* y, int incy) {                                        \
    CALL(l##routine, routine, gemv, T, ORDER, .trans = op(trans), .m = m, .n = n, .kl = kl, .ku = ku, .alpha = value(alpha), .a = a, \
         .lda = lda, .x = x, .incx = incx, .beta = value(beta), .y = y, .incy = incy);                                               \
  }
#define CBLAS_symv(routine, l, T) CBLAS_symv_##routine(routine, l, T)
#define CBLAS_symv_symv(routine, l, T)                                                                                            \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int n, ByValue<T> alpha, const T* a, int lda, const T* x, int incx, \
                                     ByValue<T> beta, T* y, int incy) {                                                           \
    CALL(l##routine, routine, symv, T, ORDER, .uplo = uplo(triangle), .n = n, .alpha = value(alpha), .a = a, .lda = lda, .x = x,  \
         .incx = incx, .beta = value(beta), .y = y, .incy = incy);                                                                \
  }
#define CBLAS_symv_hemv CBLAS_symv_symv
#define CBLAS_symv_sbmv(routine, l, T)                                                                                                   \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int n, int k, ByValue<T> alpha, const T* a, int lda, const T* x, int incx, \
                                     ByValue<T> beta, T* y, int incy) {                                                                  \
    CALL(l##routine, routine, symv, T, ORDER, .uplo = uplo(triangle), .n = n, .k = k, .alpha = value(alpha), .a = a, .lda = lda, .x = x, \
         .incx = incx, .beta = value(beta), .y = y, .incy = incy);                                                                       \
  }
#define CBLAS_symv_hbmv CBLAS_symv_sbmv
#define CBLAS_symv_spmv(routine, l, T)                                                                                                    \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int n, ByValue<T> alpha, const T* a, const T* x, int incx, ByValue<T> beta, \
                                     T* y, int incy) {                                                                                    \
    CALL(l##routine, routine, symv, T, ORDER, .uplo = uplo(triangle), .n = n, .alpha = value(alpha), .a = a, .x = x, .incx = incx,        \
         .beta = value(beta), .y = y, .incy = incy);                                                                                      \
  }
#define CBLAS_symv_hpmv CBLAS_symv_spmv
#define CBLAS_trmv(routine, l, T) CBLAS_trmv_##routine(routine, l, T)
#define CBLAS_trmv_trmv(routine, l, T)                                                                                               \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int trans, int diagonal, int n, const T* a, int lda, T* x, int incx) { \
    CALL(l##routine, routine, trmv, T, ORDER, .uplo = uplo(triangle), .trans = op(trans), .diag = diag(diagonal), .n = n, .a = a,    \
         .lda = lda, .x = x, .incx = incx);                                                                                          \
  }
#define CBLAS_trmv_trsv CBLAS_trmv_trmv
#define CBLAS_trmv_tbmv(routine, l, T)                                                                                                    \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int trans, int diagonal, int n, int k, const T* a, int lda, T* x,           \
                                     int incx) {                                                                                          \
    CALL(l##routine, routine, trmv, T, ORDER, .uplo = uplo(triangle), .trans = op(trans), .diag = diag(diagonal), .n = n, .k = k, .a = a, \
         .lda = lda, .x = x, .incx = incx);                                                                                               \
  }
#define CBLAS_trmv_tbsv CBLAS_trmv_tbmv
#define CBLAS_trmv_tpmv(routine, l, T)                                                                                                    \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int trans, int diagonal, int n, const T* a, T* x, int incx) {               \
    CALL(l##routine, routine, trmv, T, ORDER, .uplo = uplo(triangle), .trans = op(trans), .diag = diag(diagonal), .n = n, .a = a, .x = x, \
         .incx = incx);                                                                                                                   \
  }
#define CBLAS_trmv_tpsv CBLAS_trmv_tpmv
#define CBLAS_ger(routine, l, T)                                                                                                        \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int m, int n, ByValue<T> alpha, const T* x, int incx, const T* y, int incy, T* a,       \
                                     int lda) {                                                                                         \
    CALL(l##routine, routine, ger, T, ORDER, .m = m, .n = n, .alpha = value(alpha), .x = x, .incx = incx, .y = y, .incy = incy, .a = a, \
         .lda = lda);                                                                                                                   \
  }
#define CBLAS_syr(routine, l, T) CBLAS_syr_##routine(routine, l, T)
#define CBLAS_syr_syr(routine, l, T)                                                                                                  \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int n, ByValue<Alpha<Routine::routine, T>> alpha, const T* x, int incx, \
                                     T* a, int lda) {                                                                                 \
    CALL(l##routine, routine, syr, T, ORDER, .uplo = uplo(triangle), .n = n, .alpha = value(alpha), .x = x, .incx = incx, .a = a,     \
         .lda = lda);                                                                                                                 \
  }
#define CBLAS_syr_her CBLAS_syr_syr
#define CBLAS_syr_spr(routine, l, T)                                                                                                  \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int n, ByValue<Alpha<Routine::routine, T>> alpha, const T* x, int incx, \
                                     T* a) {                                                                                          \
    CALL(l##routine, routine, syr, T, ORDER, .uplo = uplo(triangle), .n = n, .alpha = value(alpha), .x = x, .incx = incx, .a = a);    \
  }
#define CBLAS_syr_hpr CBLAS_syr_spr
#define CBLAS_syr_syr2(routine, l, T)                                                                                                    \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int n, ByValue<T> alpha, const T* x, int incx, const T* y, int incy, T* a, \
                                     int lda) {                                                                                          \
    CALL(l##routine, routine, syr, T, ORDER, .uplo = uplo(triangle), .n = n, .alpha = value(alpha), .x = x, .incx = incx, .y = y,        \
         .incy = incy, .a = a, .lda = lda);                                                                                              \
  }
#define CBLAS_syr_her2 CBLAS_syr_syr2
#define CBLAS_syr_spr2(routine, l, T)                                                                                                      \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int n, ByValue<T> alpha, const T* x, int incx, const T* y, int incy, T* a) { \
    CALL(l##routine, routine, syr, T, ORDER, .uplo = uplo(triangle), .n = n, .alpha = value(alpha), .x = x, .incx = incx, .y = y,          \
         .incy = incy, .a = a);                                                                                                            \
  }
#define CBLAS_syr_hpr2 CBLAS_syr_spr2

// Level 3.
#define CBLAS_gemm(routine, l, T) CBLAS_gemm_##routine(routine, l, T)
#define CBLAS_gemm_gemm(routine, l, T)                                                                                                \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int trans_a, int trans_b, int m, int n, int k, ByValue<T> alpha, const T* a, int lda, \
                                     const T* b, int ldb, ByValue<T> beta, T* c, int ldc) {                                           \
    CALL(l##routine, routine, gemm, T, ORDER, .trans_a = op(trans_a), .trans_b = op(trans_b), .m = m, .n = n, .k = k,                 \
         .alpha = value(alpha), .a = a, .lda = lda, .b = b, .ldb = ldb, .beta = value(beta), .c = c, .ldc = ldc);                     \
  }
#define CBLAS_gemm_gemmt(routine, l, T)
#define CBLAS_symm(routine, l, T)                                                                                                         \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int where, int triangle, int m, int n, ByValue<T> alpha, const T* a, int lda, const T* b, \
                                     int ldb, ByValue<T> beta, T* c, int ldc) {                                                           \
    CALL(l##routine, routine, symm, T, ORDER, .side = side(where), .uplo = uplo(triangle), .m = m, .n = n, .alpha = value(alpha), .a = a, \
         .lda = lda, .b = b, .ldb = ldb, .beta = value(beta), .c = c, .ldc = ldc);                                                        \
  }
#define CBLAS_syrk(routine, l, T) CBLAS_syrk_##routine(routine, l, T)
#define CBLAS_syrk_syrk(routine, l, T)                                                                                                   \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int trans, int n, int k, ByValue<Alpha<Routine::routine, T>> alpha,        \
                                     const T* a, int lda, ByValue<Beta<Routine::routine, T>> beta, T* c, int ldc) {                      \
    CALL(l##routine, routine, syrk, T, ORDER, .uplo = uplo(triangle), .trans = op(trans), .n = n, .k = k, .alpha = value(alpha), .a = a, \
         .lda = lda, .beta = value(beta), .c = c, .ldc = ldc);                                                                           \
  }
#define CBLAS_syrk_herk CBLAS_syrk_syrk
#define CBLAS_syrk_syr2k(routine, l, T)                                                                                                   \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int triangle, int trans, int n, int k, ByValue<T> alpha, const T* a, int lda, const T* b, \
                                     int ldb, ByValue<Beta<Routine::routine, T>> beta, T* c, int ldc) {                                   \
    CALL(l##routine, routine, syrk, T, ORDER, .uplo = uplo(triangle), .trans = op(trans), .n = n, .k = k, .alpha = value(alpha), .a = a,  \
         .lda = lda, .b = b, .ldb = ldb, .beta = value(beta), .c = c, .ldc = ldc);                                                        \
  }
#define CBLAS_syrk_her2k CBLAS_syrk_syr2k
#define CBLAS_trmm(routine, l, T)                                                                                                      \
  SHIM_EXPORT void CBLAS(l##routine)(int order, int where, int triangle, int trans, int diagonal, int m, int n, ByValue<T> alpha,      \
                                     const T* a, int lda, T* b, int ldb) {                                                             \
    CALL(l##routine, routine, trmm, T, ORDER, .side = side(where), .uplo = uplo(triangle), .trans = op(trans), .diag = diag(diagonal), \
         .m = m, .n = n, .alpha = value(alpha), .a = a, .lda = lda, .b = b, .ldb = ldb);                                               \
  }

// Extensions, which the reference lacks.
#define CBLAS_geam(routine, l, T)
#define CBLAS_dgmm(routine, l, T)
#define CBLAS_gemm_batched(routine, l, T)
#define CBLAS_gemm_strided_batched(routine, l, T)

#define TENON_BLAS(id, routine, level, signature, dtypes) FOR_EACH_##dtypes(CBLAS_##signature, routine)
#include <tenon/blas.def>
#undef TENON_BLAS

/// |re z| + |im z|.
SHIM_EXPORT float cblas_scabs1(const std::complex<float>* z) {
  return std::abs(z->real()) + std::abs(z->imag());
}
SHIM_EXPORT double cblas_dcabs1(const std::complex<double>* z) {
  return std::abs(z->real()) + std::abs(z->imag());
}
