// SPDX-License-Identifier: Apache-2.0
// What is removed from an inference graph: batch norms after convolutions, and everything that depends only on parameters.
#include <doctest/doctest.h>

#include <set>
#include <string>

#include "graph/passes.h"
#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// A convolution followed by a batch norm.
struct Block {
  Graph g;
  Value x = g.input("x", DType::f32, {1, 2, 5, 5});
  Value w = g.parameter("w", DType::f32, {4, 2, 3, 3});
  Value scale = g.parameter("scale", DType::f32, {4});
  Value bias = g.parameter("bias", DType::f32, {4});
  Value mean = g.parameter("mean", DType::f32, {4});
  Value variance = g.parameter("variance", DType::f32, {4});
  Value norm(Value of) { return ops::batch_norm(of, scale, bias, mean, variance); }
};

constexpr const char* without_bias = "Add Sqrt Div Reshape Mul Neg Mul Add Conv";

}  // namespace

TEST_CASE("batch norm folding: the convolution takes over scale and shift, and keeps its name") {
  Block t;
  const Value conv = ops::conv(t.x, t.w);
  t.g.output("y", ops::relu(t.norm(conv)));
  const Graph after = graph::fold_batch_norm(t.g);
  CHECK(ops_of(after) == std::string(without_bias) + " Relu");
  CHECK(after.nodes()[8].name == conv.name());
  CHECK(after.nodes()[8].inputs.size() == 3);

  Block biased;
  const Value b = biased.g.parameter("b", DType::f32, {4});
  biased.g.output("y", biased.norm(ops::conv(biased.x, biased.w, b)));
  CHECK(ops_of(graph::fold_batch_norm(biased.g)) == "Add Sqrt Div Reshape Mul Sub Mul Add Conv");
}

TEST_CASE_FIXTURE(Block, "batch norm folding: a second batch norm follows the first") {
  g.output("y", norm(norm(ops::conv(x, w))));
  const Graph after = graph::fold_batch_norm(g);
  CHECK_FALSE(contains(ops_of(after), "BatchNormalization"));
  CHECK(ops_of(after).rfind("Conv") == ops_of(after).size() - 4);
}

TEST_CASE("batch norm folding: other readers of the convolution, operands that change each run, and updates prevent it") {
  const auto stays = [](auto build) {
    Block t;
    build(t);
    return ops_of(graph::fold_batch_norm(t.g)).find("BatchNormalization") != std::string::npos;
  };
  CHECK(stays([](Block& t) {
    const Value conv = ops::conv(t.x, t.w);
    t.g.output("y", ops::add(t.norm(conv), conv));
  }));
  CHECK(stays([](Block& t) {
    const Value conv = ops::conv(t.x, t.w);
    t.g.output("conv", conv);
    t.g.output("y", t.norm(conv));
  }));
  CHECK(stays([](Block& t) {
    const Value w = t.g.input("other weights", DType::f32, {4, 2, 3, 3});
    t.g.output("y", t.norm(ops::conv(t.x, w)));
  }));
  CHECK(stays([](Block& t) {
    t.g.output("y", t.norm(ops::conv(t.x, t.w)));
    t.g.update(t.mean, ops::neg(t.mean));
  }));
  CHECK(stays([](Block& t) {
    t.g.output("y", t.norm(ops::conv(t.x, t.w)));
    t.g.update(t.g.parameter("other", DType::f32, {4}), ops::neg(t.mean));
  }));
  CHECK(stays([](Block& t) { t.g.output("y", t.norm(ops::relu(ops::conv(t.x, t.w)))); }));
  CHECK(stays([](Block& t) {
    const Value conv = ops::conv(t.x, t.w);
    const DeviceScope elsewhere(t.g, "reference:0");
    t.g.output("y", t.norm(conv));
  }));
}

TEST_CASE_FIXTURE(Block, "hoisting: nodes that depend only on parameters move to the prologue, and their results become parameters") {
  g.output("y", norm(ops::conv(x, w)));
  const graph::Hoisted parts = graph::hoist(graph::optimize(g));
  CHECK(ops_of(parts.main) == "Conv");
  CHECK(ops_of(parts.prologue) == "Add Sqrt Div Reshape Mul Neg Mul Add");
  REQUIRE(parts.prologue.outputs().size() == 2);
  for (const GraphOutput& output : parts.prologue.outputs()) {
    std::size_t found = 0;
    for (const ValueInfo& value : parts.main.values()) {
      if (value.name != output.name) continue;
      ++found;
      CHECK(value.kind == ValueKind::parameter);
      CHECK(value.shape == parts.prologue.info(output.value).shape);
    }
    CHECK(found == 1);
  }
  for (const ValueInfo& value : parts.prologue.values()) CHECK(value.kind != ValueKind::input);
}

