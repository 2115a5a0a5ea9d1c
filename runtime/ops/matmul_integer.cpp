// SPDX-License-Identifier: Apache-2.0
// ops/matmul_integer.cpp - products of matrices of 8-bit integers.
#include <tenon/functions.h>

#include "graph/op.h"
#include "ops/integer_products.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(2, 4);
  const Shape y = integer_product_shape(at, 0, 1);
  const Shape &a = at.shape(0), &b = at.shape(1);
  if (at.has(2)) {
    at.expect_same_dtype(0, 2);
    expect_per_line(at, 2, 0, a.rank() == 1 ? 1 : a[a.rank() - 2], "row");
  }
  if (at.has(3)) {
    at.expect_same_dtype(1, 3);
    expect_per_line(at, 3, 1, b.rank() == 1 ? 1 : b[b.rank() - 1], "column");
  }
  at.output(DType::i32, y);
}

std::int64_t flops(const Graph& graph, const NodeInfo& node) {
  const Shape& a = graph.info(node.inputs[0]).shape;
  return 2 * a[a.rank() - 1] * graph.info(node.outputs[0]).shape.count();
}

}  // namespace

extern const OpRules rules_matmul_integer;
const OpRules rules_matmul_integer{
    "y = (a - a_zero_point) (b - b_zero_point) as exact sums in i32, modulo 2^32; shapes as of MatMul. a_zero_point is a scalar or has one "
    "element for each row, b_zero_point a scalar or one for each column; absent ones are 0.",
    infer, PrecisionClass::fp32, flops};

}  // namespace graph

namespace ops {

Value matmul_integer(Value a, Value b, Value a_zero_point, Value b_zero_point) {
  std::vector<Value> operands{a, b};
  if (a_zero_point.present() || b_zero_point.present()) operands.push_back(a_zero_point);
  if (b_zero_point.present()) operands.push_back(b_zero_point);
  return graph::apply_op(TENON_OP_MatMulInteger, operands);
}

}  // namespace ops
}  // namespace tenon
