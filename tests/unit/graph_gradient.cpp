// SPDX-License-Identifier: Apache-2.0
// Structure of gradients; the conformance kit checks their values against finite differences.
#include <doctest/doctest.h>

#include <algorithm>

#include "graph/op.h"
#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// The ops that gradients() appends for loss = sum(y).
std::string gradient_ops(Value y, const std::vector<Value>& variables) {
  Graph& g = y.graph();
  const Value loss = y.shape().rank() == 0 ? y : ops::reduce_sum(y);
  const std::size_t before = g.nodes().size();
  const std::vector<Value> result = gradients(loss, variables);
  for (std::size_t i = 0; i < variables.size(); ++i) CHECK(str(result[i]) == str(variables[i]));
  return ops_of(g, before);
}

struct Pair {
  Graph g;
  Value a, b;
  Pair(const Shape& shape_a, const Shape& shape_b) : a(g.parameter("a", DType::f32, shape_a)), b(g.parameter("b", DType::f32, shape_b)) {}
};

}  // namespace

TEST_CASE("gradient: an MLP's step has no redundant nodes") {
  Graph g;
  const Value x = g.input("x", DType::f32, {8, 4}), labels = g.input("labels", DType::i64, {8});
  const Value w1 = g.parameter("w1", DType::f32, {4, 5}), b1 = g.parameter("b1", DType::f32, {5}),
              w2 = g.parameter("w2", DType::f32, {5, 3});
  const Value loss = ops::softmax_cross_entropy(ops::matmul(ops::relu(ops::matmul(x, w1) + b1), w2), labels);
  const std::size_t before = g.nodes().size();
  const std::vector<Value> d = gradients(loss, {w1, b1, w2});
  CHECK(ops_of(g, before) == "SoftmaxCrossEntropyLossGrad Gemm Gemm ReluGrad ReduceSum Gemm");
  CHECK(str(d[0]) == "f32(4,5)");
  CHECK(str(d[1]) == "f32(5)");
  CHECK(str(d[2]) == "f32(5,3)");
}

TEST_CASE("gradient: broadcast operands get the sum over the axes they were repeated along") {
  struct Row {
    Shape b;
    const char* ops;
  };
  const Row rows[] = {{{2, 3, 4}, "Expand"},           {{4}, "Expand ReduceSum"},
                      {{}, "Expand ReduceSum"},        {{3, 1}, "Expand ReduceSum Reshape"},
                      {{1, 3, 1}, "Expand ReduceSum"}, {{1}, "Expand ReduceSum Reshape"}};
  for (const Row& row : rows) {
    CAPTURE(row.b.str());
    Pair p({2, 3, 4}, row.b);
    CHECK(gradient_ops(p.a + p.b, {p.b}) == row.ops);
  }
  Pair p({2, 1, 4}, {3, 1});
  CHECK(gradient_ops(p.a * p.b, {p.a, p.b}) == "Expand Mul ReduceSum Mul ReduceSum Reshape");
}

TEST_CASE("gradient: arithmetic ops") {
  const Shape s{3};
  Pair add(s, s), sub(s, s), mul(s, s), div(s, s), both(s, s);
  CHECK(gradient_ops(add.a + add.b, {add.a, add.b}) == "Expand");
  CHECK(gradient_ops(sub.a - sub.b, {sub.a, sub.b}) == "Expand Neg");
  CHECK(gradient_ops(mul.a * mul.b, {mul.b}) == "Expand Mul");
  CHECK(gradient_ops(div.a / div.b, {div.a}) == "Expand Div");
  CHECK(gradient_ops(both.a / both.b, {both.a, both.b}) == "Expand Div Mul Neg");
}

TEST_CASE("gradient: elementwise functions use their own op on the result") {
  const Shape s{3};
  Pair p(s, s);
  CHECK(gradient_ops(ops::neg(p.a), {p.a}) == "Expand Neg");
  const Value y = ops::tanh(p.b);
  CHECK(gradient_ops(y, {p.b}) == "Expand TanhGrad");
  CHECK(p.g.nodes().back().inputs[1] == y.id());
  CHECK(gradient_ops(ops::relu(p.a), {p.a}) == "Expand ReluGrad");
  CHECK(gradient_ops(ops::sigmoid(p.a), {p.a}) == "Expand SigmoidGrad");
}

