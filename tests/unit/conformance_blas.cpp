// SPDX-License-Identifier: Apache-2.0
// Tests of the BLAS cases of the conformance kit: the reference backend's table with one wrong routine at a time.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "conformance/conformance.h"
#include "disguised_backend.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::test;
using conformance::Class;

namespace {

std::function<void(tenon_blas_table&)> spoil;
bool without_table = false;

struct Backend : Disguise<Backend> {
  static constexpr const char *file = "reference", *name = "wrong";
  static void alter(tenon_backend_table& table) {
    static tenon_blas_table blas;
    blas = *real->blas;
    if (spoil) spoil(blas);
    table.blas = without_table ? nullptr : &blas;
  }
};

/// The kit's report on the routines that match `filter`.
conformance::Report judged(const std::string& filter) {
  return conformance::judge(Backend::options("blas", filter));
}
/// The same with one wrong routine.
template <class Slot>
conformance::Report judged(Slot tenon_blas_table::*slot, std::type_identity_t<Slot> wrong, const std::string& filter) {
  spoil = [=](tenon_blas_table& table) { table.*slot = wrong; };
  conformance::Report report = judged(filter);
  spoil = nullptr;
  return report;
}

float* elements(std::uint64_t address) {
  return reinterpret_cast<float*>(static_cast<std::uintptr_t>(address));
}
float value_of(const tenon_scalar* scalar) {
  return *elements(scalar->address);
}

// As in tenon_blas_gemm_fn and tenon_blas_gemv_fn.
#define GEMM_PARAMETERS                                                                                                                    \
  TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans_a, std::uint32_t trans_b, std::int64_t m, std::int64_t n, \
      std::int64_t k, const tenon_scalar *alpha, std::uint64_t a, std::int64_t lda, std::uint64_t b, std::int64_t ldb,                     \
      const tenon_scalar *beta, std::uint64_t c, std::int64_t ldc, tenon_error *error
#define GEMV_PARAMETERS                                                                                                           \
  TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t trans, std::int64_t m, std::int64_t n, std::int64_t kl, std::int64_t ku,   \
      const tenon_scalar *alpha, std::uint64_t a, std::int64_t lda, std::uint64_t x, std::int64_t incx, const tenon_scalar *beta, \
      std::uint64_t y, std::int64_t incy, tenon_error *error

}  // namespace

TEST_CASE("conformance blas: the unmodified wrapped table passes") {
  const auto report = judged("*mv/f64/*");
  for (const conformance::Result& result : report.results) CHECK_MESSAGE(result.outcome == Class::pass, result.name, ": ", result.text);
  CHECK(report.results.size() > 100);
  CHECK(report.exit_code() == 0);
}

TEST_CASE("conformance blas: a gemv that reads y for beta = 0 is caught, and only in that case") {
  const auto report = judged(
      &tenon_blas_table::gemv,
      [](GEMV_PARAMETERS) -> tenon_status {
        float first = 0;
        if (m > 0 && n > 0 && value_of(beta) == 0) first = elements(y)[0] * value_of(beta);
        const tenon_status status =
            Backend::real->blas->gemv(device, stream, dtype, layout, trans, m, n, kl, ku, alpha, a, lda, x, incx, beta, y, incy, error);
        if (m > 0 && n > 0) elements(y)[0] += first;
        return status;
      },
      "gemv/f32/row/*");
  CHECK(passes(report, "gemv/f32/row/values"));
  CHECK(passes(report, "gemv/f32/row/nothing"));
  CHECK(fails(report, "gemv/f32/row/beta_zero"));
  const auto& result = result_named(report, "gemv/f32/row/beta_zero");
  const std::string text = result.text + "; again: " + result.again;
  for (const char* part : {"element (", "of y", "expected", "got (nan", "gemv row trans=", "m=", "lda=", "incx=", "alpha=", "beta=0",
                           "seed", "tenon conformance --backend wrong --profile blas --filter 'gemv/f32/row/beta_zero' --seed 1"}) {
    CHECK_MESSAGE(contains(text, part), part, " is not in: ", text);
  }
  CHECK(report.exit_code() == 1);
}

TEST_CASE("conformance blas: a gemm that ignores lda is caught") {
  const auto report = judged(
      &tenon_blas_table::gemm,
      [](TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans_a, std::uint32_t trans_b, std::int64_t m,
         std::int64_t n, std::int64_t k, const tenon_scalar* alpha, std::uint64_t a, std::int64_t, std::uint64_t b, std::int64_t ldb,
         const tenon_scalar* beta, std::uint64_t c, std::int64_t ldc, tenon_error* error) -> tenon_status {
        const bool turned = trans_a == TENON_TRANS || trans_a == TENON_CONJ_TRANS;
        const std::int64_t min_rows = turned == (layout == TENON_LAYOUT_ROW_MAJOR) ? m : k;
        return Backend::real->blas->gemm(device, stream, dtype, layout, uplo, trans_a, trans_b, m, n, k, alpha, a,
                                         std::max<std::int64_t>(min_rows, 1), b, ldb, beta, c, ldc, error);
      },
      "gemm/f32/row/*");
  CHECK(fails(report, "gemm/f32/row/values"));
}

