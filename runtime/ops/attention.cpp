// SPDX-License-Identifier: Apache-2.0
// ops/attention.cpp - multi-head scaled dot-product attention, and rotary embeddings.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/op.h"

namespace tenon {
namespace graph {
namespace {

/// Checks q, k, v and a mask at these operands, and scale and causal; returns the shape of y.
Shape check_operands(const Inference& at, std::size_t first, std::size_t mask) {
  const std::size_t q = first, k = first + 1, v = first + 2;
  at.expect_floating(q);
  for (const std::size_t i : {q, k, v}) {
    if (i != q) at.expect_same_dtype(q, i);
    if (at.shape(i).rank() != 4) at.fail(fmt::format("expected (batch, heads, length, size), got {}", at.str(i)));
  }
  const Shape &qs = at.shape(q), &ks = at.shape(k), &vs = at.shape(v);
  if (ks[0] != qs[0] || vs[0] != qs[0]) at.fail(fmt::format("expected equal batch sizes, got {}, {}, {}", at.str(q), at.str(k), at.str(v)));
  if (vs[1] != ks[1]) at.fail(fmt::format("expected equal numbers of heads, got {}, {}", at.str(k), at.str(v)));
  if (vs[2] != ks[2]) at.fail(fmt::format("expected equal lengths, got {}, {}", at.str(k), at.str(v)));
  if (ks[3] != qs[3]) at.fail(fmt::format("expected equal head sizes, got {}, {}", at.str(q), at.str(k)));
  for (const std::size_t i : {q, k, v}) {
    if (at.shape(i)[1] == 0 || at.shape(i)[3] == 0) at.fail(fmt::format("expected heads with elements, got {}", at.str(i)));
  }
  if (qs[1] % ks[1] != 0) at.fail(fmt::format("the {} heads of {} do not divide the {} of {}", ks[1], at.str(k), qs[1], at.str(q)));
  if (at.has(mask)) {
    at.expect_same_dtype(q, mask);
    const Shape scores{qs[0], qs[1], qs[2], ks[2]};
    const Shape& m = at.shape(mask);
    bool fits = m.rank() <= 4;
    for (std::size_t i = 0; fits && i < m.rank(); ++i) fits = m[i] == 1 || m[i] == scores[4 - m.rank() + i];
    if (!fits) at.fail(fmt::format("{} does not broadcast to the scores {}", at.str(mask), scores.str()));
  }
  const auto& attributes = at.attributes.as<tenon_attributes_attention>();
  at.expect_flag(attributes.causal, "causal");
  if (!std::isfinite(attributes.scale)) at.fail(fmt::format("expected a finite scale, got {}", attributes.scale));
  return {qs[0], qs[1], qs[2], vs[3]};
}

void infer(Inference& at) {
  at.expect_inputs(3, 4);
  const Shape y = check_operands(at, 0, 3);
  at.output(at.dtype(0), y);
  at.output(accumulation_dtype(at.dtype(0)), {y[0], y[1], y[2]});
}

/// dy, q, k, v, mask, y, log_sum -> dq, dk, dv
void infer_grad(Inference& at) {
  at.expect_inputs(4, 7);  // the mask may be absent
  if (!at.has(5) || !at.has(6)) at.fail("operand y or log_sum is absent");
  const Shape y = check_operands(at, 1, 4);
  for (const std::size_t i : {0u, 5u, 6u}) {
    if (i != 6) at.expect_same_dtype(1, i);
    if (i == 6 && at.dtype(6) != accumulation_dtype(at.dtype(1))) {
      at.fail(fmt::format("expected log_sum of {} for {}, got {}", name_of(accumulation_dtype(at.dtype(1))), at.str(1), at.str(6)));
    }
    const Shape expected = i == 6 ? Shape{y[0], y[1], y[2]} : y;
    if (at.shape(i) != expected)
      at.fail(fmt::format("expected {} of {}, got {}", i == 0 ? "dy" : i == 5 ? "y" : "log_sum", expected.str(), at.str(i)));
  }
  for (const std::size_t i : {1u, 2u, 3u}) at.output(at.dtype(1), at.shape(i));
}

/// (B, G, L, D) with each head repeated for the H / G heads of q that share it.
Value repeat_heads(Value x, std::int64_t heads) {
  const Shape shape = x.shape();
  if (shape[1] == heads) return x;
  const std::int64_t times = heads / shape[1];
  const Value apart = ops::reshape(x, Shape{shape[0], shape[1], 1, shape[2], shape[3]});
  return ops::reshape(ops::expand(apart, {shape[0], shape[1], times, shape[2], shape[3]}), Shape{shape[0], heads, shape[2], shape[3]});
}

/// The causal mask (S, L): whether query s attends to key l.
Value visible(Graph& graph, std::int64_t queries, std::int64_t keys) {
  Tensor seen = Tensor::empty(DType::boolean, {queries, keys});
  for (std::int64_t s = 0; s < queries; ++s) {
    for (std::int64_t l = 0; l < keys; ++l) seen.data<bool>()[s * keys + l] = l <= s;
  }
  return graph.constant(seen);
}

/// The gradient of the scores is p (dy v' - sum dy y), p = exp(scores - log_sum). A mask is rarely learned: its gradient is composed of
/// other ops and materialises all scores.
Value mask_gradient(Gradient& at) {
  const auto& attributes = at.attributes.as<tenon_attributes_attention>();
  const Value q = at.input(0), mask = at.input(3), dy = at.dy();
  const Value k = repeat_heads(at.input(1), q.shape()[1]), v = repeat_heads(at.input(2), q.shape()[1]);
  const Value scores = ops::add(ops::mul(ops::matmul(q, ops::transpose(k, {0, 1, 3, 2})), attributes.scale), mask);
  const Value log_sum = ops::unsqueeze(at.output(1), {3});
  const auto as = [](Value x, DType dtype) { return x.dtype() == dtype ? x : ops::cast(x, dtype); };
  Value p = as(ops::exp(ops::sub(as(scores, log_sum.dtype()), log_sum)), q.dtype());
  if (attributes.causal != 0) {
    p = ops::where(visible(at.graph, q.shape()[2], k.shape()[2]), p, scalar(at.graph, q.dtype(), 0));
  }
  const Value weight = ops::reduce_sum(ops::mul(dy, at.output(0)), {3}, true);
  return unbroadcast(ops::mul(p, ops::sub(ops::matmul(dy, ops::transpose(v, {0, 1, 3, 2})), weight)), mask.shape());
}

void gradient(Gradient& at) {
  if (!at.dy(0).present()) return;  // log_sum is only used by this rule
  if (at.needs(0) || at.needs(1) || at.needs(2)) {
    at.set_needed(at.graph.apply(TENON_OP_AttentionGrad,
                                 {at.dy(), at.input(0), at.input(1), at.input(2), at.input(3), at.output(0), at.output(1)}, at.attributes));
  }
  if (at.needs(3)) at.set(3, mask_gradient(at));
}

/// The products q k' and scores v, and four operations per score. The gradient has five products. Operand i is q.
template <std::size_t i, std::int64_t products>
std::int64_t flops(const Graph& graph, const NodeInfo& node) {
  const Shape &q = graph.info(node.inputs[i]).shape, &k = graph.info(node.inputs[i + 1]).shape;
  return q[0] * q[1] * q[2] * k[2] * (2 * products * q[3] + 4);
}

}  // namespace

extern const OpRules rules_attention, rules_attention_grad;
const OpRules rules_attention{
    "y = softmax(scale q k' + mask) v, rows over the keys; causal: query s attends to keys l <= s. q (B, H, S, D), k (B, G, L, D), v (B, "
    "G, L, E), head h of q with head h G / H of k and v; mask broadcast to (B, H, S, L). log_sum (B, H, S) = log sum exp of each row's "
    "scores. A row without keys is 0, its log_sum -inf.",
    infer,
    PrecisionClass::low_precision,
    flops<0, 2>,
    gradient,
    0b10};
const OpRules rules_attention_grad{
    "With p = exp(scale q k' + mask - log_sum) and ds = p (dy v' - sum(dy y)): dq = scale ds k, dk = scale ds' q, dv = p' dy, summed over "
    "the heads of q that share one of k and v.",
    infer_grad, PrecisionClass::low_precision, flops<1, 5>};

}  // namespace graph

namespace ops {

Value attention(Value q, Value k, Value v, const AttentionOptions& options) {
  tenon_attributes_attention attributes{};
  attributes.causal = options.causal ? 1 : 0;
  const Shape shape = q.shape();
  const std::int64_t size = shape.rank() == 0 ? 1 : shape[shape.rank() - 1];
  attributes.scale = options.scale ? *options.scale : 1 / std::sqrt(static_cast<double>(std::max<std::int64_t>(size, 1)));
  std::vector<Value> operands{q, k, v};
  if (options.mask.present()) operands.push_back(options.mask);
  return graph::apply_op(TENON_OP_Attention, operands, Attributes::of(attributes));
}

Value rotary_embedding(Value x, Value cosines, Value sines, bool interleaved) {
  const Shape shape = x.shape();
  const auto fail = [&](const std::string& text) {
    throw Error(fmt::format("rotary_embedding of '{}' {}: {}", x.name(), shape.str(), text));
  };
  const std::size_t rank = shape.rank();
  if (rank < 2 || shape[rank - 1] % 2 != 0) fail("expected (..., S, D) with an even D");
  const std::int64_t length = shape[rank - 2], half = shape[rank - 1] / 2;
  for (const Value angles : {cosines, sines}) {
    if (angles.shape() != Shape{length, half}) {
      fail(fmt::format("expected cosines and sines of ({},{}), got '{}' {}", length, half, angles.name(), angles.shape().str()));
    }
  }
  const auto last = static_cast<std::int64_t>(rank) - 1;
  const std::int64_t d = 2 * half;
  const Value a = interleaved ? slice(x, last, 0, d, 2) : slice(x, last, 0, half);
  const Value b = interleaved ? slice(x, last, 1, d, 2) : slice(x, last, half, d);
  const Value first = sub(mul(a, cosines), mul(b, sines)), second = add(mul(b, cosines), mul(a, sines));
  if (!interleaved) return concat({first, second}, last);
  // interleave the halves: two rows become two columns
  const Shape row{1, first.shape().count()};
  return reshape(transpose(concat({reshape(first, row), reshape(second, row)}, 0), {1, 0}), shape);
}

}  // namespace ops
}  // namespace tenon
