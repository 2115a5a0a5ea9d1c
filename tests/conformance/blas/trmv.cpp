// SPDX-License-Identifier: Apache-2.0
// trmv, tbmv, tpmv: x = op(A) x, A triangular, banded, packed. trsv, tbsv, tpsv: op(A) x' = x.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t n = t.size("n");
  const std::uint32_t uplo = t.flag("uplo"), trans = t.flag("trans"), diag = t.flag("diag");
  const bool banded = t.is("tbmv") || t.is("tbsv"), packed = t.is("tpmv") || t.is("tpsv");
  const std::int64_t k = banded ? t.draw("k", {0, 1, 2, 5}) : 0;
  const Ref a = t.triangle("a", n, uplo, diag == TENON_UNIT ? Meaning::unit : Meaning::nothing,
                           banded   ? Storage::band
                           : packed ? Storage::packed
                                    : Storage::full,
                           k);
  const Ref x = t.vector("x", n, Access::update);
  if (t.is("trsv") || t.is("tbsv") || t.is("tpsv")) {
    t.condition(a);
    t.solves(x, {a, trans}, true, 1);
  } else {
    t.equals(x, {{1, {a, trans}, {x}}});
  }
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"uplo", both_triangles}, {"trans", all_ops}, {"diag", both_diagonals}};
}

}  // namespace

Signature signature_trmv() {
  return {.routines = {"trmv", "tbmv", "tpmv", "trsv", "tbsv", "tpsv"},
          .sizes = {"n"},
          .flags = flags,
          .build = build,
          .why = why_products_and_solves};
}

}  // namespace tenon::conformance::blas
