// SPDX-License-Identifier: Apache-2.0
// blas/tensors_level1.cpp - BLAS on tensors, level 1: vectors.
#include "blas/tensor_operands.h"

namespace tenon::blas {
namespace {

void same_length(const Operands& in, const Vector& x, const Vector& y) {
  if (x.n != y.n) in.fail(fmt::format("x has {} elements, y {}", x.n, y.n));
}
Tensor scalar_on(const Queue& queue, DType dtype) {
  return queue.device().empty(dtype, {});
}
template <class R>
Result<R> result_in(const Tensor& t) {
  return Result<R>::on_device(at<R>(t.address()));
}

}  // namespace

void swap(const Queue& queue, const Tensor& x, const Tensor& y) {
  const Operands in(queue, Routine::swap, {&x, &y});
  const Vector u = in.vector("x", x), v = in.vector("y", y);
  same_length(in, u, v);
  for_all(in, [&]<class T>() { swap<T>(queue, {.n = u.n, .x = at<T>(u.base), .incx = u.inc, .y = at<T>(v.base), .incy = v.inc}); });
}

void copy(const Queue& queue, const Tensor& x, const Tensor& y) {
  const Operands in(queue, Routine::copy, {&x, &y});
  const Vector u = in.vector("x", x), v = in.vector("y", y);
  same_length(in, u, v);
  for_all(in, [&]<class T>() { copy<T>(queue, {.n = u.n, .x = at<T>(u.base), .incx = u.inc, .y = at<T>(v.base), .incy = v.inc}); });
}

void scal(const Queue& queue, Number alpha, const Tensor& x) {
  const Operands in(queue, is_complex(x) && alpha.imag() == 0 ? Routine::rscal : Routine::scal, {&x});
  const Vector u = in.forward("x", x);
  if (in.routine() == Routine::rscal) {
    for_complex(in,
                [&]<class T>() { rscal<T>(queue, {.n = u.n, .alpha = in.number<T>("alpha", alpha), .x = at<T>(u.base), .incx = u.inc}); });
  } else {
    for_all(in, [&]<class T>() { scal<T>(queue, {.n = u.n, .alpha = in.number<T>("alpha", alpha), .x = at<T>(u.base), .incx = u.inc}); });
  }
}

void axpy(const Queue& queue, Number alpha, const Tensor& x, const Tensor& y) {
  const Operands in(queue, Routine::axpy, {&x, &y});
  const Vector u = in.vector("x", x), v = in.vector("y", y);
  same_length(in, u, v);
  for_all(in, [&]<class T>() {
    axpy<T>(queue,
            {.n = u.n, .alpha = in.number<T>("alpha", alpha), .x = at<const T>(u.base), .incx = u.inc, .y = at<T>(v.base), .incy = v.inc});
  });
}

void axpby(const Queue& queue, Number alpha, const Tensor& x, Number beta, const Tensor& y) {
  const Operands in(queue, Routine::axpby, {&x, &y});
  const Vector u = in.vector("x", x), v = in.vector("y", y);
  same_length(in, u, v);
  for_all(in, [&]<class T>() {
    axpby<T>(queue, {.n = u.n,
                     .alpha = in.number<T>("alpha", alpha),
                     .x = at<const T>(u.base),
                     .incx = u.inc,
                     .beta = in.number<T>("beta", beta),
                     .y = at<T>(v.base),
                     .incy = v.inc});
  });
}

void rot(const Queue& queue, const Tensor& x, const Tensor& y, double c, Number s) {
  const Operands in(queue, Routine::rot, {&x, &y});
  const Vector u = in.vector("x", x), v = in.vector("y", y);
  same_length(in, u, v);
  for_all(in, [&]<class T>() {
    rot<T>(queue, {.n = u.n,
                   .x = at<T>(u.base),
                   .incx = u.inc,
                   .y = at<T>(v.base),
                   .incy = v.inc,
                   .c = static_cast<Real<T>>(c),
                   .s = in.number<T>("s", s)});
  });
}

namespace {
Tensor dot_of(const Queue& queue, Routine routine, const Tensor& x, const Tensor& y) {
  const Operands in(queue, routine, {&x, &y});
  const Vector u = in.vector("x", x), v = in.vector("y", y);
  same_length(in, u, v);
  const Tensor out = scalar_on(queue, routine == Routine::dsdot ? DType::f64 : x.dtype());
  const auto arguments = [&]<class T>() {
    return arguments::dot<T>{.n = u.n, .x = at<const T>(u.base), .incx = u.inc, .y = at<const T>(v.base), .incy = v.inc};
  };
  if (routine == Routine::dsdot) {
    in.require(x.dtype() == DType::f32, "expected dtype f32");
    arguments::dot<float> p = arguments.operator()<float>();
    p.result_f64 = result_in<double>(out);
    dsdot<float>(queue, p);
  } else if (routine == Routine::dot) {
    for_real(in, [&]<class T>() {
      arguments::dot<T> p = arguments.template operator()<T>();
      p.result = result_in<T>(out);
      dot<T>(queue, p);
    });
  } else {
    for_complex(in, [&]<class T>() {
      arguments::dot<T> p = arguments.template operator()<T>();
      p.result = result_in<T>(out);
      if (routine == Routine::dotc)
        dotc<T>(queue, p);
      else
        dotu<T>(queue, p);
    });
  }
  return out;
}
}  // namespace

Tensor dot(const Queue& queue, const Tensor& x, const Tensor& y) {
  return dot_of(queue, is_complex(x) ? Routine::dotu : Routine::dot, x, y);
}
Tensor dotc(const Queue& queue, const Tensor& x, const Tensor& y) {
  return dot_of(queue, is_complex(x) ? Routine::dotc : Routine::dot, x, y);
}
Tensor dsdot(const Queue& queue, const Tensor& x, const Tensor& y) {
  return dot_of(queue, Routine::dsdot, x, y);
}

namespace {
DType real_of(DType dtype) {
  if (dtype == DType::c64) return DType::f32;
  if (dtype == DType::c128) return DType::f64;
  return dtype;
}
template <class Body>
Tensor reduced(const Queue& queue, Routine routine, const Tensor& x, const Body& body) {
  const Operands in(queue, routine, {&x});
  const bool index = routine == Routine::iamax || routine == Routine::iamin;
  const Vector u = index ? in.vector("x", x) : in.forward("x", x);
  if (index && u.inc < 0) in.fail("expected a vector with a positive stride, got a reversed one; call contiguous() first");
  const Tensor out = scalar_on(queue, index ? DType::i64 : real_of(x.dtype()));
  for_all(in, [&]<class T>() {
    arguments::reduce<T> p{.n = u.n, .x = at<const T>(u.base), .incx = u.inc};
    if (index)
      p.index = result_in<std::int64_t>(out);
    else
      p.result = result_in<Real<T>>(out);
    body(p);
  });
  return out;
}
}  // namespace

Tensor nrm2(const Queue& queue, const Tensor& x) {
  return reduced(queue, Routine::nrm2, x, [&](const auto& p) { nrm2(queue, p); });
}
Tensor asum(const Queue& queue, const Tensor& x) {
  return reduced(queue, Routine::asum, x, [&](const auto& p) { asum(queue, p); });
}
Tensor iamax(const Queue& queue, const Tensor& x) {
  return reduced(queue, Routine::iamax, x, [&](const auto& p) { iamax(queue, p); });
}
Tensor iamin(const Queue& queue, const Tensor& x) {
  return reduced(queue, Routine::iamin, x, [&](const auto& p) { iamin(queue, p); });
}

}  // namespace tenon::blas
