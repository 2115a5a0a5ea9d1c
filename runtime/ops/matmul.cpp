// SPDX-License-Identifier: Apache-2.0
// ops/matmul.cpp - matrix products as in NumPy's matmul: batches of matrices, 1-D operands.
#include <fmt/format.h>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

/// (m, k) of the left operand: a 1-D operand is a row.
Shape as_left(const Shape& a) {
  return a.rank() == 1 ? Shape{1, a[0]} : a;
}
/// (k, n) of the right operand: a 1-D operand is a column.
Shape as_right(const Shape& b) {
  return b.rank() == 1 ? Shape{b[0], 1} : b;
}

Shape batch_of(const Shape& matrices) {
  return Shape(matrices.dims().first(matrices.rank() - 2));
}

void infer(Inference& at) {
  at.expect_inputs(2, 2);
  at.expect_same_dtype(0, 1);
  at.expect_number(0);
  for (std::size_t i : {0u, 1u}) {
    if (at.shape(i).rank() == 0) at.fail(fmt::format("expected a vector, a matrix or a batch of them, got {}", at.str(i)));
  }
  const Shape a = as_left(at.shape(0)), b = as_right(at.shape(1));
  if (a[a.rank() - 1] != b[b.rank() - 2]) at.fail(fmt::format("expected equal inner sizes, got {}, {}", at.str(0), at.str(1)));
  Shape y;
  try {
    y = tenon::broadcast(batch_of(a), batch_of(b));
  } catch (const Error&) {
    at.fail(fmt::format("the batch dimensions do not broadcast: {}, {}", at.str(0), at.str(1)));
  }
  if (at.shape(0).rank() > 1) y.push_back(a[a.rank() - 2]);
  if (at.shape(1).rank() > 1) y.push_back(b[b.rank() - 1]);
  at.output(at.dtype(0), y);
}

Value reshaped(Value x, const Shape& shape) {
  return x.shape() == shape ? x : ops::reshape(x, shape);
}

/// Stacks all rows of a batch of matrices.
Value stacked(Value x) {
  const Shape& shape = x.shape();
  const std::int64_t columns = shape[shape.rank() - 1];
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.rank(); ++i) rows *= shape[i];
  return reshaped(x, {rows, columns});
}

Value transposed(Value x) {
  std::vector<std::int64_t> permutation(x.shape().rank());
  for (std::size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<std::int64_t>(i);
  std::swap(permutation[permutation.size() - 1], permutation[permutation.size() - 2]);
  return ops::transpose(x, permutation);
}

/// da = dy b', db = a' dy
void gradient(Gradient& at) {
  const Value a = reshaped(at.input(0), as_left(at.input(0).shape()));
  const Value b = reshaped(at.input(1), as_right(at.input(1).shape()));
  Shape y = tenon::broadcast(batch_of(a.shape()), batch_of(b.shape()));
  y.push_back(a.shape()[a.shape().rank() - 2]);
  y.push_back(b.shape()[b.shape().rank() - 1]);
  const Value dy = reshaped(at.dy(), y);

  Value da, db;
  if (b.shape().rank() == 2) {
    // one matrix for the whole batch: a single product sums over the batch, without transposing in memory
    const Value rows = stacked(dy);
    if (at.needs(0)) da = ops::gemm(rows, b, {}, {.trans_b = true});
    if (at.needs(1)) db = ops::gemm(stacked(a), rows, {}, {.trans_a = true});
  } else {
    if (at.needs(0)) da = unbroadcast(ops::matmul(dy, transposed(b)), a.shape());
    if (at.needs(1)) db = unbroadcast(ops::matmul(transposed(a), dy), b.shape());
  }
  if (at.needs(0)) at.set(0, reshaped(da, at.input(0).shape()));
  if (at.needs(1)) at.set(1, reshaped(db, at.input(1).shape()));
}

std::int64_t flops(const Graph& graph, const NodeInfo& node) {
  const Shape& a = graph.info(node.inputs[0]).shape;
  return 2 * a[a.rank() - 1] * graph.info(node.outputs[0]).shape.count();
}

}  // namespace

extern const OpRules rules_matmul;
const OpRules rules_matmul{
    "y = a b, (..., m, k) by (..., k, n); batch dimensions broadcast. A 1-D a is a row, a 1-D b a column, and their added dimension is "
    "removed from y.",
    infer, PrecisionClass::low_precision, flops, gradient};

}  // namespace graph

namespace ops {

Value matmul(Value a, Value b) {
  return graph::apply_op(TENON_OP_MatMul, {a, b});
}

}  // namespace ops
}  // namespace tenon
