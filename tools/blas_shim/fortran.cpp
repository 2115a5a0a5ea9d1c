// SPDX-License-Identifier: Apache-2.0
// The Fortran 77 interface: a macro for each signature class of blas.def. Callers may pass hidden string lengths after the arguments; they
// are ignored.
#include "call.h"
#include "letters.h"
#include "names.h"

using namespace tenon::shim;

namespace {
namespace blas = tenon::blas;

/// COMPLEX results as gfortran returns them.
__extension__ typedef float _Complex ComplexFloat;
__extension__ typedef double _Complex ComplexDouble;
inline float as_fortran(float value) {
  return value;
}
inline double as_fortran(double value) {
  return value;
}
inline ComplexFloat as_fortran(std::complex<float> value) {
  return __builtin_bit_cast(ComplexFloat, value);
}
inline ComplexDouble as_fortran(std::complex<double> value) {
  return __builtin_bit_cast(ComplexDouble, value);
}
template <class T>
using AsFortran = decltype(as_fortran(T()));

}  // namespace

#define FORTRAN(name) JOIN(name, _)
#define CALL(name, routine, signature, T, ...) \
  call<Fortran>(TEXT(name), Routine::routine, &blas::routine<T>, arguments::signature<T>{__VA_ARGS__})

// Level 1. Calls with empty vectors return silently, as in the reference.
#define F77_rotg(routine, l, T)                                            \
  SHIM_EXPORT void FORTRAN(l##routine)(T * a, T * b, Real<T> * c, T * s) { \
    CALL(l##routine, routine, rotg, T, .a = a, .b = b, .c = c, .s = s);    \
  }
#define F77_rotmg(routine, l, T)                                                                 \
  SHIM_EXPORT void FORTRAN(l##routine)(T * d1, T * d2, T * x1, const T* y1, T* param) {          \
    CALL(l##routine, routine, rotmg, T, .d1 = d1, .d2 = d2, .x1 = x1, .y1 = y1, .param = param); \
  }
#define F77_rot(routine, l, T)                                                                                           \
  SHIM_EXPORT void FORTRAN(NAME_OF_rot(l))(const int* n, T* x, const int* incx, T* y, const int* incy, const Real<T>* c, \
                                           const Real<T>* s) {                                                           \
    if (*n <= 0) return;                                                                                                 \
    CALL(NAME_OF_rot(l), routine, rot, T, .n = *n, .x = x, .incx = *incx, .y = y, .incy = *incy, .c = *c, .s = *s);      \
  }
#define F77_rotm(routine, l, T)                                                                                      \
  SHIM_EXPORT void FORTRAN(l##routine)(const int* n, T* x, const int* incx, T* y, const int* incy, const T* param) { \
    if (*n <= 0) return;                                                                                             \
    CALL(l##routine, routine, rotm, T, .n = *n, .x = x, .incx = *incx, .y = y, .incy = *incy, .param = param);       \
  }
#define F77_xy(routine, l, T)                                                                             \
  SHIM_EXPORT void FORTRAN(l##routine)(const int* n, T* x, const int* incx, T* y, const int* incy) {      \
    swap_or_copy<Fortran>(TEXT(l##routine), Routine::routine, &blas::routine<T>, *n, x, *incx, y, *incy); \
  }
#define F77_scal(routine, l, T) F77_scal_##routine(routine, l, T)
#define F77_scal_scal(routine, l, T) F77_scaling(l##routine, routine, T)
#define F77_scal_rscal(routine, l, T) F77_scaling(NAME_OF_rscal(l), routine, T)
#define F77_scaling(name, routine, T)                                                                            \
  SHIM_EXPORT void FORTRAN(name)(const int* n, const Alpha<Routine::routine, T>* alpha, T* x, const int* incx) { \
    if (*n <= 0 || *incx <= 0) return;                                                                           \
    CALL(name, routine, scal, T, .n = *n, .alpha = *alpha, .x = x, .incx = *incx);                               \
  }
#define F77_axpy(routine, l, T)                                                                                            \
  SHIM_EXPORT void FORTRAN(l##routine)(const int* n, const T* alpha, const T* x, const int* incx, T* y, const int* incy) { \
    if (*n <= 0) return;                                                                                                   \
    CALL(l##routine, routine, axpy, T, .n = *n, .alpha = *alpha, .x = x, .incx = *incx, .y = y, .incy = *incy);            \
  }
#define F77_axpby(routine, l, T)

// Functions, and the reference's subroutines that return the same result through their last argument.
#define F77_dot(routine, l, T) F77_dot_##routine(routine, l, T)
#define F77_dot_dot(routine, l, T) F77_product(l##routine, routine, T, T)
#define F77_dot_dotu(routine, l, T) F77_product(l##routine, routine, T, T)
#define F77_dot_dotc(routine, l, T) F77_product(l##routine, routine, T, T)
#define F77_dot_dsdot(routine, l, T) F77_product(routine, routine, T, double)
#define F77_product(name, routine, T, R)                                                                                             \
  SHIM_EXPORT AsFortran<R> FORTRAN(name)(const int* n, const T* x, const int* incx, const T* y, const int* incy) {                   \
    return as_fortran(dot<Fortran, R, T>(TEXT(name), Routine::routine, &blas::routine<T>, *n, T(0), x, *incx, y, *incy));            \
  }                                                                                                                                  \
  SHIM_EXPORT void FORTRAN(JOIN(name, sub))(const int* n, const T* x, const int* incx, const T* y, const int* incy, R* out_result) { \
    *out_result = dot<Fortran, R, T>(TEXT(name), Routine::routine, &blas::routine<T>, *n, T(0), x, *incx, y, *incy);                 \
  }
#define F77_dot_sdsdot(routine, l, T)                                                                                            \
  SHIM_EXPORT T FORTRAN(routine)(const int* n, const T* alpha, const T* x, const int* incx, const T* y, const int* incy) {       \
    return dot<Fortran, T, T>(TEXT(routine), Routine::routine, &blas::routine<T>, *n, *alpha, x, *incx, y, *incy);               \
  }                                                                                                                              \
  SHIM_EXPORT void FORTRAN(routine##sub)(const int* n, const T* alpha, const T* x, const int* incx, const T* y, const int* incy, \
                                         T* out_result) {                                                                        \
    *out_result = dot<Fortran, T, T>(TEXT(routine), Routine::routine, &blas::routine<T>, *n, *alpha, x, *incx, y, *incy);        \
  }
#define F77_reduce(routine, l, T) F77_reduce_##routine(routine, l, T)
#define F77_reduce_nrm2(routine, l, T) F77_sum(NAME_OF_nrm2(l), routine, T)
#define F77_reduce_asum(routine, l, T) F77_sum(NAME_OF_asum(l), routine, T)
#define F77_sum(name, routine, T)                                                                             \
  SHIM_EXPORT Real<T> FORTRAN(name)(const int* n, const T* x, const int* incx) {                              \
    return reduce<Fortran>(TEXT(name), Routine::routine, &blas::routine<T>, *n, x, *incx);                    \
  }                                                                                                           \
  SHIM_EXPORT void FORTRAN(JOIN(name, sub))(const int* n, const T* x, const int* incx, Real<T>* out_result) { \
    *out_result = reduce<Fortran>(TEXT(name), Routine::routine, &blas::routine<T>, *n, x, *incx);             \
  }
#define F77_reduce_iamax(routine, l, T)                                                                                                  \
  SHIM_EXPORT int FORTRAN(NAME_OF_iamax(l))(const int* n, const T* x, const int* incx) {                                                 \
    return static_cast<int>(index_of_max<Fortran>(TEXT(NAME_OF_iamax(l)), Routine::routine, &blas::routine<T>, *n, x, *incx) + 1);       \
  }                                                                                                                                      \
  SHIM_EXPORT void FORTRAN(JOIN(NAME_OF_iamax(l), sub))(const int* n, const T* x, const int* incx, int* out_index) {                     \
    *out_index = static_cast<int>(index_of_max<Fortran>(TEXT(NAME_OF_iamax(l)), Routine::routine, &blas::routine<T>, *n, x, *incx) + 1); \
  }
#define F77_reduce_iamin(routine, l, T)

// Level 2.
#define COLUMNS .layout = Layout::column_major
#define F77_gemv(routine, l, T) F77_gemv_##routine(routine, l, T)
#define F77_gemv_gemv(routine, l, T)                                                                                                \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* trans, const int* m, const int* n, const T* alpha, const T* a, const int* lda,   \
                                       const T* x, const int* incx, const T* beta, T* y, const int* incy) {                         \
    CALL(l##routine, routine, gemv, T, COLUMNS, .trans = op(trans), .m = *m, .n = *n, .alpha = *alpha, .a = a, .lda = *lda, .x = x, \
         .incx = *incx, .beta = *beta, .y = y, .incy = *incy);                                                                      \
  }
#define F77_gemv_gbmv(routine, l, T)                                                                                                    \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* trans, const int* m, const int* n, const int* kl, const int* ku, const T* alpha,     \
                                       const T* a, const int* lda, const T* x, const int* incx, const T* beta, T* y, const int* incy) { \
    CALL(l##routine, routine, gemv, T, COLUMNS, .trans = op(trans), .m = *m, .n = *n, .kl = *kl, .ku = *ku, .alpha = *alpha, .a = a,    \
         .lda = *lda, .x = x, .incx = *incx, .beta = *beta, .y = y, .incy = *incy);                                                     \
  }
#define F77_symv(routine, l, T) F77_symv_##routine(routine, l, T)
#define F77_symv_symv(routine, l, T)                                                                                               \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const int* n, const T* alpha, const T* a, const int* lda, const T* x, \
                                       const int* incx, const T* beta, T* y, const int* incy) {                                    \
    CALL(l##routine, routine, symv, T, COLUMNS, .uplo = uplo(triangle), .n = *n, .alpha = *alpha, .a = a, .lda = *lda, .x = x,     \
         .incx = *incx, .beta = *beta, .y = y, .incy = *incy);                                                                     \
  }
#define F77_symv_hemv F77_symv_symv
#define F77_symv_sbmv(routine, l, T)                                                                                                    \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const int* n, const int* k, const T* alpha, const T* a, const int* lda,    \
                                       const T* x, const int* incx, const T* beta, T* y, const int* incy) {                             \
    CALL(l##routine, routine, symv, T, COLUMNS, .uplo = uplo(triangle), .n = *n, .k = *k, .alpha = *alpha, .a = a, .lda = *lda, .x = x, \
         .incx = *incx, .beta = *beta, .y = y, .incy = *incy);                                                                          \
  }
#define F77_symv_hbmv F77_symv_sbmv
#define F77_symv_spmv(routine, l, T)                                                                                                \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const int* n, const T* alpha, const T* a, const T* x, const int* incx, \
                                       const T* beta, T* y, const int* incy) {                                                      \
    CALL(l##routine, routine, symv, T, COLUMNS, .uplo = uplo(triangle), .n = *n, .alpha = *alpha, .a = a, .x = x, .incx = *incx,    \
         .beta = *beta, .y = y, .incy = *incy);                                                                                     \
  }
#define F77_symv_hpmv F77_symv_spmv
#define F77_trmv(routine, l, T) F77_trmv_##routine(routine, l, T)
#define F77_trmv_trmv(routine, l, T)                                                                                                 \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const char* trans, const char* diagonal, const int* n, const T* a,      \
                                       const int* lda, T* x, const int* incx) {                                                      \
    CALL(l##routine, routine, trmv, T, COLUMNS, .uplo = uplo(triangle), .trans = op(trans), .diag = diag(diagonal), .n = *n, .a = a, \
         .lda = *lda, .x = x, .incx = *incx);                                                                                        \
  }
