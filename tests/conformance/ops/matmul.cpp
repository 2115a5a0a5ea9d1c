// SPDX-License-Identifier: Apache-2.0
// MatMul: stacks of matrices, and vectors as in NumPy.
#include "op_family.h"

#include "product.h"

namespace tenon::conformance {
namespace {

constexpr Values numbers{.special = Special::not_large};

Dims product_shape(Dims a, Dims b) {
  const bool row = a.size() == 1, column = b.size() == 1;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  Dims result = broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!row) result.push_back(a[a.size() - 2]);
  if (!column) result.push_back(b.back());
  return result;
}

Variant product(const Dims& a, const Dims& b) {
  return {"", {operand(a, numbers), operand(b, numbers)}, {result(product_shape(a, b))}};
}

constexpr Tolerance bound{
    "A sum of k products of numbers up to 2. In any order it is off by k epsilon / 2 times the sum of magnitudes, 4 "
    "k; kernels sum by blocks, which brings the first k down to about its root.",
    [](const Variant& variant, tenon_dtype t) -> Bound { return product_bound(variant.inputs[0].shape.back(), t); }};

void fused(CaseContext& context, tenon_dtype dtype) {
  const std::pair<Dims, Dims> operands[] = {{{13, 31}, {31, 17}},        {{2, 9, 31}, {31, 17}}, {{2, 13, 31}, {2, 31, 17}},
                                            {{3, 2, 7, 31}, {2, 31, 5}}, {{13, 31}, {31}},       {{31}, {31, 17}},
                                            {{2, 5, 31}, {31}},          {{40, 200}, {200, 160}}};
  for (const auto& [a, b] : operands) {
    check_fused_epilogue(context, dtype, {TENON_OP_MatMul, AttributeBytes(), a, b, product_shape(a, b), a.back()});
  }
}

}  // namespace

std::vector<OpCase> cases_matmul() {
  // Beyond 257 the oracle is too slow: the BLAS cases cover larger products.
  const std::int64_t n = sized(257, 33);
  return {{
      .op = TENON_OP_MatMul,
      .variants = {product({1, 1}, {1, 1}), product({3, 5}, {5, 4}), product({1, 7}, {7, 1}), product({7, 1}, {1, 7}), product({5}, {5}),
                   product({5}, {5, 3}), product({3, 5}, {5}), product({2, 3, 4}, {4, 5}), product({3, 4}, {2, 4, 5}),
                   product({2, 1, 3, 4}, {3, 4, 2}), product({0, 3}, {3, 2}), product({2, 3}, {3, 0}), product({2, 0}, {0, 3}),
                   product({0, 2, 3}, {3, 2}), product({17, 64}, {64, 33}), product({32, 64}, {3, 64, 64}), product({n, n - 1}, {n - 1, n}),
                   product({100, 784}, {784, sized(300, 30)})},
      .bound = bound,
      .gradient = {0, 1},
      .golden = {{"two_by_two", product({2, 2}, {2, 2}), {{1, 2, 3, 4}, {5, 6, 7, 8}}, {{19, 22, 43, 50}}},
                 {"stack", product({2, 1, 2}, {2, 1}), {{1, 2, 3, 4}, {10, 0.5}}, {{11, 32}}},
                 {"vectors", product({3}, {3}), {{1, -2, 3}, {4, 5, 6}}, {{12}}},
                 {"no_terms", product({2, 0}, {0, 2}), {{}, {}}, {{0, 0, 0, 0}}}},
      .extras = {{"fused_epilogue", fused}},
  }};
}

}  // namespace tenon::conformance
