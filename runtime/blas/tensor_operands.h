// SPDX-License-Identifier: Apache-2.0
// blas/tensor_operands.h - tensors as operands of BLAS: checks views, and converts them to addresses, increments and leading dimensions.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <utility>

#include <tenon/blas.h>

#include "exec/device_state.h"

namespace tenon::blas {

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
inline Op through(bool trans, Op op) {
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
inline Uplo through(bool trans, Uplo uplo) {
  if (!trans) return uplo;
  return uplo == Uplo::upper ? Uplo::lower : Uplo::upper;
}
inline bool keeps_shape(Op op) {
  return op == Op::none || op == Op::conj;
}
/// Rows and columns after applying op.
inline std::pair<std::int64_t, std::int64_t> shape_of(const Matrix& m, Op op) {
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
[[noreturn]] inline void wrong_dtype(const Operands& in, const char* expected) {
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
inline bool is_complex(const Tensor& t) {
  return t.dtype() == DType::c64 || t.dtype() == DType::c128;
}

}  // namespace tenon::blas
