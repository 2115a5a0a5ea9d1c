// SPDX-License-Identifier: Apache-2.0
// gemv: y = alpha op(A) x + beta y. gbmv: A has kl diagonals below the main one and ku above.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t m = t.size("m"), n = t.size("n");
  const std::uint32_t trans = t.flag("trans");
  const bool banded = t.is("gbmv");
  const std::int64_t kl = banded ? t.draw("kl", {0, 1, 2, 5}) : 0, ku = banded ? t.draw("ku", {0, 1, 3, 4}) : 0;
  const Ref a = banded ? t.band("a", m, n, kl, ku) : t.matrix("a", m, n);
  const Ref x = t.vector("x", transposes(trans) ? m : n), y = t.vector("y", transposes(trans) ? n : m, Access::update);
  const Trial::Scalar alpha = t.alpha(), beta = t.beta();
  t.untouched_if(m == 0 || n == 0);
  t.equals(y, {{alpha, {a, trans}, {x}}}, beta);
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"trans", all_ops}};
}

}  // namespace

Signature signature_gemv() {
  return {.routines = {"gemv", "gbmv"}, .sizes = {"m", "n"}, .flags = flags, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