TEST_CASE("gradient: a product of matrices transposes nothing in memory") {
  Pair p({8, 10}, {10, 3});
  CHECK(gradient_ops(ops::matmul(p.a, p.b), {p.a, p.b}) == "Expand Gemm Gemm");
  const auto& da = p.g.nodes()[p.g.nodes().size() - 2].attributes.as<tenon_attributes_gemm>();
  const auto& db = p.g.nodes().back().attributes.as<tenon_attributes_gemm>();
  CHECK((da.trans_a == 0 && da.trans_b == 1));
  CHECK((db.trans_a == 1 && db.trans_b == 0));
}

TEST_CASE("gradient: products of vectors and batches") {
  struct Row {
    Shape a, b;
    const char* ops;
  };
  const Row rows[] = {
      {{10}, {10, 3}, "Expand Reshape Reshape Gemm Gemm Reshape"},
      {{8, 10}, {10}, "Expand Reshape Reshape Gemm Gemm Reshape"},
      {{10}, {10}, "Reshape Reshape Reshape Gemm Gemm Reshape Reshape"},
      {{5, 8, 10}, {10, 3}, "Expand Reshape Gemm Reshape Gemm Reshape"},
      {{5, 8, 10}, {5, 10, 3}, "Expand Transpose MatMul Transpose MatMul"},
      {{8, 10}, {5, 10, 3}, "Expand Transpose MatMul ReduceSum Transpose MatMul"},
      {{5, 1, 8, 10}, {7, 10, 3}, "Expand Transpose MatMul ReduceSum Transpose MatMul ReduceSum"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.a.str());
    CAPTURE(row.b.str());
    Pair p(row.a, row.b);
    CHECK(gradient_ops(ops::matmul(p.a, p.b), {p.a, p.b}) == row.ops);
  }
}

TEST_CASE("gradient: gemm in all its transposes") {
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      Pair p(ta ? Shape{10, 8} : Shape{8, 10}, tb ? Shape{3, 10} : Shape{10, 3});
      const Value y = ops::gemm(p.a, p.b, {}, {.trans_a = ta, .trans_b = tb, .alpha = 2});
      CHECK(gradient_ops(y, {p.a, p.b}) == "Expand Gemm Gemm");
      CHECK(p.g.nodes().back().attributes.as<tenon_attributes_gemm>().alpha == 2);
    }
  }
}

TEST_CASE("gradient: gemm's addend") {
  const auto ops_for = [](double beta, const Shape& shape) {
    Pair p({8, 10}, {10, 3});
    const Value c = p.g.parameter("c", DType::f32, shape);
    return gradient_ops(ops::gemm(p.a, p.b, c, {.beta = beta}), {c});
  };
  CHECK(ops_for(1, {8, 3}) == "Expand");
  CHECK(ops_for(1, {3}) == "Expand ReduceSum");
  CHECK(ops_for(2, {3}) == "Expand ReduceSum Mul");
  CHECK(ops_for(0, {3}) == "Expand Expand");  // not read: zeros
}

TEST_CASE("gradient: reductions broadcast it") {
  struct Row {
    std::vector<std::int64_t> axes;
    bool keepdims;
    const char* sum;
    const char* mean;
  };
  const Row rows[] = {{{}, false, "Expand", "Mul Expand"},
                      {{1}, false, "Expand Reshape Expand", "Expand Mul Reshape Expand"},
                      {{1}, true, "Expand Expand", "Expand Mul Expand"}};
  for (const Row& row : rows) {
    Pair p({4, 5}, {4, 5});
    CHECK(gradient_ops(ops::reduce_sum(p.a, row.axes, row.keepdims), {p.a}) == row.sum);
    CHECK(gradient_ops(ops::reduce_mean(p.b, row.axes, row.keepdims), {p.b}) == row.mean);
  }
  Graph g;
  const Value x = g.parameter("x", DType::f64, {4, 5});
  gradients(ops::reduce_mean(x), {x});
  const NodeInfo& scale = g.nodes()[1];
  CHECK(g.info(scale.inputs[1]).constant.item() == 1.0 / 20);
}

