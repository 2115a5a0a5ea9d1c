// SPDX-License-Identifier: Apache-2.0
// gemm_strided_batched: C = alpha op(A) op(B) + beta C for each of `batch` triples at equal distances.
#include "blas.h"

namespace tenon::conformance::blas {
namespace {

void build(Trial& t) {
  const std::int64_t m = t.size("m"), n = t.size("n"), k = t.size("k");
  const std::uint32_t trans_a = t.flag("trans_a"), trans_b = t.flag("trans_b");
  const std::int64_t batch = t.kind() == TrialKind::nothing ? t.draw("batch", {0, 1, 3}) : t.draw("batch", {1, 2, 3});
  const Trial::Scalar alpha = t.alpha(), beta = t.beta();
  const Ref a = transposes(trans_a) ? t.matrix("a", k, m) : t.matrix("a", m, k);
  const Ref b = transposes(trans_b) ? t.matrix("b", n, k) : t.matrix("b", k, n);
  const Ref c = t.matrix("c", m, n, Access::update);
  // What is only read may be the same for all.
  const auto distance = [&](const char* name, Ref operand, bool may_be_zero) {
    const std::int64_t extent = t.extent(operand);
    return may_be_zero ? t.draw(name, {extent, extent + 1, extent + 7, 0}) : t.draw(name, {extent, extent + 1, extent + 7});
  };
  const std::int64_t stride_a = distance("stride_a", a, true), stride_b = distance("stride_b", b, true),
                     stride_c = distance("stride_c", c, false);
  for (std::int64_t i = 0; i < batch; ++i) {
    const auto at = [&](Ref first, std::int64_t stride) {
      if (i == 0) return first;
      const Ref operand = t.another(first);
      t.put_inside(operand, first, i * stride);
      return operand;
    };
    const Ref a_i = at(a, stride_a), b_i = at(b, stride_b);
    t.equals(at(c, stride_c), {{alpha, {a_i, trans_a}, {b_i, trans_b}}}, beta);
  }
  t.untouched_if(batch == 0);
}

std::vector<Flag> flags(const Line&, tenon_dtype) {
  return {{"trans_a", all_ops}, {"trans_b", all_ops}};
}

}  // namespace

Signature signature_gemm_strided_batched() {
  return {.routines = {"gemm_strided_batched"}, .sizes = {"m", "n", "k"}, .flags = flags, .build = build, .why = why_products};
}

}  // namespace tenon::conformance::blas
