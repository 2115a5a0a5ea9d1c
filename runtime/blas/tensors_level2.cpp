// SPDX-License-Identifier: Apache-2.0
// blas/tensors_level2.cpp - BLAS on tensors, level 2: a matrix and vectors.
#include "blas/tensor_operands.h"

namespace tenon::blas {

void gemv(const Queue& queue, Number alpha, const Tensor& a, const Tensor& x, Number beta, const Tensor& y, Op trans) {
  const Operands in(queue, Routine::gemv, {&a, &x, &y});
  const Layout layout = in.layout("A", a);
  const Matrix m = in.matrix("A", a, layout);
  const Vector u = in.vector("x", x), v = in.vector("y", y);
  const auto [rows, columns] = shape_of(m, trans);
  if (u.n != columns || v.n != rows) {
    in.fail(fmt::format("op(A) is ({}, {}): expected x of {} and y of {} elements, got {} and {}", rows, columns, columns, rows, u.n, v.n));
  }
  for_all(in, [&]<class T>() {
    arguments::gemv<T> p{.layout = layout, .trans = trans, .m = m.rows, .n = m.columns};
    p.alpha = in.number<T>("alpha", alpha), p.beta = in.number<T>("beta", beta);
    p.a = at<const T>(m.base), p.lda = m.ld;
    p.x = at<const T>(u.base), p.incx = u.inc;
    p.y = at<T>(v.base), p.incy = v.inc;
    gemv<T>(queue, p);
  });
}

namespace {
void ger_of(const Queue& queue, Routine routine, Number alpha, const Tensor& x, const Tensor& y, const Tensor& a) {
  const Operands in(queue, routine, {&a, &x, &y});
  const Layout layout = in.layout("A", a);
  const Matrix m = in.matrix("A", a, layout);
  const Vector u = in.vector("x", x), v = in.vector("y", y);
  if (u.n != m.rows || v.n != m.columns) {
    in.fail(fmt::format("A is ({}, {}): expected x and y of that many elements, got {} and {}", m.rows, m.columns, u.n, v.n));
  }
  const auto arguments = [&]<class T>() {
    arguments::ger<T> p{.layout = layout, .m = m.rows, .n = m.columns};
    p.alpha = in.number<T>("alpha", alpha);
    p.a = at<T>(m.base), p.lda = m.ld;
    p.x = at<const T>(u.base), p.incx = u.inc;
    p.y = at<const T>(v.base), p.incy = v.inc;
    return p;
  };
  if (routine == Routine::ger) {
    for_real(in, [&]<class T>() { ger<T>(queue, arguments.template operator()<T>()); });
  } else if (routine == Routine::gerc) {
    for_complex(in, [&]<class T>() { gerc<T>(queue, arguments.template operator()<T>()); });
  } else {
    for_complex(in, [&]<class T>() { geru<T>(queue, arguments.template operator()<T>()); });
  }
}
}  // namespace

void ger(const Queue& queue, Number alpha, const Tensor& x, const Tensor& y, const Tensor& a) {
  ger_of(queue, is_complex(a) ? Routine::geru : Routine::ger, alpha, x, y, a);
}
void gerc(const Queue& queue, Number alpha, const Tensor& x, const Tensor& y, const Tensor& a) {
  ger_of(queue, is_complex(a) ? Routine::gerc : Routine::ger, alpha, x, y, a);
}

namespace {
template <class T>
arguments::symv<T> symv_arguments(const Operands& in, Uplo uplo, Number alpha, const Tensor& a, const Tensor& x, Number beta,
                                  const Tensor& y) {
  const Layout layout = in.layout("A", a);
  const Matrix m = in.square("A", a, layout);
  const Vector u = in.vector("x", x), v = in.vector("y", y);
  if (u.n != m.rows || v.n != m.rows) in.fail(fmt::format("A is {}: x and y have {} and {} elements", a.str(), u.n, v.n));
  arguments::symv<T> p{.layout = layout, .uplo = uplo, .n = m.rows};
  p.alpha = in.number<T>("alpha", alpha), p.beta = in.number<T>("beta", beta);
  p.a = at<const T>(m.base), p.lda = m.ld;
  p.x = at<const T>(u.base), p.incx = u.inc;
  p.y = at<T>(v.base), p.incy = v.inc;
  return p;
}
template <class T>
arguments::trmv<T> trmv_arguments(const Operands& in, Uplo uplo, const Tensor& a, const Tensor& x, Op trans, Diag diag) {
  const Layout layout = in.layout("A", a);
  const Matrix m = in.square("A", a, layout);
  const Vector u = in.vector("x", x);
  if (u.n != m.rows) in.fail(fmt::format("A is {}: x has {} elements", a.str(), u.n));
  arguments::trmv<T> p{.layout = layout, .uplo = uplo, .trans = trans, .diag = diag, .n = m.rows};
  p.a = at<const T>(m.base), p.lda = m.ld;
  p.x = at<T>(u.base), p.incx = u.inc;
  return p;
}
template <class T>
arguments::syr<T> syr_arguments(const Operands& in, Uplo uplo, Number alpha, const Tensor& x, const Tensor* y, const Tensor& a) {
  const Layout layout = in.layout("A", a);
  const Matrix m = in.square("A", a, layout);
  const Vector u = in.vector("x", x), v = y == nullptr ? u : in.vector("y", *y);
  if (u.n != m.rows || v.n != m.rows) in.fail(fmt::format("A is {}: its vectors have {} and {} elements", a.str(), u.n, v.n));
  arguments::syr<T> p{.layout = layout, .uplo = uplo, .n = m.rows};
  p.alpha = in.number<T>("alpha", alpha);
  p.a = at<T>(m.base), p.lda = m.ld;
  p.x = at<const T>(u.base), p.incx = u.inc;
  p.y = at<const T>(v.base), p.incy = v.inc;
  return p;
}
}  // namespace

void symv(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, const Tensor& x, Number beta, const Tensor& y) {
  const Operands in(queue, Routine::symv, {&a, &x, &y});
  for_real(in, [&]<class T>() { symv<T>(queue, symv_arguments<T>(in, uplo, alpha, a, x, beta, y)); });
}
void hemv(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, const Tensor& x, Number beta, const Tensor& y) {
  const Operands in(queue, Routine::hemv, {&a, &x, &y});
  for_complex(in, [&]<class T>() { hemv<T>(queue, symv_arguments<T>(in, uplo, alpha, a, x, beta, y)); });
}
void trmv(const Queue& queue, Uplo uplo, const Tensor& a, const Tensor& x, Op trans, Diag diag) {
  const Operands in(queue, Routine::trmv, {&a, &x});
  for_all(in, [&]<class T>() { trmv<T>(queue, trmv_arguments<T>(in, uplo, a, x, trans, diag)); });
}
void trsv(const Queue& queue, Uplo uplo, const Tensor& a, const Tensor& x, Op trans, Diag diag) {
  const Operands in(queue, Routine::trsv, {&a, &x});
  for_all(in, [&]<class T>() { trsv<T>(queue, trmv_arguments<T>(in, uplo, a, x, trans, diag)); });
}
void syr(const Queue& queue, Uplo uplo, Number alpha, const Tensor& x, const Tensor& a) {
  const Operands in(queue, Routine::syr, {&a, &x});
  for_real(in, [&]<class T>() { syr<T>(queue, syr_arguments<T>(in, uplo, alpha, x, nullptr, a)); });
}
void her(const Queue& queue, Uplo uplo, double alpha, const Tensor& x, const Tensor& a) {
  const Operands in(queue, Routine::her, {&a, &x});
  for_complex(in, [&]<class T>() { her<T>(queue, syr_arguments<T>(in, uplo, alpha, x, nullptr, a)); });
}
void syr2(const Queue& queue, Uplo uplo, Number alpha, const Tensor& x, const Tensor& y, const Tensor& a) {
  const Operands in(queue, Routine::syr2, {&a, &x, &y});
  for_real(in, [&]<class T>() { syr2<T>(queue, syr_arguments<T>(in, uplo, alpha, x, &y, a)); });
}
void her2(const Queue& queue, Uplo uplo, Number alpha, const Tensor& x, const Tensor& y, const Tensor& a) {
  const Operands in(queue, Routine::her2, {&a, &x, &y});
  for_complex(in, [&]<class T>() { her2<T>(queue, syr_arguments<T>(in, uplo, alpha, x, &y, a)); });
}

}  // namespace tenon::blas
