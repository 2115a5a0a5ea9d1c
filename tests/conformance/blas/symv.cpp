// SPDX-License-Identifier: Apache-2.0
// symv, hemv: y = alpha A x + beta y. sbmv, hbmv: A has k diagonals next to the main one. spmv, hpmv: A is packed.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t n = t.size("n");
  const std::uint32_t uplo = t.flag("uplo");
  const bool banded = t.is("sbmv") || t.is("hbmv"), packed = t.is("spmv") || t.is("hpmv");
  const bool hermitian = t.is("hemv") || t.is("hbmv") || t.is("hpmv");
  const std::int64_t k = banded ? t.draw("k", {0, 1, 2, 5}) : 0;
  const Ref a = t.triangle("a", n, uplo, hermitian ? Meaning::hermitian : Meaning::symmetric,
                           banded   ? Storage::band
                           : packed ? Storage::packed
                                    : Storage::full,
                           k);
  const Ref x = t.vector("x", n), y = t.vector("y", n, Access::update);
  const Trial::Scalar alpha = t.alpha(), beta = t.beta();
  t.equals(y, {{alpha, {a}, {x}}}, beta);
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"uplo", both_triangles}};
}

}  // namespace

Signature signature_symv() {
  return {
      .routines = {"symv", "hemv", "sbmv", "hbmv", "spmv", "hpmv"}, .sizes = {"n"}, .flags = flags, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
