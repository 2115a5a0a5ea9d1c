// SPDX-License-Identifier: Apache-2.0
// axpby: y = alpha x + beta y.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t n = t.size("n");
  const Trial::Scalar alpha = t.alpha(), beta = t.beta();
  const Ref x = t.vector("x", n), y = t.vector("y", n, Access::update);
  t.may_share(y, x);
  t.equals(y, {{alpha, {x}}}, beta);
}

}  // namespace

Signature signature_axpby() {
  return {.routines = {"axpby"}, .layouts = false, .sizes = {"n"}, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