TEST_CASE("gradient: shape ops are inverted") {
  Pair p({2, 3, 4}, {3, 1});
  CHECK(gradient_ops(ops::reshape(p.a, {6, 4}), {p.a}) == "Expand Reshape");
  CHECK(gradient_ops(ops::flatten(p.a), {p.a}) == "Expand Reshape");
  CHECK(gradient_ops(ops::transpose(p.a, {2, 0, 1}), {p.a}) == "Expand Transpose");
  CHECK(axes_of(p.g.nodes().back()) == std::vector<std::int64_t>{1, 2, 0});
  CHECK(gradient_ops(ops::expand(p.b, {2, 3, 4}), {p.b}) == "Expand ReduceSum Reshape");
}

TEST_CASE("gradient: softmax and its logarithm use their own ops with the same axis") {
  Pair p({4, 5}, {4, 5});
  CHECK(gradient_ops(ops::softmax(p.a, 0), {p.a}) == "Expand SoftmaxGrad");
  CHECK(p.g.nodes().back().attributes.as<tenon_attributes_axis>().axis == 0);
  CHECK(gradient_ops(ops::log_softmax(p.b, 1), {p.b}) == "Expand LogSoftmaxGrad");
  CHECK(p.g.nodes().back().attributes.as<tenon_attributes_axis>().axis == 1);
}

TEST_CASE("gradient: softmax_cross_entropy uses the log probabilities of the forward node") {
  Graph g;
  const Value scores = g.parameter("scores", DType::f32, {8, 10}), labels = g.input("labels", DType::i32, {8});
  const Value weights = g.input("weights", DType::f32, {10});
  tenon_attributes_cross_entropy attributes{.reduction = TENON_REDUCTION_MEAN};
  const std::vector<Value> results = g.apply(TENON_OP_SoftmaxCrossEntropyLoss, {scores, labels, weights}, Attributes::of(attributes));
  CHECK(gradient_ops(results[0], {scores}) == "SoftmaxCrossEntropyLossGrad");
  CHECK(g.nodes()[1].inputs[1] == results[1].id());
  CHECK(g.nodes()[1].inputs[3] == weights.id());
  CHECK(g.nodes()[1].attributes == g.nodes()[0].attributes);
  CHECK(gradient_ops(results[1], {scores}) == "Expand LogSoftmaxGrad");
  const Value mixed = results[0] + ops::reduce_sum(results[1]);
  CHECK(gradient_ops(mixed, {scores}) == "Expand SoftmaxCrossEntropyLossGrad LogSoftmaxGrad Add");
  CHECK_ERROR("gradients: SoftmaxCrossEntropyLoss 'softmax_cross_entropy' has none with respect to its weights 'weights'",
              gradients(results[0], {weights}));
}

TEST_CASE("gradient: dropout drops the same elements") {
  Graph g;
  const Value x = g.parameter("x", DType::f32, {8}), key = g.input("key", DType::u64, {2});
  const Value y = ops::dropout(x, key, 0.5, 42);
  CHECK(gradient_ops(y, {x}) == "Expand Dropout");
  CHECK(g.nodes().back().attributes == node_of(y).attributes);
  CHECK(g.nodes().back().inputs[1] == key.id());
}

TEST_CASE("gradient: casts between floats go back, integers pass none on") {
  Graph g;
  const Value x = g.parameter("x", DType::f32, {8});
  CHECK(gradient_ops(ops::cast(x, DType::f64), {x}) == "Expand Cast");
  const std::size_t before = g.nodes().size();
  const Value through_integers = ops::reduce_sum(ops::cast(ops::cast(x, DType::i32), DType::f32));
  const std::vector<Value> d = gradients(through_integers, {x});
  CHECK(ops_of(g, before + 3) == "Expand");
  CHECK(g.info(node_of(d[0]).inputs[0]).constant.item() == 0);
}

