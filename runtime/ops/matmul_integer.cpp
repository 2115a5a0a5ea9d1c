// SPDX-License-Identifier: Apache-2.0
// ops/matmul_integer.cpp - products of matrices of 8-bit integers.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

Shape batch_of(const Shape& x) {
  return x.rank() < 2 ? Shape{} : Shape(x.dims().first(x.rank() - 2));
}

void expect_bytes(Inference& at, std::size_t i) {
  if (at.dtype(i) != DType::i8 && at.dtype(i) != DType::u8) at.fail(fmt::format("expected integers of i8 or u8, got {}", at.str(i)));
}

/// Checks that operand i is absent, or a scalar or list of `count` of the dtype of operand `of`.
void expect_zero_point(Inference& at, std::size_t i, std::size_t of, std::int64_t count, const char* lines) {
  if (!at.has(i)) return;
  at.expect_same_dtype(of, i);
  const Shape& shape = at.shape(i);
  if (shape.rank() != 0 && shape != Shape{count}) {
    at.fail(fmt::format("expected a scalar or ({}), one for each {} of {}, got {}", count, lines, at.str(of), at.str(i)));
  }
}

void infer(Inference& at) {
  at.expect_inputs(2, 4);
  for (std::size_t i : {0u, 1u}) {
    expect_bytes(at, i);
    if (at.shape(i).rank() == 0) at.fail(fmt::format("expected a vector, a matrix or a batch of them, got {}", at.str(i)));
  }
  const Shape &a = at.shape(0), &b = at.shape(1);
  const std::int64_t rows = a.rank() == 1 ? 1 : a[a.rank() - 2], columns = b.rank() == 1 ? 1 : b[b.rank() - 1];
  if (a[a.rank() - 1] != b[b.rank() == 1 ? 0 : b.rank() - 2]) {
    at.fail(fmt::format("expected equal inner sizes, got {}, {}", at.str(0), at.str(1)));
  }
  expect_zero_point(at, 2, 0, rows, "row");
  expect_zero_point(at, 3, 1, columns, "column");
  Shape y;
  try {
    y = tenon::broadcast(batch_of(a), batch_of(b));
  } catch (const Error&) {
    at.fail(fmt::format("the batch dimensions do not broadcast: {}, {}", at.str(0), at.str(1)));
  }
  if (a.rank() > 1) y.push_back(rows);
  if (b.rank() > 1) y.push_back(columns);
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
