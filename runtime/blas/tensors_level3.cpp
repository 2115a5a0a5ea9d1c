// SPDX-License-Identifier: Apache-2.0
// BLAS on tensors: converts views to BLAS arguments.
#include <fmt/core.h>

#include <cstdlib>
#include <initializer_list>
#include <utility>

#include <tenon/blas.h>

#include "exec/device_state.h"

namespace tenon::blas {
namespace {

/// A vector operand: `base` is the start of the array for either sign of `inc`.
struct Vector {
  std::int64_t n;
  std::uint64_t base;
  std::int64_t inc;
};
/// A matrix operand, read as `rows` lines of `columns` in the layout of the call: `trans` if the view has the other layout.
struct Matrix {
  std::int64_t rows, columns;  ///< of the view
  std::uint64_t base;
  bool trans;
  std::int64_t ld;
};

/// Checks the operands of one call and converts them.
class Operands {
 public:
  Operands(const Queue& queue, Routine routine, std::initializer_list<const Tensor*> all) : queue_(queue), routine_(routine) {
    const exec::DeviceState& device = *queue.device().state();
    dtype_ = (*all.begin())->dtype();
    for (const Tensor* t : all) {
      if (!t->defined()) fail("an operand is not defined");
      if (t->dtype() != dtype_) fail(fmt::format("expected operands of one dtype, got {} and {}", (*all.begin())->str(), t->str()));
      const bool there = t->storage()->device.get() == &device;
      if (!there && !(t->on_host() && device.host_addressable())) {
        fail(fmt::format("{} is not in the memory of '{}'; copy it with to(device)", t->str(), queue.device().name()));
      }
    }
  }

  const Queue& queue() const { return queue_; }
  Routine routine() const { return routine_; }
  DType dtype() const { return dtype_; }

  [[noreturn]] void fail(const std::string& text) const { throw Error(fmt::format("{}: {}", name_of(routine_), text)); }
  void require(bool holds, const char* what) const {
    if (!holds) fail(what);
  }

  Vector vector(const char* name, const Tensor& t) const {
    if (t.shape().rank() != 1) fail(fmt::format("{}: expected a vector of rank 1, got {}", name, t.str()));
    const std::int64_t n = t.shape()[0], stride = n <= 1 ? 1 : t.strides()[0];
    const std::int64_t back = stride < 0 ? (n - 1) * stride : 0;
    return {n, t.address() + static_cast<std::uint64_t>(back * size_of(t.dtype())), stride};
  }
  /// For routines with one vector, whose direction does not matter.
  Vector forward(const char* name, const Tensor& t) const {
    Vector v = vector(name, t);
    v.inc = std::abs(v.inc);
    return v;
  }
  /// The layout in which the view is not transposed; row-major if that is true of both.
  Layout layout(const char* name, const Tensor& t) const {
    std::int64_t ld = 0;
    if (has_layout(name, t, Layout::row_major, ld)) return Layout::row_major;
    if (has_layout(name, t, Layout::column_major, ld)) return Layout::column_major;
    fail(fmt::format("{} {} has strides ({}, {}), which BLAS cannot express; call contiguous() for a dense copy", name, t.str(),
                     t.strides()[0], t.strides()[1]));
  }
  Matrix matrix(const char* name, const Tensor& t, Layout order) const {
    Matrix m{0, 0, t.address(), false, 0};
    if (!has_layout(name, t, order, m.ld)) {
      const Layout other = order == Layout::row_major ? Layout::column_major : Layout::row_major;
      if (!has_layout(name, t, other, m.ld)) layout(name, t);  // throws
      m.trans = true;
    }
    m.rows = t.shape()[0];
    m.columns = t.shape()[1];
    return m;
  }
  /// A matrix that the routine does not transpose.
  Matrix plain(const char* name, const Tensor& t, Layout order) const {
    const Matrix m = matrix(name, t, order);
    if (m.trans) fail(fmt::format("{} {} must have the layout of the result; call contiguous() for a row-major copy", name, t.str()));
    return m;
  }
  Matrix square(const char* name, const Tensor& t, Layout order, bool transposable = true) const {
    const Matrix m = transposable ? matrix(name, t, order) : plain(name, t, order);
    if (m.rows != m.columns) fail(fmt::format("{}: expected a square matrix, got {}", name, t.str()));
    return m;
  }
  /// The scalar converted to T.
  template <class T>
  T number(const char* name, Number value) const {
    if constexpr (std::is_same_v<T, Real<T>>) {
      if (value.imag() != 0)
        fail(fmt::format("{}: expected a real number for real operands, got the imaginary part {}", name, value.imag()));
      return static_cast<T>(value.real());
    } else {
      return T(static_cast<Real<T>>(value.real()), static_cast<Real<T>>(value.imag()));
    }
  }

