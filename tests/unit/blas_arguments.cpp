// SPDX-License-Identifier: Apache-2.0
// Wrong arguments are reported with the names and positions of the reference BLAS, before a backend sees them.
#include <doctest/doctest.h>

#include <limits>

#include "blas/check.h"

using namespace tenon;
using blas::Op;
using blas::Routine;

namespace {

float numbers[16] = {};
std::complex<double> complexes[16] = {};

struct LoadError {
  std::string argument;
  int position;
  std::string text;
};

/// The diagnostic of the check; its argument is empty if the call is valid.
template <class Arguments>
LoadError refusal(Routine routine, const Arguments& p) {
  try {
    blas::validate(routine, p);
  } catch (const blas::ArgumentError& e) {
    CHECK(e.routine() == routine);
    CHECK(e.status() == Status::invalid_argument);
    return {e.argument(), e.position(), e.what()};
  }
  return {"", -1, ""};
}
template <class Arguments>
void check_refused(Routine routine, const Arguments& p, const std::string& argument, int position) {
  CAPTURE(name_of(routine));
  const LoadError r = refusal(routine, p);
  CHECK(r.argument == argument);
  CHECK(r.position == position);
}

using Gemm = blas::arguments::gemm<float>;
Gemm good_gemm() {
  return {.m = 2, .n = 3, .k = 4, .a = numbers, .lda = 4, .b = numbers, .ldb = 3, .c = numbers, .ldc = 3};
}
blas::arguments::gemv<float> good_gemv() {
  return {.m = 2, .n = 3, .kl = 1, .ku = 1, .a = numbers, .lda = 3, .x = numbers, .y = numbers};
}

/// A copy with one change.
template <class Arguments, class Change>
Arguments with(Arguments p, Change&& change) {
  change(p);
  return p;
}

}  // namespace

TEST_CASE("blas arguments: those of gemm are checked in the order of the reference BLAS") {
  const auto gemm = [](auto&& change, const char* argument, int position) {
    check_refused(Routine::gemm, with(good_gemm(), change), argument, position);
  };
  CHECK(refusal(Routine::gemm, good_gemm()).argument.empty());
  gemm([](Gemm& p) { p.trans_a = Op(0); }, "trans_a", 1);
  gemm([](Gemm& p) { p.trans_b = Op(115); }, "trans_b", 2);
  gemm([](Gemm& p) { p.m = -1; }, "m", 3);
  gemm([](Gemm& p) { p.n = -1; }, "n", 4);
  gemm([](Gemm& p) { p.k = std::numeric_limits<std::int64_t>::min(); }, "k", 5);
  gemm([](Gemm& p) { p.lda = 3; }, "lda", 8);
  gemm([](Gemm& p) { p.ldb = 2; }, "ldb", 10);
  gemm([](Gemm& p) { p.ldc = 0; }, "ldc", 13);
  gemm([](Gemm& p) { p.a = nullptr; }, "a", 7);
  gemm([](Gemm& p) { p.b = nullptr; }, "b", 9);
  gemm([](Gemm& p) { p.c = nullptr; }, "c", 12);
  gemm([](Gemm& p) { p.layout = blas::Layout(100); }, "layout", 0);
  gemm([](Gemm& p) { p.n = p.k = -1; }, "n", 4);  // the first of two
}

TEST_CASE("blas arguments: leading dimensions follow layout and transposition") {
  const auto min_leading_dimensions = [](blas::Layout layout, Op trans_a, Op trans_b) {
    Gemm p = good_gemm();
    p.layout = layout, p.trans_a = trans_a, p.trans_b = trans_b;
    std::array<std::int64_t, 3> found{};
    for (int which = 0; which < 3; ++which) {
      for (std::int64_t ld = 0;; ++ld) {
        p.lda = p.ldb = p.ldc = 100;
        (which == 0 ? p.lda : which == 1 ? p.ldb : p.ldc) = ld;
        if (!refusal(Routine::gemm, p).argument.empty()) continue;
        found[static_cast<std::size_t>(which)] = ld;
        break;
      }
    }
    return found;
  };
  using Three = std::array<std::int64_t, 3>;
  CHECK(min_leading_dimensions(blas::Layout::row_major, Op::none, Op::none) == Three{4, 3, 3});
  CHECK(min_leading_dimensions(blas::Layout::row_major, Op::trans, Op::conj_trans) == Three{2, 4, 3});
  CHECK(min_leading_dimensions(blas::Layout::row_major, Op::conj, Op::conj) == Three{4, 3, 3});
  CHECK(min_leading_dimensions(blas::Layout::column_major, Op::none, Op::none) == Three{2, 4, 2});
  CHECK(min_leading_dimensions(blas::Layout::column_major, Op::trans, Op::trans) == Three{4, 3, 2});
}