TEST_CASE("conformance blas: a wrong element of a large product is caught by products with vectors") {
  const auto report = judged(
      &tenon_blas_table::gemm,
      [](GEMM_PARAMETERS) -> tenon_status {
        const tenon_status status = Backend::real->blas->gemm(device, stream, dtype, layout, uplo, trans_a, trans_b, m, n, k, alpha, a, lda,
                                                              b, ldb, beta, c, ldc, error);
        if (m > 200 && n > 200) elements(c)[100 * ldc + 100] += 10;
        return status;
      },
      "gemm/f32/row/*");
  CHECK(passes(report, "gemm/f32/row/values"));
  CHECK(fails(report, "gemm/f32/row/large"));
  const std::string text = result_named(report, "gemm/f32/row/large").text;
  CHECK_MESSAGE(text.find("row 100 of c times a vector of signs") != std::string::npos, text);
}

TEST_CASE("conformance blas: a large product that omits the last term in its last column is caught by sampled elements") {
  const auto report = judged(
      &tenon_blas_table::gemm,
      [](GEMM_PARAMETERS) -> tenon_status {
        const tenon_status status = Backend::real->blas->gemm(device, stream, dtype, layout, uplo, trans_a, trans_b, m, n, k, alpha, a, lda,
                                                              b, ldb, beta, c, ldc, error);
        // About the magnitude of one of the k products.
        if (m > 200 && n > 200) elements(c)[100 * ldc + n - 1] += 0.25F;
        return status;
      },
      "gemm/f32/row/large");
  CHECK(fails(report, "gemm/f32/row/large"));
  CHECK(contains(result_named(report, "gemm/f32/row/large").text, "element (100,299) of c"));
}

TEST_CASE("conformance blas: a trsv that reads a unit diagonal is caught") {
  const auto report = judged(
      &tenon_blas_table::trsv,
      [](TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::uint32_t, std::int64_t n, std::int64_t k,
         std::uint64_t a, std::int64_t lda, std::uint64_t x, std::int64_t incx, tenon_error* error) -> tenon_status {
        return Backend::real->blas->trsv(device, stream, dtype, layout, uplo, trans, TENON_NON_UNIT, n, k, a, lda, x, incx, error);
      },
      "trsv/f32/column/*");
  CHECK(fails(report, "trsv/f32/column/values"));
  CHECK(contains(result_named(report, "trsv/f32/column/values").text, "diag=unit"));
}

TEST_CASE("conformance blas: a syrk that writes the other triangle is caught") {
  const auto report = judged(
      &tenon_blas_table::syrk,
      [](TENON_BLAS_HEAD, std::uint32_t layout, std::uint32_t uplo, std::uint32_t trans, std::int64_t n, std::int64_t k,
         const tenon_scalar* alpha, std::uint64_t a, std::int64_t lda, std::uint64_t b, std::int64_t ldb, const tenon_scalar* beta,
         std::uint64_t c, std::int64_t ldc, tenon_error* error) -> tenon_status {
        const tenon_status status =
            Backend::real->blas->syrk(device, stream, dtype, layout, uplo, trans, n, k, alpha, a, lda, b, ldb, beta, c, ldc, error);
        const bool below = (uplo == TENON_UPPER) == (layout == TENON_LAYOUT_ROW_MAJOR);
        if (n > 1) elements(c)[below ? ldc : 1] = elements(c)[below ? 1 : ldc];
        return status;
      },
      "syrk/f32/row/*");
  CHECK(fails(report, "syrk/f32/row/values"));
  CHECK(contains(result_named(report, "syrk/f32/row/values").text, "memory of c that holds none of its elements"));
}

TEST_CASE("conformance blas: an axpy that runs the wrong way for a negative increment is caught") {
  const auto report = judged(
      &tenon_blas_table::axpy,
      [](TENON_BLAS_HEAD, std::int64_t n, const tenon_scalar* alpha, std::uint64_t x, std::int64_t incx, std::uint64_t y, std::int64_t incy,
         tenon_error* error) -> tenon_status {
        return Backend::real->blas->axpy(device, stream, dtype, n, alpha, x, std::abs(incx), y, incy, error);
      },
      "axpy/f32/*");
  CHECK(fails(report, "axpy/f32/values"));
  CHECK(contains(result_named(report, "axpy/f32/values").text, "incx=-"));
}

