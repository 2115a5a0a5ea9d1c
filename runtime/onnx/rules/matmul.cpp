// SPDX-License-Identifier: Apache-2.0
// onnx/rules/matmul.cpp - matrix products, Einsum and determinants.
#include <fmt/core.h>

#include <string>
#include <vector>

#include "onnx/rules.h"
#include "onnx/rules/dtypes.h"

namespace tenon::onnx {
namespace {

void matmul(Node& node) {
  const Value a = node.input(0), b = node.input(1);
  node.output(0, computed_in(
                     floating_dtype(a.dtype()), [](Value x, Value y) { return ops::matmul(x, y); }, a, b));
}

/// alpha A B + beta C. Before version 7 the attribute `broadcast` says if C has the shape of the result; C broadcasts in either case.
void gemm(Node& node) {
  const Value a = node.input(0);
  const DType dtype = floating_dtype(a.dtype());
  const ops::GemmOptions options{
      .trans_a = node.flag("transA"), .trans_b = node.flag("transB"), .alpha = node.number("alpha", 1), .beta = node.number("beta", 1)};
  // With beta 0, C is not read: its infinities and NaNs have no effect.
  const Value c = options.beta == 0 ? Value() : node.optional_input(2);
  const Value y = ops::gemm(cast_to(a, dtype), cast_to(node.input(1), dtype), c.present() ? cast_to(c, dtype) : Value(), options);
  node.output(0, cast_to(y, a.dtype()));
}

void einsum_rule(Node& node) {
  const std::vector<Value> operands = node.inputs();
  if (operands.empty()) node.fail("expected one operand or more, got none");
  const DType dtype = floating_dtype(operands[0].dtype());
  std::vector<Value> floats;
  for (const Value& operand : operands) floats.push_back(cast_to(operand, dtype));
  node.output(0, cast_to(ops::einsum(std::string(node.text("equation")), floats), operands[0].dtype()));
}

/// The determinants of matrices (..., n, n) of up to three rows, by their formula.
void det(Node& node) {
  const Value x = node.input(0);
  const Shape shape = x.shape();
  const std::size_t rank = shape.rank();
  if (rank < 2 || shape[rank - 1] != shape[rank - 2]) node.fail(fmt::format("expected square matrices (..., n, n), got {}", shape.str()));
  const std::int64_t n = shape[rank - 1];
  if (n > 3) node.unsupported(fmt::format("expected matrices of up to 3 rows, got {} rows: there is no LU decomposition", n));
  const Shape batch(shape.dims().first(rank - 2));
  if (n == 0) return node.output(0, ops::expand(node.scalar(x.dtype(), 1), batch));
  const auto at = [&](std::int64_t row, std::int64_t column) {
    return ops::reshape(ops::slice(ops::slice(x, -2, row, row + 1), -1, column, column + 1), batch);
  };
  // the determinant of two rows, from row `row` on, and two columns.
  const auto minor = [&](std::int64_t row, std::int64_t a, std::int64_t b) {
    return at(row, a) * at(row + 1, b) - at(row, b) * at(row + 1, a);
  };
  if (n == 1) return node.output(0, at(0, 0));
  if (n == 2) return node.output(0, minor(0, 0, 1));
  node.output(0, at(0, 0) * minor(1, 1, 2) - at(0, 1) * minor(1, 0, 2) + at(0, 2) * minor(1, 0, 1));
}

}  // namespace

const std::vector<Rule>& matmul_rules() {
  static const std::vector<Rule> rules = {
      {"Det", 11, det},
      {"Einsum", 12, einsum_rule},
      {"Gemm", 1, gemm},
      {"MatMul", 1, matmul},
  };
  return rules;
}

}  // namespace tenon::onnx
