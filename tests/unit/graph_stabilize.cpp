// SPDX-License-Identifier: Apache-2.0
// Expressions that lose precision are rewritten in a stable form.
#include <doctest/doctest.h>

#include "graph/passes.h"
#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

struct Bench {
  Graph g;
  Value x = g.input("x", DType::f64, {2, 3});
  Value scalar(double value) { return g.constant(Tensor::scalar(value)); }
};

template <class Function>
std::string stabilized(Function f) {
  Bench t;
  t.g.output("y", f(t));
  return ops_of(graph::stabilize(t.g));
}

}  // namespace

TEST_CASE("stabilize: each listed expression becomes its stable form") {
  CHECK(stabilized([](Bench& t) { return ops::log(ops::add(t.x, 1)); }) == "Log1p");
  CHECK(stabilized([](Bench& t) { return ops::log(ops::add(t.scalar(1), t.x)); }) == "Log1p");
  CHECK(stabilized([](Bench& t) { return ops::sub(ops::exp(t.x), t.scalar(1)); }) == "Expm1");
  CHECK(stabilized([](Bench& t) { return ops::add(ops::exp(t.x), -1); }) == "Expm1");
  CHECK(stabilized([](Bench& t) { return ops::sub(t.scalar(1), ops::sigmoid(t.x)); }) == "Neg Sigmoid");
  CHECK(stabilized([](Bench& t) { return ops::log(ops::sigmoid(t.x)); }) == "Neg Softplus Neg");
  CHECK(stabilized([](Bench& t) { return ops::log1p(ops::exp(t.x)); }) == "Softplus");
  CHECK(stabilized([](Bench& t) { return ops::log(ops::add(ops::exp(t.x), 1)); }) == "Softplus");
  CHECK(stabilized([](Bench& t) { return ops::log(ops::softmax(t.x, 0)); }) == "LogSoftmax");
}

TEST_CASE("stabilize: similar expressions are unchanged") {
  CHECK(stabilized([](Bench& t) { return ops::log(ops::add(t.x, 2)); }) == "Add Log");
  CHECK(stabilized([](Bench& t) { return ops::sub(t.scalar(1), ops::exp(t.x)); }) == "Exp Sub");
  CHECK(stabilized([](Bench& t) { return ops::sub(ops::sigmoid(t.x), t.scalar(1)); }) == "Sigmoid Sub");
  // the 1 determines the shape of the sum, which is not that of x
  CHECK(stabilized([](Bench& t) {
          const Value one = t.g.constant(Tensor::of<double>({1}, {1, 1, 1}));
          return ops::log(ops::add(t.x, one));
        }) == "Add Log");
}

TEST_CASE_FIXTURE(Bench, "stabilize: the axis is kept, and values with other readers stay") {
  const Value p = ops::softmax(x, 0);
  g.output("p", p);
  g.output("log_p", ops::log(p));
  const Graph after = graph::stabilize(g);
  CHECK(ops_of(after) == "Softmax LogSoftmax");
  CHECK(after.nodes()[1].attributes.as<tenon_attributes_axis>().axis == 0);
}

TEST_CASE_FIXTURE(Bench, "stabilize: values keep their meaning and nodes their order") {
  const Value s = ops::sigmoid(x);
  const Value y = ops::log(s);
  const Value z = ops::relu(y);
  graph::stabilize_in_place(g);
  CHECK(ops_of(g) == "Sigmoid Neg Softplus Neg Relu");
  CHECK(node_of(y).op == TENON_OP_Neg);
  CHECK(node_of(z).op == TENON_OP_Relu);
  CHECK(node_of(s).op == TENON_OP_Sigmoid);
  for (NodeId n = 0; n < g.nodes().size(); ++n) {
    for (const ValueId v : g.nodes()[n].outputs) CHECK(g.info(v).producer == n);
  }
}

