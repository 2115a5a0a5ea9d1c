// SPDX-License-Identifier: Apache-2.0
// swap: x, y = y, x. copy: y = x.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t n = t.size("n");
  const bool swaps = t.is("swap");
  const Ref x = t.vector("x", n, swaps ? Access::update : Access::read), y = t.vector("y", n, swaps ? Access::update : Access::write);
  if (!swaps) t.may_share(y, x);
  t.same(y, x);
  if (swaps) t.same(x, y);
}

}  // namespace

Signature signature_xy() {
  return {.routines = {"swap", "copy"},
          .layouts = false,
          .sizes = {"n"},
          .build = build,
          .why = "Elements are moved as they are: the same bits."};
}

}  // namespace tenon::conformance::blas
