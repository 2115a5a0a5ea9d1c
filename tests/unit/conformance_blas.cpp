// SPDX-License-Identifier: Apache-2.0
// Tests of the BLAS cases of the conformance kit: the reference backend's table with one wrong routine at a time.
#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstdio>
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
  spoil = [=](tenon_blas_table& table) {
    table.*slot = wrong;
    if (wrong == nullptr) *(reinterpret_cast<std::uint64_t*>(&(table.*slot)) + 1) = 0;  // its dtypes
  };
  conformance::Report report = judged(filter);
  spoil = nullptr;
  return report;
}

float* elements(std::uint64_t address) {
  return reinterpret_cast<float*>(static_cast<std::uintptr_t>(address));
}
float value_of(const tenon_scalar& scalar) {
  return *elements(scalar.address);
}

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
      [](const tenon_blas_call* call, const tenon_blas_gemv_args* p, tenon_error* error) -> tenon_status {
        float first = 0;
        if (p->m > 0 && p->n > 0 && value_of(p->beta) == 0) first = elements(p->y)[0] * value_of(p->beta);
        const tenon_status status = Backend::real->blas->gemv(call, p, error);
        if (status == TENON_OK && p->m > 0 && p->n > 0) elements(p->y)[0] += first;
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

TEST_CASE("conformance blas: a wrong element of a large product is caught by products with vectors") {
  const auto report = judged(
      &tenon_blas_table::gemm,
      [](const tenon_blas_call* call, const tenon_blas_gemm_args* p, tenon_error* error) -> tenon_status {
        const tenon_status status = Backend::real->blas->gemm(call, p, error);
        if (p->m > 200 && p->n > 200) elements(p->c)[100 * p->ldc + 100] += 10;
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
      [](const tenon_blas_call* call, const tenon_blas_gemm_args* p, tenon_error* error) -> tenon_status {
        const tenon_status status = Backend::real->blas->gemm(call, p, error);
        // About the magnitude of one of the k products.
        if (p->m > 200 && p->n > 200) elements(p->c)[100 * p->ldc + p->n - 1] += 0.25F;
        return status;
      },
      "gemm/f32/row/large");
  CHECK(fails(report, "gemm/f32/row/large"));
  CHECK(contains(result_named(report, "gemm/f32/row/large").text, "element (100,299) of c"));
}

TEST_CASE("conformance blas: a syrk that writes the other triangle is caught") {
  const auto report = judged(
      &tenon_blas_table::syrk,
      [](const tenon_blas_call* call, const tenon_blas_syrk_args* p, tenon_error* error) -> tenon_status {
        const tenon_status status = Backend::real->blas->syrk(call, p, error);
        const bool below = (p->uplo == TENON_UPPER) == (p->layout == TENON_LAYOUT_ROW_MAJOR);
        if (status == TENON_OK && p->n > 1) elements(p->c)[below ? p->ldc : 1] = elements(p->c)[below ? 1 : p->ldc];
        return status;
      },
      "syrk/f32/row/*");
  CHECK(fails(report, "syrk/f32/row/values"));
  CHECK(contains(result_named(report, "syrk/f32/row/values").text, "memory of c that holds none of its elements"));
}

TEST_CASE("conformance blas: sums in too narrow a type and overflowing squares are caught") {
  const auto sums = judged(
      &tenon_blas_table::dsdot,
      [](const tenon_blas_call* call, const tenon_blas_dot_args* p, tenon_error* error) -> tenon_status {
        float narrow = 0;
        tenon_blas_dot_args args = *p;
        args.result = {reinterpret_cast<std::uintptr_t>(&narrow), 0, 0};
        const tenon_status status = Backend::real->blas->dot(call, &args, error);
        *reinterpret_cast<double*>(static_cast<std::uintptr_t>(p->result.address)) = narrow;
        return status;
      },
      "dsdot/f32/*");
  CHECK(fails(sums, "dsdot/f32/values"));
  const auto norms = judged(
      &tenon_blas_table::nrm2,
      [](const tenon_blas_call*, const tenon_blas_reduce_args* p, tenon_error*) -> tenon_status {
        float sum = 0;
        for (std::int64_t i = 0; i < p->n; ++i) sum += elements(p->x)[i * p->incx] * elements(p->x)[i * p->incx];
        *elements(p->result.address) = std::sqrt(sum);
        return TENON_OK;
      },
      "nrm2/f32/values");
  CHECK(fails(norms, "nrm2/f32/values"));
  CHECK(contains(result_named(norms, "nrm2/f32/values").text, "range="));
}

TEST_CASE("conformance blas: a scal that computes 0 * NaN as 0 is caught") {
  const auto report = judged(
      &tenon_blas_table::scal,
      [](const tenon_blas_call* call, const tenon_blas_scal_args* p, tenon_error* error) -> tenon_status {
        if (value_of(p->alpha) != 0) return Backend::real->blas->scal(call, p, error);
        for (std::int64_t i = 0; i < p->n; ++i) elements(p->x)[i * p->incx] = 0;
        return TENON_OK;
      },
      "scal/f32/values");
  CHECK(contains(result_named(report, "scal/f32/values").text, "0 NaN: expected (nan"));
}

TEST_CASE("conformance blas: work on empty operands is caught") {
  const auto report = judged(
      &tenon_blas_table::gemv,
      [](const tenon_blas_call* call, const tenon_blas_gemv_args* p, tenon_error* error) -> tenon_status {
        if (p->trans == TENON_NO_TRANS && p->n == 0 && p->m > 0 && p->y != 0) elements(p->y)[0] *= value_of(p->beta);
        return Backend::real->blas->gemv(call, p, error);
      },
      "gemv/f32/row/values");
  CHECK(contains(result_named(report, "gemv/f32/row/values").text, "though nothing may be written"));
}

TEST_CASE("conformance blas: results that are not reproducible are caught") {
  const auto report = judged(
      &tenon_blas_table::asum,
      [](const tenon_blas_call* call, const tenon_blas_reduce_args* p, tenon_error* error) -> tenon_status {
        static int calls = 0;
        const tenon_status status = Backend::real->blas->asum(call, p, error);
        if (status != TENON_OK) return status;
        float& result = *elements(p->result.address);
        if (++calls % 2 == 0) result = std::nextafter(result, 2 * result);
        return status;
      },
      "asum/f32/*");
  CHECK(passes(report, "asum/f32/values"));
  CHECK(fails(report, "asum/f32/deterministic"));
}

TEST_CASE("conformance blas: an empty slot and a missing table are reported as unsupported, a refused dtype of the table fails") {
  const auto empty = judged(&tenon_blas_table::swap, nullptr, "swap/f32/*");
  CHECK(empty.count(Class::unsupported) == static_cast<std::int64_t>(empty.results.size()));
  CHECK(contains(empty.results.front().text, "has no swap"));
  CHECK(empty.exit_code() == 1);
  spoil = [](tenon_blas_table& table) { table.swap_dtypes = TENON_DTYPE_BIT(TENON_DTYPE_F64); };
  const auto lacking = judged("swap/f32/values");
  spoil = nullptr;
  CHECK(lacking.results.front().outcome == Class::unsupported);
  CHECK(contains(lacking.results.front().text, "swap_dtypes of the backend's BLAS is without f32"));
  const auto refused = judged(
      &tenon_blas_table::swap,
      [](const tenon_blas_call*, const tenon_blas_xy_args*, tenon_error* error) -> tenon_status {
        std::snprintf(error->text, error->text_capacity, "swap: not here");
        return TENON_UNSUPPORTED;
      },
      "swap/f32/values");
  CHECK(refused.results.front().outcome == Class::fail);
  CHECK(contains(refused.results.front().text, "swap: not here"));
  without_table = true;
  const auto none = judged("swap/f32/values");
  without_table = false;
  CHECK(none.results.front().outcome == Class::unsupported);
  CHECK(none.exit_code() == 1);
}