#define F77_trmv_trsv F77_trmv_trmv
#define F77_trmv_tbmv(routine, l, T)                                                                                                  \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const char* trans, const char* diagonal, const int* n, const int* k,     \
                                       const T* a, const int* lda, T* x, const int* incx) {                                           \
    CALL(l##routine, routine, trmv, T, COLUMNS, .uplo = uplo(triangle), .trans = op(trans), .diag = diag(diagonal), .n = *n, .k = *k, \
         .a = a, .lda = *lda, .x = x, .incx = *incx);                                                                                 \
  }
#define F77_trmv_tbsv F77_trmv_tbmv
#define F77_trmv_tpmv(routine, l, T)                                                                                                  \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const char* trans, const char* diagonal, const int* n, const T* a, T* x, \
                                       const int* incx) {                                                                             \
    CALL(l##routine, routine, trmv, T, COLUMNS, .uplo = uplo(triangle), .trans = op(trans), .diag = diag(diagonal), .n = *n, .a = a,  \
         .x = x, .incx = *incx);                                                                                                      \
  }
#define F77_trmv_tpsv F77_trmv_tpmv
#define F77_ger(routine, l, T)                                                                                                          \
  SHIM_EXPORT void FORTRAN(l##routine)(const int* m, const int* n, const T* alpha, const T* x, const int* incx, const T* y,             \
                                       const int* incy, T* a, const int* lda) {                                                         \
    CALL(l##routine, routine, ger, T, COLUMNS, .m = *m, .n = *n, .alpha = *alpha, .x = x, .incx = *incx, .y = y, .incy = *incy, .a = a, \
         .lda = *lda);                                                                                                                  \
  }
