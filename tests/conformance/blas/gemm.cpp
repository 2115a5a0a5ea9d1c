// SPDX-License-Identifier: Apache-2.0
// gemm: C = alpha op(A) op(B) + beta C. gemmt: one triangle of a square C.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const bool triangle = t.is("gemmt");
  const std::int64_t n = t.size("n"), m = triangle ? n : t.size("m"), k = t.size("k");
  const std::uint32_t uplo = triangle ? t.flag("uplo") : 0, trans_a = t.flag("trans_a"), trans_b = t.flag("trans_b");
  const Ref a = transposes(trans_a) ? t.matrix("a", k, m) : t.matrix("a", m, k);
  const Ref b = transposes(trans_b) ? t.matrix("b", n, k) : t.matrix("b", k, n);
  t.may_share(b, a);
  const Ref c =
      triangle ? t.triangle("c", n, uplo, Meaning::nothing, Storage::full, 0, Access::update) : t.matrix("c", m, n, Access::update);
  const Trial::Scalar alpha = t.alpha(), beta = t.beta();
  t.equals(c, {{alpha, {a, trans_a}, {b, trans_b}}}, beta);
}

std::vector<Flag> flags(const Line& line, tenon_dtype) {
  if (std::string(line.routine) == "gemm") return {{"trans_a", all_ops}, {"trans_b", all_ops}};
  return {{"uplo", both_triangles}, {"trans_a", all_ops}, {"trans_b", all_ops}};
}

}  // namespace

Signature signature_gemm() {
  return {.routines = {"gemm", "gemmt"}, .sizes = {"m", "n", "k"}, .flags = flags, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
