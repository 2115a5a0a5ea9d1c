// SPDX-License-Identifier: Apache-2.0
// geam: C = alpha op(A) + beta op(B); C may be A or B if that operand is not transposed.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t m = t.size("m"), n = t.size("n");
  const std::uint32_t trans_a = t.flag("trans_a"), trans_b = t.flag("trans_b");
  const auto operand = [&](const char* name, std::uint32_t trans) {
    return transposes(trans) ? t.matrix(name, n, m) : t.matrix(name, m, n);
  };
  const Ref a = operand("a", trans_a), b = operand("b", trans_b), c = t.matrix("c", m, n, Access::write);
  if (!transposes(trans_a)) {
    t.may_share(c, a);
  } else if (!transposes(trans_b)) {
    t.may_share(c, b);
  }
  const Trial::Scalar alpha = t.alpha(), beta = t.beta();
  t.equals(c, {{alpha, {a, trans_a}}, {beta, {b, trans_b}}});
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"trans_a", all_ops}, {"trans_b", all_ops}};
}

}  // namespace

Signature signature_geam() {
  return {.routines = {"geam"}, .sizes = {"m", "n"}, .flags = flags, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