#define F77_syr(routine, l, T) F77_syr_##routine(routine, l, T)
#define F77_syr_syr(routine, l, T)                                                                                              \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const int* n, const Alpha<Routine::routine, T>* alpha, const T* x, \
                                       const int* incx, T* a, const int* lda) {                                                 \
    CALL(l##routine, routine, syr, T, COLUMNS, .uplo = uplo(triangle), .n = *n, .alpha = *alpha, .x = x, .incx = *incx, .a = a, \
         .lda = *lda);                                                                                                          \
  }
#define F77_syr_her F77_syr_syr
#define F77_syr_spr(routine, l, T)                                                                                               \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const int* n, const Alpha<Routine::routine, T>* alpha, const T* x,  \
                                       const int* incx, T* a) {                                                                  \
    CALL(l##routine, routine, syr, T, COLUMNS, .uplo = uplo(triangle), .n = *n, .alpha = *alpha, .x = x, .incx = *incx, .a = a); \
  }
#define F77_syr_hpr F77_syr_spr
#define F77_syr_syr2(routine, l, T)                                                                                                 \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const int* n, const T* alpha, const T* x, const int* incx, const T* y, \
                                       const int* incy, T* a, const int* lda) {                                                     \
    CALL(l##routine, routine, syr, T, COLUMNS, .uplo = uplo(triangle), .n = *n, .alpha = *alpha, .x = x, .incx = *incx, .y = y,     \
         .incy = *incy, .a = a, .lda = *lda);                                                                                       \
  }
