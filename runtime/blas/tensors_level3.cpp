// SPDX-License-Identifier: Apache-2.0
// blas/tensors_level3.cpp - BLAS on tensors, level 3: matrices.
#include "blas/tensor_operands.h"

namespace tenon::blas {

namespace {
template <class T>
arguments::gemm<T> gemm_arguments(const Operands& in, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b, Number beta,
                                  const Tensor& c, Op trans_a, Op trans_b) {
  const Layout layout = in.layout("C", c);
  const Matrix ma = in.matrix("A", a, layout), mb = in.matrix("B", b, layout), mc = in.matrix("C", c, layout);
  const auto [m, k] = shape_of(ma, trans_a);
  const auto [k_of_b, n] = shape_of(mb, trans_b);
  if (k != k_of_b || m != mc.rows || n != mc.columns) {
    in.fail(fmt::format("op(A) ({}, {}) times op(B) ({}, {}) does not give C {}", m, k, k_of_b, n, c.str()));
  }
  arguments::gemm<T> p{
      .layout = layout, .uplo = uplo, .trans_a = through(ma.trans, trans_a), .trans_b = through(mb.trans, trans_b), .m = m, .n = n, .k = k};
  p.alpha = in.number<T>("alpha", alpha), p.beta = in.number<T>("beta", beta);
  p.a = at<const T>(ma.base), p.lda = ma.ld;
  p.b = at<const T>(mb.base), p.ldb = mb.ld;
  p.c = at<T>(mc.base), p.ldc = mc.ld;
  return p;
}
template <class T>
arguments::symm<T> symm_arguments(const Operands& in, Side side, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b, Number beta,
                                  const Tensor& c) {
  const Layout layout = in.layout("C", c);
  // In the other layout a symmetric matrix is itself with the other triangle; a Hermitian one is its conjugate.
  const Matrix ma = in.square("A", a, layout, in.routine() == Routine::symm), mb = in.plain("B", b, layout), mc = in.plain("C", c, layout);
  const std::int64_t order = side == Side::left ? mc.rows : mc.columns;
  if (ma.rows != order || mb.rows != mc.rows || mb.columns != mc.columns) {
    in.fail(fmt::format("A {} and B {} do not give C {}", a.str(), b.str(), c.str()));
  }
  arguments::symm<T> p{.layout = layout, .side = side, .uplo = through(ma.trans, uplo), .m = mc.rows, .n = mc.columns};
  p.alpha = in.number<T>("alpha", alpha), p.beta = in.number<T>("beta", beta);
  p.a = at<const T>(ma.base), p.lda = ma.ld;
  p.b = at<const T>(mb.base), p.ldb = mb.ld;
  p.c = at<T>(mc.base), p.ldc = mc.ld;
  return p;
}
template <class T>
arguments::syrk<T> syrk_arguments(const Operands& in, Uplo uplo, Number alpha, const Tensor& a, const Tensor* b, Number beta,
                                  const Tensor& c, Op trans) {
  const bool hermitian = in.routine() == Routine::herk || in.routine() == Routine::her2k;
  const Layout layout = in.layout("C", c);
  const Matrix mc = in.square("C", c, layout, false);
  const Matrix ma = hermitian ? in.plain("A", a, layout) : in.matrix("A", a, layout);
  const Matrix mb = b == nullptr ? ma : hermitian ? in.plain("B", *b, layout) : in.matrix("B", *b, layout);
  if (ma.trans != mb.trans)
    in.fail(fmt::format("A {} and B {} must have the same layout; call contiguous() for row-major copies", a.str(), b->str()));
  const auto [n, k] = shape_of(ma, trans);
  if (shape_of(mb, trans) != shape_of(ma, trans) || n != mc.rows) {
    in.fail(fmt::format("{} of A {} does not give C {}", name_of(in.routine()), a.str(), c.str()));
  }
  arguments::syrk<T> p{.layout = layout, .uplo = uplo, .trans = through(ma.trans, trans), .n = n, .k = k};
  p.alpha = in.number<T>("alpha", alpha), p.beta = in.number<T>("beta", beta);
  p.a = at<const T>(ma.base), p.lda = ma.ld;
  p.b = at<const T>(mb.base), p.ldb = mb.ld;
  p.c = at<T>(mc.base), p.ldc = mc.ld;
  return p;
}
template <class T>
arguments::trmm<T> trmm_arguments(const Operands& in, Side side, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b, Op trans,
                                  Diag diag) {
  const Layout layout = in.layout("B", b);
  const Matrix ma = in.square("A", a, layout), mb = in.matrix("B", b, layout);
  if (ma.rows != (side == Side::left ? mb.rows : mb.columns)) in.fail(fmt::format("A {} does not match B {}", a.str(), b.str()));
  arguments::trmm<T> p{.layout = layout, .side = side, .diag = diag, .m = mb.rows, .n = mb.columns};
  p.uplo = through(ma.trans, uplo), p.trans = through(ma.trans, trans);
  p.alpha = in.number<T>("alpha", alpha);
  p.a = at<const T>(ma.base), p.lda = ma.ld;
  p.b = at<T>(mb.base), p.ldb = mb.ld;
  return p;
}
}  // namespace

void gemm(const Queue& queue, Number alpha, const Tensor& a, const Tensor& b, Number beta, const Tensor& c, Op trans_a, Op trans_b) {
  const Operands in(queue, Routine::gemm, {&a, &b, &c});
  for_all(in, [&]<class T>() { gemm<T>(queue, gemm_arguments<T>(in, Uplo::upper, alpha, a, b, beta, c, trans_a, trans_b)); });
}
void gemmt(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b, Number beta, const Tensor& c, Op trans_a,
           Op trans_b) {
  const Operands in(queue, Routine::gemmt, {&a, &b, &c});
  if (c.shape().rank() == 2 && c.shape()[0] != c.shape()[1]) in.fail(fmt::format("C: expected a square matrix, got {}", c.str()));
  for_all(in, [&]<class T>() { gemmt<T>(queue, gemm_arguments<T>(in, uplo, alpha, a, b, beta, c, trans_a, trans_b)); });
}
void symm(const Queue& queue, Side side, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b, Number beta, const Tensor& c) {
  const Operands in(queue, Routine::symm, {&a, &b, &c});
  for_all(in, [&]<class T>() { symm<T>(queue, symm_arguments<T>(in, side, uplo, alpha, a, b, beta, c)); });
}
void hemm(const Queue& queue, Side side, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b, Number beta, const Tensor& c) {
  const Operands in(queue, Routine::hemm, {&a, &b, &c});
  for_complex(in, [&]<class T>() { hemm<T>(queue, symm_arguments<T>(in, side, uplo, alpha, a, b, beta, c)); });
}
void syrk(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, Number beta, const Tensor& c) {
  const Operands in(queue, Routine::syrk, {&a, &c});
  for_all(in, [&]<class T>() { syrk<T>(queue, syrk_arguments<T>(in, uplo, alpha, a, nullptr, beta, c, Op::none)); });
}
void herk(const Queue& queue, Uplo uplo, double alpha, const Tensor& a, double beta, const Tensor& c, Op trans) {
  const Operands in(queue, Routine::herk, {&a, &c});
  for_complex(in, [&]<class T>() { herk<T>(queue, syrk_arguments<T>(in, uplo, alpha, a, nullptr, beta, c, trans)); });
}
void syr2k(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b, Number beta, const Tensor& c) {
  const Operands in(queue, Routine::syr2k, {&a, &b, &c});
  for_all(in, [&]<class T>() { syr2k<T>(queue, syrk_arguments<T>(in, uplo, alpha, a, &b, beta, c, Op::none)); });
}
void her2k(const Queue& queue, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b, double beta, const Tensor& c, Op trans) {
  const Operands in(queue, Routine::her2k, {&a, &b, &c});
  for_complex(in, [&]<class T>() { her2k<T>(queue, syrk_arguments<T>(in, uplo, alpha, a, &b, beta, c, trans)); });
}
void trmm(const Queue& queue, Side side, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b, Op trans, Diag diag) {
  const Operands in(queue, Routine::trmm, {&a, &b});
  for_all(in, [&]<class T>() { trmm<T>(queue, trmm_arguments<T>(in, side, uplo, alpha, a, b, trans, diag)); });
}
void trsm(const Queue& queue, Side side, Uplo uplo, Number alpha, const Tensor& a, const Tensor& b, Op trans, Diag diag) {
  const Operands in(queue, Routine::trsm, {&a, &b});
  for_all(in, [&]<class T>() { trsm<T>(queue, trmm_arguments<T>(in, side, uplo, alpha, a, b, trans, diag)); });
}

void geam(const Queue& queue, Number alpha, const Tensor& a, Number beta, const Tensor& b, const Tensor& c, Op trans_a, Op trans_b) {
  const Operands in(queue, Routine::geam, {&a, &b, &c});
  const Layout layout = in.layout("C", c);
  const Matrix ma = in.matrix("A", a, layout), mb = in.matrix("B", b, layout), mc = in.matrix("C", c, layout);
  const std::pair expected(mc.rows, mc.columns);
  if (shape_of(ma, trans_a) != expected || shape_of(mb, trans_b) != expected) {
    in.fail(fmt::format("op(A) of {} and op(B) of {} do not give C {}", a.str(), b.str(), c.str()));
  }
  for_all(in, [&]<class T>() {
    arguments::geam<T> p{
        .layout = layout, .trans_a = through(ma.trans, trans_a), .trans_b = through(mb.trans, trans_b), .m = mc.rows, .n = mc.columns};
    p.alpha = in.number<T>("alpha", alpha), p.beta = in.number<T>("beta", beta);
    p.a = at<const T>(ma.base), p.lda = ma.ld;
    p.b = at<const T>(mb.base), p.ldb = mb.ld;
    p.c = at<T>(mc.base), p.ldc = mc.ld;
    geam<T>(queue, p);
  });
}

void dgmm(const Queue& queue, Side side, const Tensor& a, const Tensor& x, const Tensor& c) {
  const Operands in(queue, Routine::dgmm, {&a, &x, &c});
  const Layout layout = in.layout("C", c);
  const Matrix ma = in.plain("A", a, layout), mc = in.plain("C", c, layout);
  const Vector u = in.vector("x", x);
  if (ma.rows != mc.rows || ma.columns != mc.columns || u.n != (side == Side::left ? mc.rows : mc.columns)) {
    in.fail(fmt::format("A {} and x of {} elements do not give C {}", a.str(), u.n, c.str()));
  }
  for_all(in, [&]<class T>() {
    arguments::dgmm<T> p{.layout = layout, .side = side, .m = mc.rows, .n = mc.columns};
    p.a = at<const T>(ma.base), p.lda = ma.ld;
    p.x = at<const T>(u.base), p.incx = u.inc;
    p.c = at<T>(mc.base), p.ldc = mc.ld;
    dgmm<T>(queue, p);
  });
}

void gemm_strided_batched(const Queue& queue, Number alpha, const Tensor& a, const Tensor& b, Number beta, const Tensor& c, Op trans_a,
                          Op trans_b) {
  const Operands in(queue, Routine::gemm_strided_batched, {&a, &b, &c});
  for (const Tensor* t : {&a, &b, &c}) {
    if (t->shape().rank() != 3) in.fail(fmt::format("expected a tensor of rank 3 (batch, rows, columns), got {}", t->str()));
  }
  const std::int64_t batch = c.shape()[0];
  if (a.shape()[0] != batch || b.shape()[0] != batch) {
    in.fail(fmt::format("{}, {} and {} are batches of different sizes; expand() repeats one matrix", a.str(), b.str(), c.str()));
  }
  if (batch == 0) return;
  for_all(in, [&]<class T>() {
    const arguments::gemm<T> one =
        gemm_arguments<T>(in, Uplo::upper, alpha, a.select(0, 0), b.select(0, 0), beta, c.select(0, 0), trans_a, trans_b);
    arguments::gemm_strided_batched<T> p{
        .layout = one.layout, .trans_a = one.trans_a, .trans_b = one.trans_b, .m = one.m, .n = one.n, .k = one.k, .batch = batch};
    p.alpha = one.alpha, p.beta = one.beta;
    p.a = one.a, p.lda = one.lda, p.stride_a = a.strides()[0];
    p.b = one.b, p.ldb = one.ldb, p.stride_b = b.strides()[0];
    p.c = one.c, p.ldc = one.ldc, p.stride_c = c.strides()[0];
    gemm_strided_batched<T>(queue, p);
  });
}

}  // namespace tenon::blas
