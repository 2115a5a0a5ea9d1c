// SPDX-License-Identifier: Apache-2.0
// syr, spr: A = alpha x x' + A. her, hpr: A = alpha x conj(x)' + A, alpha real. syr2, spr2: A = alpha (x y' + y x') + A. her2, hpr2:
// A = alpha x conj(y)' + conj(alpha) y conj(x)' + A. One triangle of A, in the p forms packed.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t n = t.size("n");
  const std::uint32_t uplo = t.flag("uplo");
  const bool hermitian = t.is("her") || t.is("hpr") || t.is("her2") || t.is("hpr2");
  const bool two = t.is("syr2") || t.is("spr2") || t.is("her2") || t.is("hpr2");
  const bool packed = t.is("spr") || t.is("hpr") || t.is("spr2") || t.is("hpr2");
  const std::uint32_t trans = hermitian ? std::uint32_t{TENON_CONJ_TRANS} : std::uint32_t{TENON_TRANS};
  const Trial::Scalar alpha = t.alpha(hermitian && !two);
  const Ref x = t.vector("x", n), y = two ? t.vector("y", n) : one;
  const Ref a = t.triangle("a", n, uplo, hermitian ? Meaning::hermitian : Meaning::symmetric, packed ? Storage::packed : Storage::full, 0,
                           Access::update);
  if (two) {
    const Number other = hermitian ? std::conj(alpha.value) : alpha.value;
    t.equals(a, {{alpha, {x}, {y, trans}}, {other, {y}, {x, trans}}}, 1);
  } else {
    t.equals(a, {{alpha, {x}, {x, trans}}}, 1);
  }
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"uplo", both_triangles}};
}

}  // namespace

Signature signature_syr() {
  return {.routines = {"syr", "her", "spr", "hpr", "syr2", "her2", "spr2", "hpr2"},
          .sizes = {"n"},
          .flags = flags,
          .build = build,
          .why = why_products};
}

}  // namespace tenon::conformance::blas