 private:
  bool has_layout(const char* name, const Tensor& t, Layout order, std::int64_t& out_ld) const {
    if (t.shape().rank() != 2) fail(fmt::format("{}: expected a matrix of rank 2, got {}", name, t.str()));
    const bool rows_first = order == Layout::row_major;
    const std::int64_t line = t.shape()[rows_first ? 1 : 0], lines = t.shape()[rows_first ? 0 : 1];
    const std::int64_t inner = t.strides()[rows_first ? 1 : 0], outer = t.strides()[rows_first ? 0 : 1];
    if (line > 1 && inner != 1) return false;
    out_ld = lines > 1 ? outer : std::max<std::int64_t>(1, line);
    return out_ld >= std::max<std::int64_t>(1, line);
  }

  const Queue& queue_;
  Routine routine_;
  DType dtype_ = DType::none;
};

template <class T>
T* at(std::uint64_t address) {
  return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address));
}

/// op applied to a view that is stored transposed.
Op through(bool trans, Op op) {
  if (!trans) return op;
  switch (op) {
    case Op::none:
      return Op::trans;
    case Op::trans:
      return Op::none;
    case Op::conj_trans:
      return Op::conj;
    case Op::conj:
      return Op::conj_trans;
  }
  return op;
}
Uplo through(bool trans, Uplo uplo) {
  if (!trans) return uplo;
  return uplo == Uplo::upper ? Uplo::lower : Uplo::upper;
}
bool keeps_shape(Op op) {
  return op == Op::none || op == Op::conj;
}
/// Rows and columns after applying op.
std::pair<std::int64_t, std::int64_t> shape_of(const Matrix& m, Op op) {
  return keeps_shape(op) ? std::pair(m.rows, m.columns) : std::pair(m.columns, m.rows);
}

/// body.operator()<T>() for a real dtype; false for another.
template <class Body>
bool real_types(DType dtype, const Body& body) {
  if (dtype == DType::f32) return body.template operator()<float>(), true;
  if (dtype == DType::f64) return body.template operator()<double>(), true;
  return false;
}
template <class Body>
bool complex_types(DType dtype, const Body& body) {
  if (dtype == DType::c64) return body.template operator()<std::complex<float>>(), true;
  if (dtype == DType::c128) return body.template operator()<std::complex<double>>(), true;
  return false;
}
[[noreturn]] void wrong_dtype(const Operands& in, const char* expected) {
  in.fail(fmt::format("expected dtype {1}, got {0}", name_of(in.dtype()), expected));
}
template <class Body>
void for_real(const Operands& in, const Body& body) {
  if (!real_types(in.dtype(), body)) wrong_dtype(in, "f32 or f64");
}
template <class Body>
void for_complex(const Operands& in, const Body& body) {
  if (!complex_types(in.dtype(), body)) wrong_dtype(in, "c64 or c128");
}
template <class Body>
void for_all(const Operands& in, const Body& body) {
  if (!real_types(in.dtype(), body) && !complex_types(in.dtype(), body)) wrong_dtype(in, "f32, f64, c64 or c128");
}
bool is_complex(const Tensor& t) {
  return t.dtype() == DType::c64 || t.dtype() == DType::c128;
}

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

// ---------------------------------------------------------------- level 1

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

// ---------------------------------------------------------------- level 2

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

// ---------------------------------------------------------------- level 3

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
