// SPDX-License-Identifier: Apache-2.0
// blas/operands.h - scalars, vectors and matrices as operands of kernels (blas/elements.cl), and their launches:
//
//   launch<T>(stream, sources::level1, "axpy", n, n, x, y, alpha);
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <tenon/sdk/blas.h>

#include "kernel/launch.h"

namespace tenon::opencl::blas {

/// A number that kernels read: `value` or, if there is a buffer, what is in device memory when they run.
template <class T>
struct Scalar {
  enum Form : std::int32_t { plain, real, conjugated };  ///< of the number in device memory
  T value{};
  Place memory{};
  Form form = plain;

  bool is(T x) const { return memory.buffer == nullptr && value == x; }
  Scalar conj() const {
    if constexpr (!sdk::is_complex<T>) {
      return *this;
    } else {
      return {std::conj(value), memory, form == plain ? conjugated : form == conjugated ? plain : real};
    }
  }
};

/// x(i) is at i * step.
struct Vector {
  Place first;
  std::int64_t step;
};
/// A negative increment counts from the array's end.
template <class T>
Vector vector(const Stream& stream, const T* x, std::int64_t n, std::int64_t inc) {
  return {stream.device().place_of(n == 0 ? nullptr : inc < 0 ? x - (n - 1) * inc : x), inc};
}

/// `View` of blas/elements.cl: A(i, j), i < m, j < n, with the diagonals -below ... above stored, the others 0 or, of a symmetric or
/// Hermitian matrix, in the other triangle. Lines are rows or columns. Element p of line l is at l lead + growth l (l - 1) / 2 + p.
struct View {
  enum Kind : std::int32_t { general, symmetric, hermitian };
  std::int64_t m, n, below, above, lead, growth;
  std::int32_t by_rows, conjugate, kind, unit;
};
constexpr bool transposes(std::uint32_t trans) {
  return trans == TENON_TRANS || trans == TENON_CONJ_TRANS;
}
template <class T>
struct Matrix {
  Place data;
  View view;

  Matrix transposed() const {
    Matrix a = *this;
    std::swap(a.view.m, a.view.n);
    std::swap(a.view.below, a.view.above);
    a.view.by_rows = !a.view.by_rows;
    return a;
  }
  /// op(A).
  Matrix op(std::uint32_t trans) const {
    Matrix a = transposes(trans) ? transposed() : *this;
    a.view.conjugate = sdk::is_complex<T> && (trans == TENON_CONJ_TRANS || trans == TENON_CONJ_NO_TRANS);
    return a;
  }
  Matrix of_kind(View::Kind kind) const {
    Matrix a = *this;
    a.view.kind = kind;
    return a;
  }
  bool is_upper() const { return view.below == 0; }
  /// All entries are stored, in lines of one length.
  bool is_full() const { return view.below >= view.m - 1 && view.above >= view.n - 1 && view.growth == 0 && view.unit == 0; }
  /// Rows i ... i + m - 1 and columns j ... j + n - 1 of a dense matrix, or of a dense triangle: on its diagonal or wholly inside.
  Matrix block(std::int64_t i, std::int64_t j, std::int64_t m, std::int64_t n) const {
    Matrix a = *this;
    const bool triangle = !is_full() && i == j;
    a.data.offset += static_cast<std::size_t>(view.by_rows ? i * view.lead + j : j * view.lead + i) * sizeof(T);
    a.view.m = m;
    a.view.n = n;
    a.view.below = triangle && view.below == 0 ? 0 : m;
    a.view.above = triangle && view.above == 0 ? 0 : n;
    if (i != j) a.view.kind = View::general;
    if (!triangle) a.view.unit = 0;
    return a;
  }
};

template <class T>
Matrix<T> dense(const Stream& stream, std::uint32_t layout, std::int64_t m, std::int64_t n, const T* a, std::int64_t lda) {
  return {stream.device().place_of(m == 0 || n == 0 ? nullptr : a),
          {m, n, m, n, lda, 0, layout == TENON_LAYOUT_ROW_MAJOR ? 1 : 0, 0, View::general, 0}};
}
/// Each line starts one element further right than the previous one; the diagonals before the main one precede line 0.
template <class T>
Matrix<T> banded(const Stream& stream, std::uint32_t layout, std::int64_t m, std::int64_t n, std::int64_t kl, std::int64_t ku, const T* a,
                 std::int64_t lda) {
  Matrix<T> band = dense(stream, layout, m, n, a, lda - 1);
  band.view.below = kl;
  band.view.above = ku;
  band.data.offset += static_cast<std::size_t>(band.view.by_rows ? kl : ku) * sizeof(T);
  return band;
}
/// One triangle of an n x n matrix.
template <class T>
Matrix<T> dense_triangle(const Stream& stream, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, const T* a, std::int64_t lda) {
  Matrix<T> triangle = dense(stream, layout, n, n, a, lda);
  (uplo == TENON_UPPER ? triangle.view.below : triangle.view.above) = 0;
  return triangle;
}
template <class T>
Matrix<T> banded_triangle(const Stream& stream, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, std::int64_t k, const T* a,
                          std::int64_t lda) {
  return banded(stream, layout, n, n, uplo == TENON_UPPER ? 0 : k, uplo == TENON_UPPER ? k : 0, a, lda);
}
/// Lines grow by one element, or shrink.
template <class T>
Matrix<T> packed_triangle(const Stream& stream, std::uint32_t layout, std::uint32_t uplo, std::int64_t n, const T* a) {
  const bool shrinks = (uplo == TENON_UPPER) == (layout == TENON_LAYOUT_ROW_MAJOR);
  Matrix<T> triangle = dense_triangle(stream, layout, uplo, n, a, shrinks ? n - 1 : 1);
  triangle.view.growth = shrinks ? -1 : 1;
  return triangle;
}
/// op(A) of a triangle; with `diag` unit, the diagonal is all ones and not read.
template <class T>
Matrix<T> triangular(const Matrix<T>& triangle, std::uint32_t trans, std::uint32_t diag) {
  Matrix<T> a = triangle.op(trans);
  a.view.unit = diag == TENON_UNIT ? 1 : 0;
  return a;
}

/// Device memory for the work that is submitted while it lives: OpenCL keeps a released buffer until its commands are done.
class Temporary {
 public:
  /// `content`: what it holds at first, if not NULL.
  Temporary(const Stream& stream, std::int64_t size_bytes, const void* content = nullptr);
  ~Temporary();
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  Place place() const { return {buffer_, 0, nullptr}; }