TEST_CASE("conformance blas: sums in too narrow a type and overflowing squares are caught") {
  const auto sums = judged(
      &tenon_blas_table::dsdot,
      [](TENON_BLAS_HEAD, std::int64_t n, const tenon_scalar*, std::uint64_t x, std::int64_t incx, std::uint64_t y, std::int64_t incy,
         const tenon_scalar* out_result, tenon_error* error) -> tenon_status {
        float narrow = 0;
        const tenon_scalar result{reinterpret_cast<std::uintptr_t>(&narrow), 0, 0};
        const tenon_status status = Backend::real->blas->dot(device, stream, dtype, n, nullptr, x, incx, y, incy, &result, error);
        *reinterpret_cast<double*>(static_cast<std::uintptr_t>(out_result->address)) = narrow;
        return status;
      },
      "dsdot/f32/*");
  CHECK(fails(sums, "dsdot/f32/values"));
  const auto norms = judged(
      &tenon_blas_table::nrm2,
      [](tenon_device*, tenon_stream*, tenon_dtype, std::int64_t n, std::uint64_t x, std::int64_t incx, const tenon_scalar* out_result,
         tenon_error*) -> tenon_status {
        float sum = 0;
        for (std::int64_t i = 0; i < n; ++i) sum += elements(x)[i * incx] * elements(x)[i * incx];
        *elements(out_result->address) = std::sqrt(sum);
        return TENON_OK;
      },
      "nrm2/f32/values");
  CHECK(fails(norms, "nrm2/f32/values"));
  CHECK(contains(result_named(norms, "nrm2/f32/values").text, "range="));
}

TEST_CASE("conformance blas: a scal that computes 0 * NaN as 0 is caught") {
  const auto report = judged(
      &tenon_blas_table::scal,
      [](TENON_BLAS_HEAD, std::int64_t n, const tenon_scalar* alpha, std::uint64_t x, std::int64_t incx,
         tenon_error* error) -> tenon_status {
        if (value_of(alpha) != 0) return Backend::real->blas->scal(device, stream, dtype, n, alpha, x, incx, error);
        for (std::int64_t i = 0; i < n; ++i) elements(x)[i * incx] = 0;
        return TENON_OK;
      },
      "scal/f32/values");
  CHECK(contains(result_named(report, "scal/f32/values").text, "0 NaN: expected (nan"));
}

TEST_CASE("conformance blas: work on empty operands is caught") {
  const auto report = judged(
      &tenon_blas_table::gemv,
      [](GEMV_PARAMETERS) -> tenon_status {
        if (trans == TENON_NO_TRANS && n == 0 && m > 0 && y != 0) elements(y)[0] *= value_of(beta);
        return Backend::real->blas->gemv(device, stream, dtype, layout, trans, m, n, kl, ku, alpha, a, lda, x, incx, beta, y, incy, error);
      },
      "gemv/f32/row/values");
  CHECK(contains(result_named(report, "gemv/f32/row/values").text, "though nothing may be written"));
}

TEST_CASE("conformance blas: results that are not reproducible are caught") {
  const auto report = judged(
      &tenon_blas_table::asum,
      [](TENON_BLAS_HEAD, std::int64_t n, std::uint64_t x, std::int64_t incx, const tenon_scalar* out_result,
         tenon_error* error) -> tenon_status {
        static int calls = 0;
        const tenon_status status = Backend::real->blas->asum(device, stream, dtype, n, x, incx, out_result, error);
        float& result = *elements(out_result->address);
        if (++calls % 2 == 0) result = std::nextafter(result, 2 * result);
        return status;
      },
      "asum/f32/*");
  CHECK(passes(report, "asum/f32/values"));
  CHECK(fails(report, "asum/f32/deterministic"));
}

TEST_CASE("conformance blas: an empty slot, an unsupported call and a missing table are reported as unsupported") {
  const auto empty = judged(&tenon_blas_table::swap, nullptr, "swap/f32/*");
  CHECK(empty.count(Class::unsupported) == static_cast<std::int64_t>(empty.results.size()));
  CHECK(contains(empty.results.front().text, "has no swap"));
  CHECK(empty.exit_code() == 1);
  const auto refused = judged(
      &tenon_blas_table::swap,
      [](tenon_device*, tenon_stream*, tenon_dtype, std::int64_t, std::uint64_t, std::int64_t, std::uint64_t, std::int64_t,
         tenon_error* error) -> tenon_status {
        std::snprintf(error->text, error->text_capacity, "swap: not here");
        return TENON_UNSUPPORTED;
      },
      "swap/f32/values");
  CHECK(refused.results.front().outcome == Class::unsupported);
  CHECK(contains(refused.results.front().text, "swap: not here"));
  without_table = true;
  const auto none = judged("swap/f32/values");
  without_table = false;
  CHECK(none.results.front().outcome == Class::unsupported);
  CHECK(none.exit_code() == 1);
}
