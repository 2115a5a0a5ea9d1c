// SPDX-License-Identifier: Apache-2.0
// BLAS level 2 (blas/level2.cl): one kernel each for products, solves and updates, whatever the storage of A.
#include "blas/routine.h"
#include "kernel/lanes.h"

namespace tenon::opencl {
namespace blas {
namespace {

/// y = alpha A x + beta y
template <class T>
void multiply(Stream& stream, const Scalar<T>& alpha, const Matrix<T>& a, const Vector& x, const Scalar<T>& beta, const Vector& y) {
  std::uint32_t width = lanes_for(a.view.n);
  // Where columns are contiguous, neighbouring work-items read neighbouring rows: a row has several only to occupy the device.
  while (width > 1 && a.view.by_rows == 0 && a.view.m * width > 16384) width /= 2;
  launch<T>(stream, sources::level2, "matrix_vector", a.view.m * width, width, alpha, a, x, beta, y);
}
/// P: arguments with alpha, x, beta, y.
template <class P, class T>
void multiply(const P& p, const Matrix<T>& a) {
  multiply(p.stream, p.alpha, a, vector(p.stream, p.x, a.view.n, p.incx), p.beta, vector(p.stream, p.y, a.view.m, p.incy));
}

template <class T>
void gemv(const arguments::gemv<T>& p) {
  if (p.m > 0 && p.n > 0) multiply(p, dense(p.stream, p.layout, p.m, p.n, p.a, p.lda).op(p.trans));
}
template <class T>
void gbmv(const arguments::gemv<T>& p) {
  if (p.m > 0 && p.n > 0) multiply(p, banded(p.stream, p.layout, p.m, p.n, p.kl, p.ku, p.a, p.lda).op(p.trans));
}
template <class T>
void symv(const arguments::symv<T>& p) {
  multiply(p, dense_triangle(p.stream, p.layout, p.uplo, p.n, p.a, p.lda).of_kind(View::symmetric));
}
template <class T>
void hemv(const arguments::symv<T>& p) {
  multiply(p, dense_triangle(p.stream, p.layout, p.uplo, p.n, p.a, p.lda).of_kind(View::hermitian));
}
template <class T>
void sbmv(const arguments::symv<T>& p) {
  multiply(p, banded_triangle(p.stream, p.layout, p.uplo, p.n, p.k, p.a, p.lda).of_kind(View::symmetric));
}
template <class T>
void hbmv(const arguments::symv<T>& p) {
  multiply(p, banded_triangle(p.stream, p.layout, p.uplo, p.n, p.k, p.a, p.lda).of_kind(View::hermitian));
}
template <class T>
void spmv(const arguments::symv<T>& p) {
  multiply(p, packed_triangle(p.stream, p.layout, p.uplo, p.n, p.a).of_kind(View::symmetric));
}
template <class T>
void hpmv(const arguments::symv<T>& p) {
  multiply(p, packed_triangle(p.stream, p.layout, p.uplo, p.n, p.a).of_kind(View::hermitian));
}

/// x = op(A) x, of a copy of x
template <class T>
void multiply_in_place(const arguments::trmv<T>& p, const Matrix<T>& triangle) {
  if (p.n == 0) return;
  const Temporary memory(p.stream, p.n * static_cast<std::int64_t>(sizeof(T)));
  const Vector x = vector(p.stream, p.x, p.n, p.incx), former{memory.place(), 1};
  launch<T>(p.stream, sources::level1, "copy_vector", p.n, p.n, x, former);
  multiply<T>(p.stream, {T(1)}, triangular(triangle, p.trans, p.diag), former, {T(0)}, x);
}
template <class T>
void trmv(const arguments::trmv<T>& p) {
  multiply_in_place(p, dense_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.a, p.lda));
}
template <class T>
void tbmv(const arguments::trmv<T>& p) {
  multiply_in_place(p, banded_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.k, p.a, p.lda));
}
template <class T>
void tpmv(const arguments::trmv<T>& p) {
  multiply_in_place(p, packed_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.a));
}

/// x = op(A)^-1 x
template <class T>
void solve(const arguments::trmv<T>& p, const Matrix<T>& triangle) {
  const std::int64_t items = p.n == 0 ? 0 : Launch::group_size, line_step = 0;
  launch<T>(p.stream, sources::level2, "solve", items, Scalar<T>{T(1)}, triangular(triangle, p.trans, p.diag),
            vector(p.stream, p.x, p.n, p.incx), line_step);
}
template <class T>
void trsv(const arguments::trmv<T>& p) {
  solve(p, dense_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.a, p.lda));
}
template <class T>
void tbsv(const arguments::trmv<T>& p) {
  solve(p, banded_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.k, p.a, p.lda));
}
template <class T>
void tpsv(const arguments::trmv<T>& p) {
  solve(p, packed_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.a));
}

