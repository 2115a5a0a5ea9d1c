// SPDX-License-Identifier: Apache-2.0
// symm, hemm: C = alpha A B + beta C (left) or alpha B A + beta C, A symmetric or Hermitian.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t m = t.size("m"), n = t.size("n");
  const std::uint32_t side = t.flag("side"), uplo = t.flag("uplo");
  const bool left = side == TENON_LEFT;
  const Ref a = t.triangle("a", left ? m : n, uplo, t.is("hemm") ? Meaning::hermitian : Meaning::symmetric);
  const Ref b = t.matrix("b", m, n), c = t.matrix("c", m, n, Access::update);
  const Trial::Scalar alpha = t.alpha(), beta = t.beta();
  t.equals(c, {left ? Term{alpha, {a}, {b}} : Term{alpha, {b}, {a}}}, beta);
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"side", both_sides}, {"uplo", both_triangles}};
}

}  // namespace

Signature signature_symm() {
  return {.routines = {"symm", "hemm"}, .sizes = {"m", "n"}, .flags = flags, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
