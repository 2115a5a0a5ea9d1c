// SPDX-License-Identifier: Apache-2.0
// ops/gemm.cpp - the general matrix product.
#include <fmt/format.h>

#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

void infer(Inference& at) {
  at.expect_inputs(2, 3);
  const auto& attributes = at.attributes.as<tenon_attributes_gemm>();
  at.expect_flag(attributes.trans_a, "trans_a");
  at.expect_flag(attributes.trans_b, "trans_b");
  at.expect_same_dtype(0, 1);
  at.expect_floating(0);
  for (std::size_t i : {0u, 1u}) {
    if (at.shape(i).rank() != 2) at.fail(fmt::format("expected a matrix, got {}", at.str(i)));
  }
  const bool ta = attributes.trans_a != 0, tb = attributes.trans_b != 0;
  if (at.shape(0)[ta ? 0 : 1] != at.shape(1)[tb ? 1 : 0]) {
    at.fail(
        fmt::format("expected equal inner sizes, got {}{}, {}{}", at.str(0), ta ? " transposed" : "", at.str(1), tb ? " transposed" : ""));
  }
  const Shape y{at.shape(0)[ta ? 1 : 0], at.shape(1)[tb ? 0 : 1]};
  if (at.has(2)) {
    at.expect_same_dtype(0, 2);
    const Shape& c = at.shape(2);
    bool fits = c.rank() <= 2;
    for (std::size_t i = 0; fits && i < c.rank(); ++i) fits = c[i] == 1 || c[i] == y[2 - c.rank() + i];
    if (!fits) at.fail(fmt::format("{} does not broadcast to {}", at.str(2), y.str()));
  }
  at.output(at.dtype(0), y);
}

/// With A = op(a), B = op(b): dA = alpha dy B', dB = alpha A' dy; for a transposed operand the product is formed transposed.
void gradient(Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_gemm>();
  const bool ta = attributes.trans_a != 0, tb = attributes.trans_b != 0;
  const Value a = at.input(0), b = at.input(1), dy = at.dy();
  const double alpha = attributes.alpha;
  if (at.needs(0)) {
    at.set(0, ta ? ops::gemm(b, dy, {}, {.trans_a = tb, .trans_b = true, .alpha = alpha})
                 : ops::gemm(dy, b, {}, {.trans_a = false, .trans_b = !tb, .alpha = alpha}));
  }
  if (at.needs(1)) {
    at.set(1, tb ? ops::gemm(dy, a, {}, {.trans_a = true, .trans_b = ta, .alpha = alpha})
                 : ops::gemm(a, dy, {}, {.trans_a = !ta, .trans_b = false, .alpha = alpha}));
  }
  // with beta 0, C is not read
  if (at.needs(2) && attributes.beta != 0) {
    const Value dc = unbroadcast(dy, at.input(2).shape());
    at.set(2, attributes.beta == 1 ? dc : ops::mul(dc, attributes.beta));
  }
}

std::int64_t flops(const Graph& graph, const NodeInfo& node) {
  const bool ta = node.attributes.as<tenon_attributes_gemm>().trans_a != 0;
  const bool adds = node.inputs.size() > 2 && node.inputs[2] != no_id;
  return (2 * graph.info(node.inputs[0]).shape[ta ? 0 : 1] + (adds ? 1 : 0)) * graph.info(node.outputs[0]).shape.count();
}

}  // namespace

extern const OpRules rules_gemm;
const OpRules rules_gemm{"y = alpha op(a) op(b) + beta c, op(a) (m, k), op(b) (k, n); c broadcasts to (m, n). With beta 0, c is not read.",
                         infer, PrecisionClass::low_precision, flops, gradient};

}  // namespace graph

namespace ops {

Value gemm(Value a, Value b, Value c, const GemmOptions& options) {
  tenon_attributes_gemm attributes{};
  attributes.trans_a = options.trans_a ? 1 : 0;
  attributes.trans_b = options.trans_b ? 1 : 0;
  attributes.alpha = options.alpha;
  attributes.beta = options.beta;
  std::vector<Value> operands{a, b};
  if (c.present()) operands.push_back(c);
  return graph::apply_op(TENON_OP_Gemm, operands, Attributes::of(attributes));
}

}  // namespace ops
}  // namespace tenon