TEST_CASE("gradient: without a path it is zeros") {
  Graph g;
  const Value x = g.parameter("x", DType::f32, {3, 4}), s = g.parameter("s", DType::f64, {}), y = g.parameter("y", DType::f32, {2});
  const std::vector<Value> d = gradients(ops::reduce_sum(y), {x, s});
  CHECK(str(d[0]) == "f32(3,4)");
  CHECK(str(d[1]) == "f64()");
  CHECK(g.info(d[1].id()).constant.item() == 0);
}

TEST_CASE("gradient: only nodes between the values and the loss are visited") {
  Graph g;
  const Value x = g.input("x", DType::f32, {3}), w = g.parameter("w", DType::f32, {3});
  const Value loss = ops::reduce_sum(ops::tanh(x) * w);
  ops::sigmoid(w);
  const std::size_t before = g.nodes().size();
  gradients(loss, {w});
  CHECK(ops_of(g, before) == "Expand Mul");
}

TEST_CASE("gradient: several uses of a value add up") {
  Graph g;
  const Value x = g.parameter("x", DType::f32, {3});
  CHECK(gradient_ops(x * x, {x}) == "Expand Mul Mul Add");
  const Value y = ops::tanh(x);
  CHECK(gradient_ops(y + ops::relu(y), {x}) == "Expand ReluGrad Add TanhGrad");
}

TEST_CASE("gradient: by an intermediate value and by the loss itself") {
  Graph g;
  const Value x = g.parameter("x", DType::f32, {3}), y = ops::tanh(x), loss = ops::reduce_sum(y);
  const std::vector<Value> d = gradients(loss, {y, loss, x});
  CHECK(str(d[0]) == "f32(3)");
  CHECK(g.info(d[1].id()).constant.item() == 1);
  CHECK(ops_of(g, 2) == "Expand TanhGrad");
}

TEST_CASE("gradient: nodes are named after the node they belong to and stay on its device") {
  Graph g;
  const Value x = g.parameter("x", DType::f32, {3});
  Value y;
  {
    const DeviceScope device(g, "gpu:1");
    const NameScope name(g, "dense");
    y = ops::tanh(x);
  }
  const Value d = gradients(ops::reduce_sum(y), {x})[0];
  CHECK(node_of(d).name == "gradient/dense/tanh/tanh_grad");
  CHECK(node_of(d).device == "gpu:1");
  CHECK(ops::relu(x).name() == "relu");
}

TEST_CASE("gradient: an invalid loss is reported") {
  Graph g;
  const Value x = g.parameter("x", DType::f32, {3}), n = g.input("n", DType::i64, {});
  CHECK_ERROR("gradients: expected a floating scalar as loss, got 'x' f32(3); use reduce_mean or reduce_sum", gradients(x, {x}));
  CHECK_ERROR_CONTAINS("expected a floating scalar as loss, got 'n' i64()", gradients(n, {x}));
  CHECK_ERROR("gradients: only floating values have gradients, got 'n' i64()", gradients(ops::reduce_sum(x), {n}));
  CHECK_ERROR("gradients: the loss is absent", gradients(Value(), {x}));
  Graph other;
  const Value far = other.parameter("far", DType::f32, {});
  CHECK_ERROR("gradients: 'far' and the loss 'reduce_sum_1' belong to different graphs", gradients(ops::reduce_sum(x), {far}));
}

TEST_CASE("gradient: a path through an op without a gradient is reported") {
  Graph g;
  const Value x = g.parameter("x", DType::f32, {3});
  const Value first = gradients(ops::reduce_sum(ops::tanh(x)), {x})[0];
  CHECK_ERROR("gradients: the path from the loss 'reduce_sum_1' goes through TanhGrad 'gradient/tanh/tanh_grad', an op without a gradient",
              gradients(ops::reduce_sum(first), {x}));
}
