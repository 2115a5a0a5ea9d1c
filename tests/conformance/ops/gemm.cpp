// SPDX-License-Identifier: Apache-2.0
// Gemm: scaled and transposed products, plus c.
#include "op_family.h"

#include "product.h"

namespace tenon::conformance {
namespace {

constexpr Values numbers{.special = Special::not_large};

struct Sizes {
  std::int64_t m, n, k;
};

tenon_attributes_gemm attributes_of(bool trans_a, bool trans_b, double alpha, double beta) {
  return tenon_attributes_gemm{.trans_a = trans_a, .trans_b = trans_b, .alpha = alpha, .beta = beta};
}

Variant product(Sizes s, bool trans_a, bool trans_b, double alpha = 1, double beta = 1, const OperandSpec& c = absent) {
  std::string label = fmt::format("{}{}", trans_a ? 't' : 'n', trans_b ? 't' : 'n');
  if (alpha != 1) label += fmt::format(",alpha={}", alpha);
  if (beta != 1) label += fmt::format(",beta={}", beta);
  return {label,
          {operand(trans_a ? Dims{s.k, s.m} : Dims{s.m, s.k}, numbers), operand(trans_b ? Dims{s.n, s.k} : Dims{s.k, s.n}, numbers), c},
          {result({s.m, s.n})},
          attributes_of(trans_a, trans_b, alpha, beta)};
}

constexpr Tolerance bound{
    "A sum of k products of numbers up to 2. In any order it is off by k epsilon / 2 times the sum of magnitudes, 4 "
    "k; kernels sum by blocks, which brings the first k down to about its root. alpha scales that error, or is taken "
    "into an operand, which rounds once more; beta c is at most 2 |beta| and rounds twice. The product may be rounded "
    "to 16 bits before c is added.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      const auto& attributes = variant.attributes.as<tenon_attributes_gemm>();
      const std::int64_t k = variant.inputs[0].shape[attributes.trans_a == 1 ? 0 : 1];
      const Bound sum = product_bound(k, t);
      const bool with_c = variant.inputs[2].present;
      // alpha scales the product's error, or is taken into an operand: one rounding more. beta c is at most 2 |beta| and rounds twice.
      return {.relative = sum.relative + 2 * epsilon(t),
              .absolute = std::fabs(attributes.alpha) * (sum.absolute + 8 * epsilon(t)) +
                          (with_c ? 4 * std::fabs(attributes.beta) * epsilon(t) : 0),
              // Half an epsilon of products of four root k, three standard deviations of their sums.
              .rounding = with_c ? 2 * std::fabs(attributes.alpha) * std::sqrt(static_cast<double>(k)) : 0};
    }};

void fused(CaseContext& context, tenon_dtype dtype) {
  check_fused_epilogue(context, dtype, {TENON_OP_Gemm, attributes_of(false, true, 1, 1), {13, 31}, {17, 31}, {13, 17}, 31});
  check_fused_epilogue(context, dtype, {TENON_OP_Gemm, attributes_of(false, true, 1, 1), {13, 31}, {17, 31}, {13, 17}, 31, true});
}

}  // namespace

std::vector<OpCase> cases_gemm() {
  const std::int64_t n = sized(257, 33);
  std::vector<Variant> variants;
  for (const bool trans_a : {false, true}) {
    for (const bool trans_b : {false, true}) {
      variants.push_back(product({5, 4, 3}, trans_a, trans_b));
      variants.push_back(product({13, 17, 31}, trans_a, trans_b, 0.5, 2, operand({17}, numbers)));
      variants.push_back(product({n, n + 1, n - 1}, trans_a, trans_b));
    }
  }
  for (const Dims& c : {Dims{}, Dims{1}, Dims{4}, Dims{5, 1}, Dims{1, 4}, Dims{5, 4}}) {
    variants.push_back(product({5, 4, 3}, false, false, 1, 1, operand(c, numbers)));
  }
  for (const Dims& c : {Dims{6}, Dims{6, 1}}) variants.push_back(product({6, 6, 3}, false, false, 1, 1, operand(c, numbers)));
  variants.push_back(product({5, 4, 3}, false, false, -2, 0.25, operand({5, 4}, numbers)));
  variants.push_back(product({1, 1, 1}, false, false));
  variants.push_back(product({1, 9, 7}, false, true));
  variants.push_back(product({9, 1, 7}, true, false));
  variants.push_back(product({0, 4, 3}, false, false, 1, 1, operand({4}, numbers)));
  variants.push_back(product({5, 0, 3}, false, false));
  variants.push_back(product({5, 4, 0}, false, false, 1, 1, operand({4}, numbers)));
  return {{
      .op = TENON_OP_Gemm,
      .variants = variants,
      .bound = bound,
      .gradient = {0, 1, 2},
      .golden = {{"plain", product({2, 2, 2}, false, false), {{1, 2, 3, 4}, {5, 6, 7, 8}, {}}, {{19, 22, 43, 50}}},
                 {"transposed", product({2, 2, 3}, true, true), {{1, 4, 2, 5, 3, 6}, {1, 0, -1, 2, 1, 0}, {}}, {{-2, 4, -2, 13}}},
                 {"scaled_and_added",
                  product({2, 2, 2}, false, false, 0.5, 2, operand({2})),
                  {{1, 2, 3, 4}, {5, 6, 7, 8}, {0.25, -1}},
                  {{10, 9, 22, 23}}},
                 // as in BLAS, an operand that is scaled by 0 is not read
                 {"beta_0_does_not_read_c",
                  product({2, 2, 2}, false, false, 1, 0, operand({2, 2})),
                  {{1, 2, 3, 4}, {5, 6, 7, 8}, {nan, inf, nan, -inf}},
                  {{19, 22, 43, 50}}},
                 {"no_terms", product({2, 2, 0}, false, false, 1, 2, operand({2})), {{}, {}, {3, 4}}, {{6, 8, 6, 8}}}},
      .extras = {{"fused_epilogue", fused}},
  }};
}

}  // namespace tenon::conformance