#define F77_syr_her2 F77_syr_syr2
#define F77_syr_spr2(routine, l, T)                                                                                                 \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const int* n, const T* alpha, const T* x, const int* incx, const T* y, \
                                       const int* incy, T* a) {                                                                     \
    CALL(l##routine, routine, syr, T, COLUMNS, .uplo = uplo(triangle), .n = *n, .alpha = *alpha, .x = x, .incx = *incx, .y = y,     \
         .incy = *incy, .a = a);                                                                                                    \
  }
#define F77_syr_hpr2 F77_syr_spr2

// Level 3.
#define F77_gemm(routine, l, T) F77_gemm_##routine(routine, l, T)
#define F77_gemm_gemm(routine, l, T)                                                                                                       \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* trans_a, const char* trans_b, const int* m, const int* n, const int* k, const T* alpha, \
                                       const T* a, const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc) {      \
    CALL(l##routine, routine, gemm, T, COLUMNS, .trans_a = op(trans_a), .trans_b = op(trans_b), .m = *m, .n = *n, .k = *k,                 \
         .alpha = *alpha, .a = a, .lda = *lda, .b = b, .ldb = *ldb, .beta = *beta, .c = c, .ldc = *ldc);                                   \
  }
#define F77_gemm_gemmt(routine, l, T)
#define F77_symm(routine, l, T)                                                                                                         \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* where, const char* triangle, const int* m, const int* n, const T* alpha, const T* a, \
                                       const int* lda, const T* b, const int* ldb, const T* beta, T* c, const int* ldc) {               \
    CALL(l##routine, routine, symm, T, COLUMNS, .side = side(where), .uplo = uplo(triangle), .m = *m, .n = *n, .alpha = *alpha, .a = a, \
         .lda = *lda, .b = b, .ldb = *ldb, .beta = *beta, .c = c, .ldc = *ldc);                                                         \
  }
