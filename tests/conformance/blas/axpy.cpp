// SPDX-License-Identifier: Apache-2.0
// axpy: y = alpha x + y.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t n = t.size("n");
  const Trial::Scalar alpha = t.alpha();
  const Ref x = t.vector("x", n), y = t.vector("y", n, Access::update);
  t.may_share(y, x);
  t.equals(y, {{alpha, {x}}}, 1);
}

}  // namespace

Signature signature_axpy() {
  return {.routines = {"axpy"}, .layouts = false, .sizes = {"n"}, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
