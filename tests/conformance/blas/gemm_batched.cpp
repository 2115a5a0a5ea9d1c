// SPDX-License-Identifier: Apache-2.0
// gemm_batched: C = alpha op(A) op(B) + beta C for each of `batch` triples at arbitrary addresses.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t m = t.size("m"), n = t.size("n"), k = t.size("k");
  const std::uint32_t trans_a = t.flag("trans_a"), trans_b = t.flag("trans_b");
  const std::int64_t batch = t.kind() == TrialKind::nothing ? t.draw("batch", {0, 1, 3}) : t.draw("batch", {1, 2, 3});
  const Trial::Scalar alpha = t.alpha(), beta = t.beta();
  std::vector<Ref> a, b, c;
  if (batch > 0) {
    a.push_back(transposes(trans_a) ? t.matrix("a", k, m) : t.matrix("a", m, k));
    b.push_back(transposes(trans_b) ? t.matrix("b", n, k) : t.matrix("b", k, n));
    c.push_back(t.matrix("c", m, n, Access::update));
  } else {
    for (const char* lead : {"lda", "ldb", "ldc"}) t.draw(lead, {8});
  }
  for (std::int64_t i = 1; i < batch; ++i) {
    c.push_back(t.another(c[0]));  // in another order in memory than in the batch
    b.push_back(t.another(b[0]));
    a.push_back(t.another(a[0]));
  }
  for (std::size_t i = 0; i < c.size(); ++i) t.equals(c[i], {{alpha, {a[i], trans_a}, {b[i], trans_b}}}, beta);
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"trans_a", all_ops}, {"trans_b", all_ops}};
}

}  // namespace

Signature signature_gemm_batched() {
  return {.routines = {"gemm_batched"}, .sizes = {"m", "n", "k"}, .flags = flags, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