TEST_CASE_FIXTURE(Bench, "stabilize: gradients are those of the stable form") {
  const Value loss = ops::reduce_sum(ops::log(ops::softmax(x)));
  gradients(loss, {x});
  CHECK_FALSE(contains(ops_of(g), "Log "));
  CHECK(contains(ops_of(g), "LogSoftmaxGrad"));
  CHECK_FALSE(contains(ops_of(g), "Div"));
}

// ---------------------------------------------------------------- constants

TEST_CASE("fold: nodes that depend only on constants are evaluated once and become constants") {
  Bench t;
  const Value two = ops::add(t.scalar(1), t.scalar(1));
  const Value four = ops::mul(two, two);
  t.g.output("y", ops::mul(t.x, four));
  int calls = 0;
  const Graph after = graph::fold_constants(t.g, [&](const Graph& constants) {
    ++calls;
    CHECK(ops_of(constants) == "Add Mul");
    CHECK(constants.outputs().size() == 1);
    return std::vector<Tensor>{Tensor::scalar(4.0)};
  });
  CHECK(calls == 1);
  CHECK(ops_of(after) == "Mul");
  const ValueInfo& constant = after.info(after.nodes()[0].inputs[1]);
  REQUIRE(constant.kind == ValueKind::constant);
  CHECK(constant.constant.item() == 4.0);
}

TEST_CASE_FIXTURE(Bench, "fold: outputs, updates, and large results of small constants are not folded") {
  const Value w = g.parameter("w", DType::f64, {});
  const Value two = ops::add(scalar(1), scalar(1));
  g.output("two", two);
  g.update(w, ops::neg(scalar(3)));
  g.output("y", ops::mul(ops::expand(scalar(5), {300, 300}), ops::reduce_sum(x)));
  const Graph after = graph::fold_constants(g, [&](const Graph&) -> std::vector<Tensor> {
    FAIL("nothing to fold");
    return {};
  });
  CHECK(ops_of(after) == ops_of(g));
}

TEST_CASE_FIXTURE(Bench, "fold: an evaluated value of another type than the graph's is rejected") {
  g.output("y", ops::mul(x, ops::neg(scalar(1))));
  const std::string text =
      message_of([&] { graph::fold_constants(g, [](const Graph&) { return std::vector<Tensor>{Tensor::scalar(1.0f)}; }); });
  CHECK(contains(text, "f32()"));
}

// ---------------------------------------------------------------- dumps

TEST_CASE("dump: DOT has op, attributes, device and bytes, and escapes names") {
  Graph g;
  const Value x = g.input("the \"x\"", DType::f32, {2, 3});
  const Value w = g.parameter("w", DType::f32, {3});
  g.set_device("cpu:1");
  const Value y = ops::reduce_sum(ops::mul(x, w), {1});
  g.output("y", y);
  const std::string dot = to_dot(g, {{"mul", "openblas:0"}});
  CHECK(contains(dot, "label=\"input the \\\"x\\\"\\nf32(2,3)\""));
  CHECK(contains(dot, "label=\"Mul\\nmul\\n@openblas:0\\n24 bytes\""));
  CHECK(contains(dot, "label=\"ReduceSum axes=(1)\\nreduce_sum\\n@cpu:1\\n8 bytes\""));
  CHECK(contains(dot, "n0 -> n1 [label=\"f32(2,3)\"]"));
  CHECK(contains(dot, "n1 -> o0 [label=\"f32(2)\"]"));
}

TEST_CASE("dump: JSON has every value with dtype, shape and bytes, and every node with its device") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2, 3});
  const Value w = g.parameter("w", DType::f32, {2, 3});
  g.update(w, ops::sub(w, x));
  const std::string json = to_json(g, {{"sub", "reference:0"}});
  for (const char* part : {"\"name\": \"w\"", "\"kind\": \"parameter\"", "\"dtype\": \"f32\"", "\"bytes\": 24", "\"op\": \"Sub\"",
                           "\"device\": \"reference:0\"", "\"parameter\": 1", "\"output_bytes\": 24"}) {
    CAPTURE(part);
    CHECK(contains(json, part));
  }
}
