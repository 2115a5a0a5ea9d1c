// SPDX-License-Identifier: Apache-2.0
// ops/qlinear_matmul.cpp - products of matrices of 8-bit integers, requantised.
#include <tenon/functions.h>

#include "graph/op.h"
#include "ops/integer_products.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(8, 8);
  const Shape y = integer_product_shape(at, 0, 3);
  const Shape& b = at.shape(3);
  expect_quantization(at, 1, 0);
  expect_quantization(at, 4, 3, b.rank() == 1 ? 1 : b[b.rank() - 1], "column");
  at.output(expect_result_quantization(at, 6), y);
}

std::int64_t flops(const Graph& graph, const NodeInfo& node) {
  const Shape& a = graph.info(node.inputs[0]).shape;
  return 2 * a[a.rank() - 1] * graph.info(node.outputs[0]).shape.count();
}

}  // namespace

extern const OpRules rules_qlinear_matmul;
const OpRules rules_qlinear_matmul{
    "y = saturate(round(f32(sum) factor) + y_zero_point), ties to even, of the sums of MatMulInteger, with factor = a_scale b_scale / "
    "y_scale; products and quotient are rounded to f32, and NaN, as of 0 times an infinite factor, becomes 0. b_scale and b_zero_point are "
    "scalars or have one element for each column.",
    infer, PrecisionClass::fp32, flops};

}  // namespace graph

namespace ops {

Value qlinear_matmul(const Quantized& a, const Quantized& b, Value y_scale, Value y_zero_point) {
  return graph::apply_op(TENON_OP_QLinearMatMul, {a.q, a.scale, a.zero_point, b.q, b.scale, b.zero_point, y_scale, y_zero_point});
}

}  // namespace ops
}  // namespace tenon
