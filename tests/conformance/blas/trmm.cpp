// SPDX-License-Identifier: Apache-2.0
// trmm: B = alpha op(A) B (left) or alpha B op(A), A triangular. trsm: op(A) X = alpha B or X op(A) = alpha B, X over B.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t m = t.size("m"), n = t.size("n");
  const std::uint32_t side = t.flag("side"), uplo = t.flag("uplo"), trans = t.flag("trans"), diag = t.flag("diag");
  const bool left = side == TENON_LEFT;
  const Ref a = t.triangle("a", left ? m : n, uplo, diag == TENON_UNIT ? Meaning::unit : Meaning::nothing);
  const Ref b = t.matrix("b", m, n, Access::update);
  const Trial::Scalar alpha = t.alpha();
  if (t.is("trsm")) {
    t.condition(a);
    t.solves(b, {a, trans}, left, alpha);
  } else {
    t.equals(b, {left ? Term{alpha, {a, trans}, {b}} : Term{alpha, {b}, {a, trans}}});
  }
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"side", both_sides}, {"uplo", both_triangles}, {"trans", all_ops}, {"diag", both_diagonals}};
}

}  // namespace

Signature signature_trmm() {
  return {.routines = {"trmm", "trsm"}, .sizes = {"m", "n"}, .flags = flags, .build = build, .why = why_products_and_solves};
}

}  // namespace tenon::conformance::blas
