// SPDX-License-Identifier: Apache-2.0
// blas/check.h - validates arguments by the rules of the reference BLAS, once for all backends. All is inline: the
// drop-in BLAS, which links only what libtenon exports, validates before it copies operands to a device.
//
// validate(routine, arguments) throws ArgumentError for the first wrong argument in the order of the reference's Fortran interface, then
// for rules of our own: NULL addresses of memory that is accessed. Returns false if there is nothing to do, where the reference returns
// early.
//
// Source  Dongarra, Du Croz, Hammarling, Hanson: An Extended Set of Fortran BLAS (1988), and A Set of Level 3 BLAS (1990).
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <tenon/blas.h>

namespace tenon::blas {

/// Throws. `expected` as in "at least 3".
[[noreturn]] inline void refuse(Routine routine, const char* argument, std::int64_t got, const std::string& expected) {
  throw ArgumentError(routine, argument, "is " + std::to_string(got) + ": expected " + expected);
}
[[noreturn]] inline void refuse_null(Routine routine, const char* argument) {
  throw ArgumentError(routine, argument, "is NULL: expected the address of memory that is read or written");
}

/// Checks of one call.
struct Check {
  Routine routine;

  void layout(Layout given) const {
    if (given != Layout::row_major && given != Layout::column_major) {
      refuse(routine, "layout", static_cast<std::int64_t>(given), "row-major (101) or column-major (102)");
    }
  }
  void op(const char* argument, Op given) const {
    if (given < Op::none || given > Op::conj) {
      refuse(routine, argument, static_cast<std::int64_t>(given), "none, trans, conj_trans or conj (111 to 114; N, T or C)");
    }
  }
  void uplo(Uplo given) const {
    if (given != Uplo::upper && given != Uplo::lower) {
      refuse(routine, "uplo", static_cast<std::int64_t>(given), "upper or lower (121, 122; U or L)");
    }
  }
  void diag(Diag given) const {
    if (given != Diag::non_unit && given != Diag::unit) {
      refuse(routine, "diag", static_cast<std::int64_t>(given), "non_unit or unit (131, 132; N or U)");
    }
  }
  void side(Side given) const {
    if (given != Side::left && given != Side::right) {
      refuse(routine, "side", static_cast<std::int64_t>(given), "left or right (141, 142; L or R)");
    }
  }
  void size(const char* argument, std::int64_t given) const { at_least(argument, given, 0); }
  void at_least(const char* argument, std::int64_t given, std::int64_t lowest) const {
    if (given < lowest) refuse(routine, argument, given, "at least " + std::to_string(lowest));
  }
  /// The leading dimension of a stored matrix of `rows` rows and `columns` columns.
  void lead(const char* argument, std::int64_t given, Layout order, std::int64_t rows, std::int64_t columns) const {
    const std::int64_t line = std::max<std::int64_t>(1, order == Layout::row_major ? columns : rows);
    if (given < line) {
      refuse(routine, argument, given,
             "at least " + std::to_string(line) + ", the " +
                 (order == Layout::row_major ? "columns of a row-major" : "rows of a column-major") + " matrix (" + std::to_string(rows) +
                 ", " + std::to_string(columns) + ")");
    }
  }
  /// The leading dimension of band storage with that many diagonals.
  void band(const char* argument, std::int64_t given, std::int64_t diagonals) const {
    if (given < diagonals) refuse(routine, argument, given, "at least " + std::to_string(diagonals) + ", the diagonals of the band");
  }
  void increment(const char* argument, std::int64_t given) const {
    if (given == 0) refuse(routine, argument, given, "an increment other than 0");
  }
  /// For routines with one vector, where the reference returns silently.
  void positive_increment(const char* argument, std::int64_t given) const { at_least(argument, given, 1); }
  void address(const char* argument, const void* given, bool used = true) const {
    if (given == nullptr && used) refuse_null(routine, argument);
  }
  template <class T>
  void result(const Result<T>& given) const {
    if (given.address() == nullptr) refuse_null(routine, "result");
  }
};

/// True unless the scalar is a host value equal to `value`.
template <class T>
bool may_differ(const Scalar<T>& scalar, T value) {
  return scalar.value() == nullptr || *scalar.value() != value;
}
template <class T>
bool may_differ_real(const Scalar<T>& scalar, Real<T> value) {
  if constexpr (std::is_same_v<T, Real<T>>) {
    return may_differ(scalar, value);
  } else {
    return scalar.value() == nullptr || scalar.value()->real() != value;
  }
}

template <class T>
bool validate(Routine routine, const arguments::rotg<T>& p) {
  const Check check{routine};
  check.address("a", p.a);
  check.address("b", p.b);
  check.address("c", p.c);
  check.address("s", p.s);
  return true;
}
template <class T>
bool validate(Routine routine, const arguments::rotmg<T>& p) {
  const Check check{routine};
  check.address("d1", p.d1);
  check.address("d2", p.d2);
  check.address("x1", p.x1);
  check.address("y1", p.y1);
  check.address("param", p.param);
  return true;
}
/// Checks n, x, incx, y and incy, all of which are used; y is written.
template <class Arguments>
bool validate_two_vectors(const Check& check, const Arguments& p, bool x_is_written) {
  check.size("n", p.n);
  if (x_is_written) check.increment("incx", p.incx);
  check.increment("incy", p.incy);
  check.address("x", p.x, p.n > 0);
  check.address("y", p.y, p.n > 0);
  return p.n > 0;
}
template <class T>
bool validate(Routine routine, const arguments::rot<T>& p) {
  return validate_two_vectors({routine}, p, true);
}
template <class T>
bool validate(Routine routine, const arguments::rotm<T>& p) {
  const Check check{routine};
  const bool work = validate_two_vectors(check, p, true);
  check.address("param", p.param);
  return work;
}
template <class T>
bool validate(Routine routine, const arguments::xy<T>& p) {
  return validate_two_vectors({routine}, p, routine == Routine::swap);
}
template <class T>
bool validate(Routine routine, const arguments::scal<T>& p) {
  const Check check{routine};
  check.size("n", p.n);
  check.positive_increment("incx", p.incx);
  check.address("x", p.x, p.n > 0);
  return p.n > 0;
}
template <class T>
bool validate(Routine routine, const arguments::axpy<T>& p) {
  return validate_two_vectors({routine}, p, false) && may_differ(p.alpha, T(0));
}
template <class T>
bool validate(Routine routine, const arguments::axpby<T>& p) {
  return validate_two_vectors({routine}, p, false);
}
template <class T>
bool validate(Routine routine, const arguments::dot<T>& p) {
  const Check check{routine};
  check.size("n", p.n);
  check.address("x", p.x, p.n > 0);
  check.address("y", p.y, p.n > 0);
  if (routine == Routine::dsdot)
    check.result(p.result_f64);
  else
    check.result(p.result);
  return true;
}
template <class T>
bool validate(Routine routine, const arguments::reduce<T>& p) {
  const Check check{routine};
  check.size("n", p.n);
  check.positive_increment("incx", p.incx);
  check.address("x", p.x, p.n > 0);
  if (routine == Routine::iamax || routine == Routine::iamin)
    check.result(p.index);
  else
    check.result(p.result);
  return true;
}
template <class T>
bool validate(Routine routine, const arguments::gemv<T>& p) {
  const Check check{routine};
  const bool banded = routine == Routine::gbmv;
  check.layout(p.layout);
  check.op("trans", p.trans);
  check.size("m", p.m);
  check.size("n", p.n);
  if (banded) {
    check.size("kl", p.kl);
    check.size("ku", p.ku);
    check.band("lda", p.lda, p.kl + p.ku + 1);
  } else {
    check.lead("lda", p.lda, p.layout, p.m, p.n);
  }
  check.increment("incx", p.incx);
  check.increment("incy", p.incy);
  const bool product = may_differ(p.alpha, T(0));
  const bool work = p.m > 0 && p.n > 0 && (product || may_differ(p.beta, T(1)));
  check.address("a", p.a, work && product);
  check.address("x", p.x, work && product);
  check.address("y", p.y, work);
  return work;
}
/// lda of a triangular matrix: full, banded with k off-diagonals, or none if packed.
enum class Storage { whole, banded, packed };
inline void check_triangle(const Check& check, Storage storage, Layout layout, std::int64_t n, std::int64_t k, std::int64_t lda) {
  if (storage == Storage::whole) check.lead("lda", lda, layout, n, n);
  if (storage == Storage::banded) check.band("lda", lda, k + 1);
}
template <class T>
bool validate(Routine routine, const arguments::symv<T>& p) {
  const Check check{routine};
  const bool banded = routine == Routine::sbmv || routine == Routine::hbmv;
  const bool packed = routine == Routine::spmv || routine == Routine::hpmv;
  check.layout(p.layout);
  check.uplo(p.uplo);
  check.size("n", p.n);
  if (banded) check.size("k", p.k);
  check_triangle(check, packed ? Storage::packed : banded ? Storage::banded : Storage::whole, p.layout, p.n, p.k, p.lda);
  check.increment("incx", p.incx);
  check.increment("incy", p.incy);
  const bool product = may_differ(p.alpha, T(0));
  const bool work = p.n > 0 && (product || may_differ(p.beta, T(1)));
  check.address("a", p.a, work && product);
  check.address("x", p.x, work && product);
  check.address("y", p.y, work);
  return work;
}
template <class T>
bool validate(Routine routine, const arguments::trmv<T>& p) {
  const Check check{routine};
  const bool banded = routine == Routine::tbmv || routine == Routine::tbsv;
  const bool packed = routine == Routine::tpmv || routine == Routine::tpsv;
  check.layout(p.layout);
  check.uplo(p.uplo);
  check.op("trans", p.trans);
  check.diag(p.diag);
  check.size("n", p.n);
  if (banded) check.size("k", p.k);
  check_triangle(check, packed ? Storage::packed : banded ? Storage::banded : Storage::whole, p.layout, p.n, p.k, p.lda);
  check.increment("incx", p.incx);
  check.address("a", p.a, p.n > 0);
  check.address("x", p.x, p.n > 0);
  return p.n > 0;
}
template <class T>
bool validate(Routine routine, const arguments::ger<T>& p) {
  const Check check{routine};
  check.layout(p.layout);
  check.size("m", p.m);
  check.size("n", p.n);
  check.increment("incx", p.incx);
  check.increment("incy", p.incy);
  check.lead("lda", p.lda, p.layout, p.m, p.n);
  const bool work = p.m > 0 && p.n > 0 && may_differ(p.alpha, T(0));
  check.address("x", p.x, work);
  check.address("y", p.y, work);
  check.address("a", p.a, work);
  return work;
}
template <class T>
bool validate(Routine routine, const arguments::syr<T>& p) {
  const Check check{routine};
  const bool packed = routine == Routine::spr || routine == Routine::hpr || routine == Routine::spr2 || routine == Routine::hpr2;
  const bool two = routine == Routine::syr2 || routine == Routine::her2 || routine == Routine::spr2 || routine == Routine::hpr2;
  const bool real_alpha = routine == Routine::her || routine == Routine::hpr;
  check.layout(p.layout);
  check.uplo(p.uplo);
  check.size("n", p.n);
  check.increment("incx", p.incx);
  if (two) check.increment("incy", p.incy);
  check_triangle(check, packed ? Storage::packed : Storage::whole, p.layout, p.n, 0, p.lda);
  const bool work = p.n > 0 && (real_alpha ? may_differ_real(p.alpha, Real<T>(0)) : may_differ(p.alpha, T(0)));
  check.address("x", p.x, work);
  check.address("y", p.y, work && two);
  check.address("a", p.a, work);
  return work;
}
/// The common checks of gemm-like products: op(A) is (m, k), op(B) (k, n). False: nothing to do.
template <class T, class Arguments>
bool validate_product(const Check& check, const Arguments& p, std::int64_t m) {
  const auto plain = [](Op op) { return op == Op::none || op == Op::conj; };
  check.lead("lda", p.lda, p.layout, plain(p.trans_a) ? m : p.k, plain(p.trans_a) ? p.k : m);
  check.lead("ldb", p.ldb, p.layout, plain(p.trans_b) ? p.k : p.n, plain(p.trans_b) ? p.n : p.k);
  check.lead("ldc", p.ldc, p.layout, m, p.n);
  const bool product = p.k > 0 && may_differ(p.alpha, T(0));
  const bool work = m > 0 && p.n > 0 && (product || may_differ(p.beta, T(1)));
  check.address("a", p.a, work && product);
  check.address("b", p.b, work && product);
  check.address("c", p.c, work);
  return work;
}
template <class T>
bool validate(Routine routine, const arguments::gemm<T>& p) {
  const Check check{routine};
  const bool triangle = routine == Routine::gemmt;
  check.layout(p.layout);
  if (triangle) check.uplo(p.uplo);
  check.op("trans_a", p.trans_a);
  check.op("trans_b", p.trans_b);
  if (!triangle) check.size("m", p.m);
  check.size("n", p.n);
  check.size("k", p.k);
  return validate_product<T>(check, p, triangle ? p.n : p.m);
}
template <class T>
bool validate(Routine routine, const arguments::symm<T>& p) {
  const Check check{routine};
  check.layout(p.layout);
  check.side(p.side);
  check.uplo(p.uplo);
  check.size("m", p.m);
  check.size("n", p.n);
  const std::int64_t order = p.side == Side::left ? p.m : p.n;
  check.lead("lda", p.lda, p.layout, order, order);
  check.lead("ldb", p.ldb, p.layout, p.m, p.n);
  check.lead("ldc", p.ldc, p.layout, p.m, p.n);
  const bool product = may_differ(p.alpha, T(0));
  const bool work = p.m > 0 && p.n > 0 && (product || may_differ(p.beta, T(1)));
  check.address("a", p.a, work && product);
  check.address("b", p.b, work && product);
  check.address("c", p.c, work);
  return work;
}
template <class T>
bool validate(Routine routine, const arguments::syrk<T>& p) {
  const Check check{routine};
  const bool two = routine == Routine::syr2k || routine == Routine::her2k;
  const bool hermitian = routine == Routine::herk || routine == Routine::her2k;
  check.layout(p.layout);
  check.uplo(p.uplo);
  // For real dtypes the reference accepts N, T and C; for complex ones, symmetric routines never conjugate and Hermitian ones always do.
  const bool real = std::is_same_v<T, Real<T>>;
  if (p.trans != Op::none && p.trans != (hermitian ? Op::conj_trans : Op::trans) && !(real && p.trans == Op::conj_trans)) {
    refuse(routine, "trans", static_cast<std::int64_t>(p.trans), hermitian ? "none or conj_trans (N or C)" : "none or trans (N or T)");
  }
  check.size("n", p.n);
  check.size("k", p.k);
  const bool plain = p.trans == Op::none;
  check.lead("lda", p.lda, p.layout, plain ? p.n : p.k, plain ? p.k : p.n);
  if (two) check.lead("ldb", p.ldb, p.layout, plain ? p.n : p.k, plain ? p.k : p.n);
  check.lead("ldc", p.ldc, p.layout, p.n, p.n);
  const bool product = p.k > 0 && (routine == Routine::herk ? may_differ_real(p.alpha, Real<T>(0)) : may_differ(p.alpha, T(0)));
  const bool work = p.n > 0 && (product || (hermitian ? may_differ_real(p.beta, Real<T>(1)) : may_differ(p.beta, T(1))));
  check.address("a", p.a, work && product);
  check.address("b", p.b, work && product && two);
  check.address("c", p.c, work);
  return work;
}
template <class T>
bool validate(Routine routine, const arguments::trmm<T>& p) {
  const Check check{routine};
  check.layout(p.layout);
  check.side(p.side);
  check.uplo(p.uplo);
  check.op("trans", p.trans);
  check.diag(p.diag);
  check.size("m", p.m);
  check.size("n", p.n);
  const std::int64_t order = p.side == Side::left ? p.m : p.n;
  check.lead("lda", p.lda, p.layout, order, order);
  check.lead("ldb", p.ldb, p.layout, p.m, p.n);
  const bool work = p.m > 0 && p.n > 0;
  check.address("a", p.a, work && may_differ(p.alpha, T(0)));
  check.address("b", p.b, work);
  return work;
}
template <class T>
bool validate(Routine routine, const arguments::geam<T>& p) {
  const Check check{routine};
  const auto lead = [&](const char* argument, std::int64_t given, Op op) {
    const bool plain = op == Op::none || op == Op::conj;
    check.lead(argument, given, p.layout, plain ? p.m : p.n, plain ? p.n : p.m);
  };
  check.layout(p.layout);
  check.op("trans_a", p.trans_a);
  check.op("trans_b", p.trans_b);
  check.size("m", p.m);
  check.size("n", p.n);
  const bool reads_a = may_differ(p.alpha, T(0)), reads_b = may_differ(p.beta, T(0));
  if (reads_a) lead("lda", p.lda, p.trans_a);
  if (reads_b) lead("ldb", p.ldb, p.trans_b);
  check.lead("ldc", p.ldc, p.layout, p.m, p.n);
  const bool work = p.m > 0 && p.n > 0;
  check.address("a", p.a, work && reads_a);
  check.address("b", p.b, work && reads_b);
  check.address("c", p.c, work);
  return work;
}
template <class T>
bool validate(Routine routine, const arguments::dgmm<T>& p) {
  const Check check{routine};
  check.layout(p.layout);
  check.side(p.side);
  check.size("m", p.m);
  check.size("n", p.n);
  check.lead("lda", p.lda, p.layout, p.m, p.n);
  check.lead("ldc", p.ldc, p.layout, p.m, p.n);
  const bool work = p.m > 0 && p.n > 0;
  check.address("a", p.a, work);
  check.address("x", p.x, work);
  check.address("c", p.c, work);
  return work;
}
/// Checks trans_a to k of the batched products.
template <class Arguments>
void check_batched(const Check& check, const Arguments& p) {
  check.layout(p.layout);
  check.op("trans_a", p.trans_a);
  check.op("trans_b", p.trans_b);
  check.size("m", p.m);
  check.size("n", p.n);
  check.size("k", p.k);
  check.size("batch", p.batch);
}
template <class T>
bool validate(Routine routine, const arguments::gemm_batched<T>& p) {
  const Check check{routine};
  check_batched(check, p);
  if (p.batch == 0 || !validate_product<T>(check, p, p.m)) return false;
  const bool product = p.k > 0 && may_differ(p.alpha, T(0));
  for (std::int64_t i = 0; i < p.batch; ++i) {
    if (product && p.a[i] == 0) refuse_null(routine, "a");
    if (product && p.b[i] == 0) refuse_null(routine, "b");
    if (p.c[i] == 0) refuse_null(routine, "c");
  }
  return true;
}
template <class T>
bool validate(Routine routine, const arguments::gemm_strided_batched<T>& p) {
  const Check check{routine};
  check_batched(check, p);
  if (p.batch > 1 && p.m > 0 && p.n > 0 && p.stride_c == 0) refuse(routine, "stride_c", 0, "a stride that separates the results");
  return p.batch > 0 && validate_product<T>(check, p, p.m);
}

}  // namespace tenon::blas