#define F77_syrk(routine, l, T) F77_syrk_##routine(routine, l, T)
#define F77_syrk_syrk(routine, l, T)                                                                                                   \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const char* trans, const int* n, const int* k,                            \
                                       const Alpha<Routine::routine, T>* alpha, const T* a, const int* lda,                            \
                                       const Beta<Routine::routine, T>* beta, T* c, const int* ldc) {                                  \
    CALL(l##routine, routine, syrk, T, COLUMNS, .uplo = uplo(triangle), .trans = op(trans), .n = *n, .k = *k, .alpha = *alpha, .a = a, \
         .lda = *lda, .beta = *beta, .c = c, .ldc = *ldc);                                                                             \
  }
#define F77_syrk_herk F77_syrk_syrk
#define F77_syrk_syr2k(routine, l, T)                                                                                                   \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* triangle, const char* trans, const int* n, const int* k, const T* alpha, const T* a, \
                                       const int* lda, const T* b, const int* ldb, const Beta<Routine::routine, T>* beta, T* c,         \
                                       const int* ldc) {                                                                                \
    CALL(l##routine, routine, syrk, T, COLUMNS, .uplo = uplo(triangle), .trans = op(trans), .n = *n, .k = *k, .alpha = *alpha, .a = a,  \
         .lda = *lda, .b = b, .ldb = *ldb, .beta = *beta, .c = c, .ldc = *ldc);                                                         \
  }
#define F77_syrk_her2k F77_syrk_syr2k
#define F77_trmm(routine, l, T)                                                                                                          \
  SHIM_EXPORT void FORTRAN(l##routine)(const char* where, const char* triangle, const char* trans, const char* diagonal, const int* m,   \
                                       const int* n, const T* alpha, const T* a, const int* lda, T* b, const int* ldb) {                 \
    CALL(l##routine, routine, trmm, T, COLUMNS, .side = side(where), .uplo = uplo(triangle), .trans = op(trans), .diag = diag(diagonal), \
         .m = *m, .n = *n, .alpha = *alpha, .a = a, .lda = *lda, .b = b, .ldb = *ldb);                                                   \
  }

// Extensions, which the reference lacks.
#define F77_geam(routine, l, T)
#define F77_dgmm(routine, l, T)
#define F77_gemm_batched(routine, l, T)
#define F77_gemm_strided_batched(routine, l, T)

#define TENON_BLAS(id, routine, level, signature, dtypes) FOR_EACH_##dtypes(F77_##signature, routine)
#include <tenon/blas.def>
#undef TENON_BLAS

// Further functions that LAPACK and the reference's testers call.

/// |re z| + |im z|.
SHIM_EXPORT float scabs1_(const std::complex<float>* z) {
  return std::abs(z->real()) + std::abs(z->imag());
}
SHIM_EXPORT double dcabs1_(const std::complex<double>* z) {
  return std::abs(z->real()) + std::abs(z->imag());
}
SHIM_EXPORT void scabs1sub_(const std::complex<float>* z, float* out_result) {
  *out_result = scabs1_(z);
}
SHIM_EXPORT void dcabs1sub_(const std::complex<double>* z, double* out_result) {
  *out_result = dcabs1_(z);
}
/// Compares two letters, ignoring case.
SHIM_EXPORT int lsame_(const char* a, const char* b) {
  const auto upper = [](char letter) { return letter >= 'a' && letter <= 'z' ? static_cast<char>(letter - 'a' + 'A') : letter; };
  return upper(*a) == upper(*b) ? 1 : 0;
}
/// xerbla_ for a name given as a character array with a length.
SHIM_EXPORT void xerbla_array_(const char* name, const int* name_length, const int* position) {
  char padded[32];
  for (int i = 0; i < 32; ++i) padded[i] = i < *name_length ? name[i] : ' ';
  xerbla_(padded, position, sizeof padded);
}
