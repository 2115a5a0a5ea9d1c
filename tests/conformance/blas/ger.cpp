// SPDX-License-Identifier: Apache-2.0
// ger, geru: A = alpha x y' + A. gerc: A = alpha x conj(y)' + A.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t m = t.size("m"), n = t.size("n");
  const Trial::Scalar alpha = t.alpha();
  const Ref x = t.vector("x", m), y = t.vector("y", n), a = t.matrix("a", m, n, Access::update);
  t.equals(a, {{alpha, {x}, {y, t.is("gerc") ? std::uint32_t{TENON_CONJ_TRANS} : std::uint32_t{TENON_TRANS}}}}, 1);
}

}  // namespace

Signature signature_ger() {
  return {.routines = {"ger", "geru", "gerc"}, .sizes = {"m", "n"}, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
