// SPDX-License-Identifier: Apache-2.0
// BLAS level 2 (blas/level2.cl): one kernel each for products, solves and updates, whatever the storage of A.
#include "blas/routine.h"
#include "kernel/lanes.h"

namespace tenon::opencl {
namespace blas {
namespace {

/// The triangles of a routine, by their storage.
template <template <class> class P, class T>
Matrix<T> full(const P<T>& p) {
  return dense_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.a, p.lda);
}
template <template <class> class P, class T>
Matrix<T> band(const P<T>& p) {
  return banded_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.k, p.a, p.lda);
}
template <template <class> class P, class T>
Matrix<T> packed(const P<T>& p) {
  return packed_triangle<T>(p.stream, p.layout, p.uplo, p.n, p.a);
}

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

/// x = op(A) x, of a copy of x
template <class T>
void multiply_in_place(const arguments::trmv<T>& p, const Matrix<T>& triangle) {
  if (p.n == 0) return;
  const Temporary memory(p.stream, p.n * static_cast<std::int64_t>(sizeof(T)));
  const Vector x = vector(p.stream, p.x, p.n, p.incx), former{memory.place(), 1};
  launch<T>(p.stream, sources::level1, "copy_vector", p.n, p.n, x, former);
  multiply<T>(p.stream, {T(1)}, triangular(triangle, p.trans, p.diag), former, {T(0)}, x);
}

/// x = op(A)^-1 x
template <class T>
void solve(const arguments::trmv<T>& p, const Matrix<T>& triangle) {
  const std::int64_t items = p.n == 0 ? 0 : Launch::group_size, line_step = 0;
  launch<T>(p.stream, sources::level2, "solve", items, Scalar<T>{T(1)}, triangular(triangle, p.trans, p.diag),
            vector(p.stream, p.x, p.n, p.incx), line_step);
}

/// A += alpha x y', or alpha x conj(y)', and with `both` also alpha y x', or conj(alpha) y conj(x)'
template <class T>
void update(Stream& stream, const Scalar<T>& alpha, const Vector& x, const Vector& y, const Matrix<T>& a, bool conjugate, bool both) {
  launch_over_elements(stream, sources::level2, "rank_update", a, alpha, x, y, a, std::int32_t{conjugate}, std::int32_t{both});
}
template <class T>
void general_update(const arguments::ger<T>& p, bool conjugate) {
  update(p.stream, p.alpha, vector(p.stream, p.x, p.m, p.incx), vector(p.stream, p.y, p.n, p.incy),
         dense<T>(p.stream, p.layout, p.m, p.n, p.a, p.lda), conjugate, false);
}

template <class T>
void symmetric_update(const arguments::syr<T>& p, const Matrix<T>& a, View::Kind kind, bool both) {
  const Vector x = vector(p.stream, p.x, p.n, p.incx);
  update(p.stream, p.alpha, x, both ? vector(p.stream, p.y, p.n, p.incy) : x, a.of_kind(kind), kind == View::hermitian, both);
}
}  // namespace
}  // namespace blas

TENON_OPENCL_BLAS(gemv, if (p.m > 0 && p.n > 0) multiply(p, dense(p.stream, p.layout, p.m, p.n, p.a, p.lda).op(p.trans)))
TENON_OPENCL_BLAS(gbmv, if (p.m > 0 && p.n > 0) multiply(p, banded(p.stream, p.layout, p.m, p.n, p.kl, p.ku, p.a, p.lda).op(p.trans)))
TENON_OPENCL_BLAS(symv, multiply(p, full(p).of_kind(View::symmetric)))
TENON_OPENCL_BLAS(hemv, multiply(p, full(p).of_kind(View::hermitian)))
TENON_OPENCL_BLAS(sbmv, multiply(p, band(p).of_kind(View::symmetric)))
TENON_OPENCL_BLAS(hbmv, multiply(p, band(p).of_kind(View::hermitian)))
TENON_OPENCL_BLAS(spmv, multiply(p, packed(p).of_kind(View::symmetric)))
TENON_OPENCL_BLAS(hpmv, multiply(p, packed(p).of_kind(View::hermitian)))
TENON_OPENCL_BLAS(trmv, multiply_in_place(p, full(p)))
TENON_OPENCL_BLAS(tbmv, multiply_in_place(p, band(p)))
TENON_OPENCL_BLAS(tpmv, multiply_in_place(p, packed(p)))
TENON_OPENCL_BLAS(trsv, solve(p, full(p)))
TENON_OPENCL_BLAS(tbsv, solve(p, band(p)))
TENON_OPENCL_BLAS(tpsv, solve(p, packed(p)))
TENON_OPENCL_BLAS(ger, general_update(p, false))
TENON_OPENCL_BLAS(geru, general_update(p, false))
TENON_OPENCL_BLAS(gerc, general_update(p, true))
TENON_OPENCL_BLAS(syr, symmetric_update(p, full(p), View::symmetric, false))
TENON_OPENCL_BLAS(her, symmetric_update(p, full(p), View::hermitian, false))
TENON_OPENCL_BLAS(spr, symmetric_update(p, packed(p), View::symmetric, false))
TENON_OPENCL_BLAS(hpr, symmetric_update(p, packed(p), View::hermitian, false))
TENON_OPENCL_BLAS(syr2, symmetric_update(p, full(p), View::symmetric, true))
TENON_OPENCL_BLAS(her2, symmetric_update(p, full(p), View::hermitian, true))
TENON_OPENCL_BLAS(spr2, symmetric_update(p, packed(p), View::symmetric, true))
TENON_OPENCL_BLAS(hpr2, symmetric_update(p, packed(p), View::hermitian, true))

}  // namespace tenon::opencl