TEST_CASE("blas arguments: the message has name, position, actual and expected value") {
  Gemm p = good_gemm();
  p.lda = 2;
  CHECK(refusal(Routine::gemm, p).text == "gemm: argument 8, lda, is 2: expected at least 4, the columns of a row-major matrix (2, 4)");
  p = good_gemm();
  p.b = nullptr;
  CHECK(refusal(Routine::gemm, p).text == "gemm: argument 9, b, is NULL: expected the address of memory that is read or written");
  p = good_gemm();
  p.layout = blas::Layout(7);
  CHECK(refusal(Routine::gemm, p).text == "gemm: argument layout, is 7: expected row-major (101) or column-major (102)");
}

TEST_CASE("blas arguments: operands that are not read may be NULL") {
  Gemm p = good_gemm();
  p.alpha = 0.0F, p.a = p.b = nullptr;
  CHECK(refusal(Routine::gemm, p).argument.empty());
  p = good_gemm();
  p.k = 0, p.lda = 1, p.a = p.b = nullptr;
  CHECK(refusal(Routine::gemm, p).argument.empty());
  p.m = 0, p.c = nullptr;
  CHECK(refusal(Routine::gemm, p).argument.empty());
  float zero = 0;
  p = good_gemm();
  p.alpha = blas::Scalar<float>::on_device(&zero), p.a = nullptr;  // the value on the device is not read
  CHECK(refusal(Routine::gemm, p).argument == "a");
}

TEST_CASE("blas arguments: the early returns are those of the reference BLAS") {
  const auto works = [](Routine routine, const auto& p) { return blas::validate(routine, p); };
  CHECK(works(Routine::gemm, good_gemm()));
  CHECK_FALSE(works(Routine::gemm, with(good_gemm(), [](Gemm& p) { p.m = 0; })));
  CHECK(works(Routine::gemm, with(good_gemm(), [](Gemm& p) { p.k = 0; })));  // C = beta C
  CHECK_FALSE(works(Routine::gemm, with(good_gemm(), [](Gemm& p) { p.k = 0, p.beta = 1.0F; })));
  CHECK_FALSE(works(Routine::gemm, with(good_gemm(), [](Gemm& p) { p.alpha = 0.0F, p.beta = 1.0F; })));
  CHECK_FALSE(works(Routine::gemv, with(good_gemv(), [](auto& p) { p.n = 0; })));  // y is unchanged for every beta
  CHECK_FALSE(works(Routine::axpy, blas::arguments::axpy<float>{.n = 3, .alpha = 0.0F, .x = numbers, .y = numbers}));
  CHECK(works(Routine::nrm2, blas::arguments::reduce<float>{.n = 0, .result = numbers}));  // the result is still written
}