 private:
  cl_mem buffer_ = nullptr;
};
/// A dense matrix in temporary memory.
template <class T>
Matrix<T> temporary_matrix(const Temporary& memory, std::int64_t m, std::int64_t n, bool by_rows) {
  return {memory.place(), {m, n, m, n, by_rows ? n : m, 0, by_rows ? 1 : 0, 0, View::general, 0}};
}

/// Numbers that a kernel reads or writes in place. Those in host memory, or at an address that their type cannot have, are copied for it
/// and, by `finish`, back.
class Numbers {
 public:
  Numbers(const Stream& stream, const tenon_scalar& given, std::size_t size_bytes);
  Place place() const { return copy_ ? copy_->place() : place_; }
  /// Returns when host memory has the numbers; those in device memory are there in stream order.
  void finish();

 private:
  const Stream& stream_;
  void* const host_;
  const std::size_t size_bytes_;
  Place place_;
  std::optional<Temporary> copy_;
};

/// The options for kernels over elements of T.
template <class T>
std::string element_types() {
  const std::string real = type_name<sdk::Real<T>>();
  return "-DR=" + real + (sdk::is_complex<T> ? " -DCOMPLEX -DT=" + real + "2" : " -DT=" + real);
}

namespace detail {
inline void pass(Launch& to, const Place& place) {
  to.at(place);
}
inline void pass(Launch& to, const Vector& x) {
  to.at(x.first).value(x.step);
}
template <class T>
void pass(Launch& to, const Matrix<T>& a) {
  to.value(a.view).at(a.data);
}
template <class T>
void pass(Launch& to, const Scalar<T>& x) {
  to.value(x.value).at(x.memory).value(static_cast<std::int32_t>(x.form));
}
template <class V>
requires std::is_integral_v<V>
void pass(Launch& to, V value) {
  to.value(value);
}
}  // namespace detail

/// Enqueues a kernel for at least `items` work-items in groups of `group`.
template <class T, class... Arguments>
void launch_groups(Stream& stream, const Source& source, const char* function, std::int64_t items, std::size_t group,
                   const Arguments&... arguments) {
  Launch to(stream, source, function, element_types<T>());
  (detail::pass(to, arguments), ...);
  to.over(items, group);
}
template <class T, std::size_t group = Launch::group_size, class... Arguments>
void launch(Stream& stream, const Source& source, const char* function, std::int64_t items, const Arguments&... arguments) {
  launch_groups<T>(stream, source, function, items, group, arguments...);
}
/// For kernels with ELEMENT: a work-item for each element of `c`, in whole groups for each line.
template <class T, class... Arguments>
void launch_over_elements(Stream& stream, const Source& source, const char* function, const Matrix<T>& c, const Arguments&... arguments) {
  const bool by_rows = c.view.by_rows != 0;
  const std::int64_t lines = by_rows ? c.view.m : c.view.n, length = by_rows ? c.view.n : c.view.m;
  const std::int64_t group = length < 64 ? 16 : std::int64_t{Launch::group_size};
  launch_groups<T>(stream, source, function, lines * ((length + group - 1) / group * group), static_cast<std::size_t>(group), arguments...);
}

}  // namespace tenon::opencl::blas
