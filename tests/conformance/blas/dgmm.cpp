// SPDX-License-Identifier: Apache-2.0
// dgmm: C = diag(x) A (left) or A diag(x).
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t m = t.size("m"), n = t.size("n");
  const std::uint32_t side = t.flag("side");
  const bool left = side == TENON_LEFT;
  const Ref a = t.matrix("a", m, n), x = t.vector("x", left ? m : n), c = t.matrix("c", m, n, Access::write);
  const Factor diagonal{x, TENON_NO_TRANS, true};
  t.equals(c, {left ? Term{1, diagonal, {a}} : Term{1, {a}, diagonal}});
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"side", both_sides}};
}

}  // namespace

Signature signature_dgmm() {
  return {.routines = {"dgmm"}, .sizes = {"m", "n"}, .flags = flags, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