TEST_CASE("blas arguments: level 2 uses the positions of the reference BLAS") {
  const auto gemv = [](Routine routine, auto&& change, const char* argument, int position) {
    check_refused(routine, with(good_gemv(), change), argument, position);
  };
  gemv(
      Routine::gemv, [](auto& p) { p.trans = Op('N'); }, "trans", 1);
  gemv(
      Routine::gemv, [](auto& p) { p.lda = 2; }, "lda", 6);
  gemv(
      Routine::gemv, [](auto& p) { p.incx = 0; }, "incx", 8);
  gemv(
      Routine::gemv, [](auto& p) { p.incy = 0; }, "incy", 11);
  gemv(
      Routine::gbmv, [](auto& p) { p.kl = -1; }, "kl", 4);
  gemv(
      Routine::gbmv, [](auto& p) { p.ku = -2; }, "ku", 5);
  gemv(
      Routine::gbmv, [](auto& p) { p.lda = 2; }, "lda", 8);

  using Symv = blas::arguments::symv<float>;
  const Symv symv{.n = 3, .k = 1, .a = numbers, .lda = 3, .x = numbers, .y = numbers};
  check_refused(Routine::symv, with(symv, [](Symv& p) { p.uplo = blas::Uplo(0); }), "uplo", 1);
  check_refused(Routine::symv, with(symv, [](Symv& p) { p.lda = 2; }), "lda", 5);
  check_refused(Routine::sbmv, with(symv, [](Symv& p) { p.lda = 1; }), "lda", 6);
  check_refused(Routine::spmv, with(symv, [](Symv& p) { p.lda = 0, p.incy = 0; }), "incy", 9);

  using Trmv = blas::arguments::trmv<std::complex<double>>;
  const Trmv trmv{.n = 3, .k = 1, .a = complexes, .lda = 3, .x = complexes};
  check_refused(Routine::trsv, with(trmv, [](Trmv& p) { p.diag = blas::Diag(130); }), "diag", 3);
  check_refused(Routine::tbsv, with(trmv, [](Trmv& p) { p.k = -1; }), "k", 5);
  check_refused(Routine::tpsv, with(trmv, [](Trmv& p) { p.incx = 0; }), "incx", 7);

  using Syr = blas::arguments::syr<float>;
  const Syr syr{.n = 3, .x = numbers, .y = numbers, .a = numbers, .lda = 3};
  check_refused(Routine::syr, with(syr, [](Syr& p) { p.lda = 1; }), "lda", 7);
  check_refused(Routine::syr2, with(syr, [](Syr& p) { p.incy = 0; }), "incy", 7);
  check_refused(Routine::spr2, with(syr, [](Syr& p) { p.a = nullptr; }), "a", 8);
  CHECK(refusal(Routine::syr, with(syr, [](Syr& p) { p.y = nullptr, p.incy = 0; })).argument.empty());
}

TEST_CASE("blas arguments: rank-k updates conjugate only if they are Hermitian") {
  using Complex = blas::arguments::syrk<std::complex<double>>;
  using Float = blas::arguments::syrk<float>;
  const Complex p{.n = 2, .k = 2, .a = complexes, .lda = 2, .b = complexes, .ldb = 2, .c = complexes, .ldc = 2};
  const Float f{.n = 2, .k = 2, .a = numbers, .lda = 2, .b = numbers, .ldb = 2, .c = numbers, .ldc = 2};
  check_refused(Routine::syrk, with(p, [](Complex& q) { q.trans = Op::conj_trans; }), "trans", 2);
  check_refused(Routine::her2k, with(p, [](Complex& q) { q.trans = Op::trans; }), "trans", 2);
  check_refused(Routine::syrk, with(f, [](Float& q) { q.trans = Op::conj; }), "trans", 2);
  CHECK(refusal(Routine::herk, with(p, [](Complex& q) { q.trans = Op::conj_trans; })).argument.empty());
  CHECK(refusal(Routine::syr2k, with(f, [](Float& q) { q.trans = Op::conj_trans; })).argument.empty());
  check_refused(Routine::syr2k, with(f, [](Float& q) { q.ldb = 1; }), "ldb", 9);
  check_refused(Routine::syrk, with(f, [](Float& q) { q.ldc = 1; }), "ldc", 10);
}

TEST_CASE("blas arguments: level 1 reports errors that the reference BLAS ignores") {
  using Axpy = blas::arguments::axpy<float>;
  const Axpy axpy{.n = 3, .x = numbers, .y = numbers};
  check_refused(Routine::axpy, with(axpy, [](Axpy& p) { p.n = -1; }), "n", 1);
  check_refused(Routine::axpy, with(axpy, [](Axpy& p) { p.incy = 0; }), "incy", 6);
  CHECK(refusal(Routine::axpy, with(axpy, [](Axpy& p) { p.incx = 0; })).argument.empty());  // one element for all is valid
  check_refused(Routine::axpy, with(axpy, [](Axpy& p) { p.x = nullptr; }), "x", 3);
  check_refused(Routine::scal, blas::arguments::scal<float>{.n = 3, .x = numbers, .incx = -1}, "incx", 4);
  check_refused(Routine::iamax, blas::arguments::reduce<float>{.n = 3, .x = numbers}, "result", 0);
  check_refused(Routine::swap, blas::arguments::xy<float>{.n = 3, .x = numbers, .incx = 0, .y = numbers}, "incx", 3);
}