/// A += alpha x y', or alpha x conj(y)', and with `both` also alpha y x', or conj(alpha) y conj(x)'
template <class T>
void update(Stream& stream, const Scalar<T>& alpha, const Vector& x, const Vector& y, const Matrix<T>& a, bool conjugate, bool both) {
  launch<T>(stream, sources::level2, "rank_update", a.view.m * a.view.n, alpha, x, y, a, std::int32_t{conjugate}, std::int32_t{both});
}
template <class T>
void general_update(const arguments::ger<T>& p, bool conjugate) {
  update(p.stream, p.alpha, vector(p.stream, p.x, p.m, p.incx), vector(p.stream, p.y, p.n, p.incy),
         dense<T>(p.stream, p.layout, p.m, p.n, p.a, p.lda), conjugate, false);
}
template <class T>
void ger(const arguments::ger<T>& p) {
  general_update(p, false);
}
template <class T>
void geru(const arguments::ger<T>& p) {
  general_update(p, false);
}
template <class T>
void gerc(const arguments::ger<T>& p) {
  general_update(p, true);
}

template <class T>
void symmetric_update(const arguments::syr<T>& p, const Matrix<T>& a, View::Kind kind, bool both) {
  const Vector x = vector(p.stream, p.x, p.n, p.incx);
  update(p.stream, p.alpha, x, both ? vector(p.stream, p.y, p.n, p.incy) : x, a.of_kind(kind), kind == View::hermitian, both);
}
template <class T>
Matrix<T> full(const arguments::syr<T>& p) {
  return dense_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.a, p.lda);
}
template <class T>
Matrix<T> packed(const arguments::syr<T>& p) {
  return packed_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.a);
}
template <class T>
void syr(const arguments::syr<T>& p) {
  symmetric_update(p, full(p), View::symmetric, false);
}
template <class T>
void her(const arguments::syr<T>& p) {
  symmetric_update(p, full(p), View::hermitian, false);
}
template <class T>
void spr(const arguments::syr<T>& p) {
  symmetric_update(p, packed(p), View::symmetric, false);
}
template <class T>
void hpr(const arguments::syr<T>& p) {
  symmetric_update(p, packed(p), View::hermitian, false);
}
template <class T>
void syr2(const arguments::syr<T>& p) {
  symmetric_update(p, full(p), View::symmetric, true);
}
template <class T>
void her2(const arguments::syr<T>& p) {
  symmetric_update(p, full(p), View::hermitian, true);
}
template <class T>
void spr2(const arguments::syr<T>& p) {
  symmetric_update(p, packed(p), View::symmetric, true);
}
template <class T>
void hpr2(const arguments::syr<T>& p) {
  symmetric_update(p, packed(p), View::hermitian, true);
}

}  // namespace
}  // namespace blas
TENON_OPENCL_BLAS(gemv)
TENON_OPENCL_BLAS(gbmv)
TENON_OPENCL_BLAS(symv)
TENON_OPENCL_BLAS(hemv)
TENON_OPENCL_BLAS(sbmv)
TENON_OPENCL_BLAS(hbmv)
TENON_OPENCL_BLAS(spmv)
TENON_OPENCL_BLAS(hpmv)
TENON_OPENCL_BLAS(trmv)
TENON_OPENCL_BLAS(tbmv)
TENON_OPENCL_BLAS(tpmv)
TENON_OPENCL_BLAS(trsv)
TENON_OPENCL_BLAS(tbsv)
TENON_OPENCL_BLAS(tpsv)
TENON_OPENCL_BLAS(ger)
TENON_OPENCL_BLAS(geru)
TENON_OPENCL_BLAS(gerc)
TENON_OPENCL_BLAS(syr)
TENON_OPENCL_BLAS(her)
TENON_OPENCL_BLAS(spr)
TENON_OPENCL_BLAS(hpr)
TENON_OPENCL_BLAS(syr2)
TENON_OPENCL_BLAS(her2)
TENON_OPENCL_BLAS(spr2)
TENON_OPENCL_BLAS(hpr2)
}  // namespace tenon::opencl