TEST_CASE("hoisting: views, outputs, values that grow, and graphs with updates or without inputs stay") {
  const auto hoisted = [](auto build) {
    Graph g;
    const Value x = g.input("x", DType::f32, {300, 300}), p = g.parameter("p", DType::f32, {300, 300});
    build(g, x, p);
    return ops_of(graph::hoist(g).prologue);
  };
  CHECK(hoisted([](Graph& g, Value x, Value p) { g.output("y", ops::add(x, ops::transpose(p))); }).empty());
  CHECK(hoisted([](Graph& g, Value x, Value p) { g.output("y", ops::add(x, ops::neg(ops::transpose(p)))); }) == "Transpose Neg");
  CHECK(hoisted([](Graph& g, Value x, Value p) { g.output("y", ops::add(x, ops::transpose(ops::neg(p)))); }) == "Neg");
  CHECK(hoisted([](Graph& g, Value x, Value p) {
          g.output("n", ops::neg(p));
          g.output("y", ops::relu(x));
        }).empty());
  CHECK(hoisted([](Graph& g, Value x, Value) {
          const Value row = g.parameter("row", DType::f32, {1, 300});
          g.output("y", ops::add(x, ops::neg(ops::expand(row, {300, 300}))));
        }).empty());
  CHECK(hoisted([](Graph& g, Value x, Value p) {
          g.output("y", ops::add(x, ops::neg(p)));
          g.update(p, ops::relu(p));
        }).empty());
  Graph only_parameters;
  only_parameters.output("y", ops::relu(ops::neg(only_parameters.parameter("p", DType::f32, {3}))));
  CHECK(ops_of(graph::hoist(only_parameters).prologue).empty());
  CHECK(ops_of(graph::hoist(only_parameters).main) == "Neg Relu");
}

TEST_CASE("hoisting: weights of i8 are dequantised once, though the result is four times as large") {
  Graph g;
  const Value x = g.input("x", DType::f32, {1, 300}), q = g.constant(Tensor::zeros(DType::i8, {300, 300}));
  const Value scale = g.parameter("scale", DType::f32, {300});
  g.output("y", ops::matmul(x, ops::dequantize_linear(q, scale)));
  const graph::Hoisted hoisted = graph::hoist(g);
  CHECK(ops_of(hoisted.prologue) == "DequantizeLinear");
  CHECK(ops_of(hoisted.main) == "MatMul");
}

TEST_CASE_FIXTURE(Block, "batch norm folding and hoisting: beside updates, for fixed parameters alone") {
  const Value head = g.parameter("head", DType::f32, {4});
  const Value means = ops::reduce_mean(norm(ops::conv(x, w)), {0, 2, 3});
  const Value y = ops::mul(means, ops::neg(head));
  g.output("y", y);
  g.update(head, ops::sub(head, y));
  const std::set<std::string> fixed{"w", "scale", "bias", "mean", "variance"};
  const graph::Hoisted parts = graph::hoist(graph::optimize(g, fixed), fixed);
  CHECK(ops_of(parts.prologue) == "Add Sqrt Div Reshape Mul Neg Mul Add");
  CHECK(ops_of(parts.main) == "Conv ReduceMean Neg Mul Sub");
  REQUIRE(parts.main.updates().size() == 1);

  const std::set<std::string> all_but_mean{"w", "scale", "bias", "variance"};
  const graph::Hoisted unfolded = graph::hoist(graph::optimize(g, all_but_mean), all_but_mean);
  CHECK(ops_of(unfolded.main) == "Conv BatchNormalization ReduceMean Neg Mul Sub");
  CHECK(unfolded.prologue.outputs().empty());
}

TEST_CASE("hoisting: a fixed parameter that the graph updates all the same, and new values of parameters stay") {
  Graph g;
  const Value x = g.input("x", DType::f32, {3}), p = g.parameter("p", DType::f32, {3}), q = g.parameter("q", DType::f32, {3});
  g.output("y", ops::add(x, ops::neg(p)));
  g.update(p, ops::exp(q));
  CHECK(graph::hoist(g, {"p", "q"}).prologue.outputs().empty());
}
