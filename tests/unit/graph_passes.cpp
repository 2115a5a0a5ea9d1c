// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "graph/passes.h"
#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {
struct Bench {
  Graph g;
  Value x = g.input("x", DType::f32, {2, 3});
  Value w = g.parameter("w", DType::f32, {2, 3});
  Value scalar(float value) { return g.constant(Tensor::scalar(value)); }
};

/// The ops of y = f(x) after `pass`.
template <class Function>
std::string left_by(Graph (*pass)(Graph), Function f) {
  Bench t;
  t.g.output("y", f(t));
  return ops_of(pass(t.g));
}
template <class Function>
std::string simplified(Function f) {
  return left_by(graph::simplify, [&](Bench& t) { return ops::neg(f(t)); });  // the Neg keeps the simplified value computed
}
}  // namespace

TEST_CASE_FIXTURE(Bench, "dead code: nodes that no output or update needs are removed, the interface stays") {
  const Value unused = g.input("unused", DType::i64, {5});
  ops::tanh(x);
  scalar(3);
  const Value y = ops::relu(x);
  ops::sigmoid(y);
  g.update(w, ops::add(w, y));
  const Graph after = graph::eliminate_dead_code(g);
  CHECK(ops_of(after) == "Relu Add");
  REQUIRE(after.values().size() == 5);
  CHECK(after.values()[2].name == unused.name());
  CHECK(after.nodes()[0].id == 2);
  CHECK(after.nodes()[1].id == 4);
  CHECK(after.values()[4].producer == 1);
  CHECK(after.updates()[0].value == 4);
  CHECK(ops_of(g) == "Tanh Relu Sigmoid Add");
}

TEST_CASE_FIXTURE(Bench, "dead code: an unread optional result is left out") {
  const Value labels = g.input("labels", DType::i64, {2});
  const Value loss = ops::softmax_cross_entropy(x, labels);
  g.output("loss", loss);
  const Graph inference = graph::eliminate_dead_code(g);
  REQUIRE(inference.nodes().size() == 1);
  CHECK(inference.nodes()[0].outputs == std::vector<ValueId>{3, no_id});
  CHECK(contains(inference.str(), "softmax_cross_entropy:f32(), - = SoftmaxCrossEntropyLoss(x, labels) reduction=mean"));
  g.output("d", gradients(loss, {x})[0]);
  CHECK(graph::eliminate_dead_code(g).nodes()[0].outputs[1] != no_id);
}

TEST_CASE_FIXTURE(Bench, "dead code: a result that is not optional stays with its node") {
  const Value v = g.parameter("v", DType::f32, {2, 3}), lr = g.input("lr", DType::f64, {});
  const std::vector<Value> results = g.apply(TENON_OP_RmsPropStep, {lr, w, x, v}, Attributes::of(tenon_attributes_rmsprop{}));
  g.output("w", results[0]);
  CHECK(graph::eliminate_dead_code(g).nodes()[0].outputs == std::vector<ValueId>{4, 5});
}

TEST_CASE("common subexpressions: equal nodes merge recursively") {
  CHECK(left_by(graph::eliminate_common_subexpressions,
                [](Bench& t) { return ops::add(ops::tanh(ops::mul(t.x, 2.0)), ops::tanh(ops::mul(t.x, 2.0))); }) == "Mul Tanh Add");
}

TEST_CASE_FIXTURE(Bench, "common subexpressions: the first node's id is kept") {
  g.output("y", ops::add(ops::tanh(x), ops::tanh(x)));
  const Graph after = graph::eliminate_common_subexpressions(g);
  CHECK(after.nodes()[0].id == 1);
  CHECK(after.nodes()[1].id == 3);
  CHECK(after.nodes()[1].inputs == std::vector<ValueId>{2, 2});
}

TEST_CASE("common subexpressions: any difference keeps both") {
  const auto kept = [](auto f) {
    Bench t;
    const std::pair<Value, Value> twins = f(t);
    t.g.output("a", twins.first);
    t.g.output("b", twins.second);
    return graph::eliminate_common_subexpressions(t.g).nodes().size() == 2;
  };
  using Twins = std::pair<Value, Value>;
  CHECK(kept([](Bench& t) { return Twins{ops::tanh(t.x), ops::relu(t.x)}; }));
  CHECK(kept([](Bench& t) { return Twins{ops::tanh(t.x), ops::tanh(t.w)}; }));
  CHECK(kept([](Bench& t) { return Twins{ops::softmax(t.x, 0), ops::softmax(t.x, 1)}; }));
  CHECK(kept([](Bench& t) { return Twins{ops::reshape(t.x, {6}), ops::reshape(t.x, {3, 2})}; }));
  CHECK(kept([](Bench& t) { return Twins{ops::mul(t.x, 2.0), ops::mul(t.x, 3.0)}; }));
  CHECK(kept([](Bench& t) { return Twins{ops::mul(t.x, 0.0), ops::mul(t.x, -0.0)}; }));
  CHECK(kept([](Bench& t) {
    const Value here = ops::tanh(t.x);
    const DeviceScope scope(t.g, "gpu:0");
    return Twins{here, ops::tanh(t.x)};
  }));
  CHECK(!kept([](Bench& t) { return Twins{ops::tanh(t.x), ops::tanh(t.x)}; }));
  CHECK(!kept([](Bench& t) { return Twins{ops::softmax(t.x, 1), ops::softmax(t.x, -1)}; }));
}

TEST_CASE_FIXTURE(Bench, "common subexpressions: random values merge by key and stream") {
  const Value key = g.input("key", DType::u64, {2});
  g.output("a", ops::add(ops::dropout(x, key, 0.5, 1), ops::dropout(x, key, 0.5, 1)));
  g.output("b", ops::add(ops::dropout(x, key, 0.5, 1), ops::dropout(x, key, 0.5, 2)));
  g.output("c", ops::random_uniform(key, DType::f32, {3}, 1));
  g.output("d", ops::random_uniform(key, DType::f32, {3}, 1));
  CHECK(ops_of(graph::eliminate_common_subexpressions(g)) == "Dropout Add Dropout Add RandomUniform");
}

TEST_CASE_FIXTURE(Bench, "common subexpressions: updates of two parameters are never merged") {
  const Value v = g.parameter("v", DType::f32, {2, 3});
  g.update(w, ops::tanh(x));
  g.update(v, ops::tanh(x));
  const Graph after = graph::eliminate_common_subexpressions(g);
  CHECK(ops_of(after) == "Tanh Tanh");
  CHECK(after.updates()[0].value != after.updates()[1].value);
}

TEST_CASE("simplify: neutral scalars are removed if no bit changes") {
  CHECK(simplified([](Bench& t) { return ops::mul(t.x, 1.0); }) == "Neg");
  CHECK(simplified([](Bench& t) { return ops::mul(t.scalar(1), t.x); }) == "Neg");
  CHECK(simplified([](Bench& t) { return ops::div(t.x, t.scalar(1)); }) == "Neg");
  CHECK(simplified([](Bench& t) { return ops::add(t.x, -0.0); }) == "Neg");
  CHECK(simplified([](Bench& t) { return ops::sub(t.x, t.scalar(0)); }) == "Neg");
  CHECK(simplified([](Bench& t) { return ops::add(t.x, 0.0); }) == "Add Neg");              // -0 + 0 is 0
  CHECK(simplified([](Bench& t) { return ops::sub(t.x, t.scalar(-0.0f)); }) == "Sub Neg");  // likewise
  CHECK(simplified([](Bench& t) { return ops::div(t.scalar(1), t.x); }) == "Div Neg");
  CHECK(simplified([](Bench& t) { return ops::mul(t.x, 2.0); }) == "Mul Neg");
}

TEST_CASE("simplify: a neutral scalar that changes the shape stays") {
  CHECK(simplified([](Bench& t) { return ops::mul(ops::reduce_sum(t.x), t.g.constant(Tensor::of<float>({1}, {1}))); }) ==
        "ReduceSum Mul Neg");
}

TEST_CASE("simplify: inverse pairs cancel") {
  CHECK(left_by(graph::simplify, [](Bench& t) { return ops::relu(ops::neg(ops::neg(t.x))); }) == "Relu");
  CHECK(simplified([](Bench& t) { return ops::transpose(ops::transpose(t.x)); }) == "Neg");
  CHECK(simplified([](Bench& t) { return ops::transpose(t.x, {0, 1}); }) == "Neg");
  CHECK(simplified([](Bench& t) { return ops::reshape(ops::reshape(t.x, {6}), {2, 3}); }) == "Neg");
  CHECK(simplified([](Bench& t) { return ops::cast(t.x, DType::f32); }) == "Neg");
  CHECK(simplified([](Bench& t) { return ops::expand(t.x, {2, 3}); }) == "Neg");
  CHECK(simplified([](Bench& t) { return ops::flatten(t.x); }) == "Neg");
}

TEST_CASE_FIXTURE(Bench, "simplify: chains of shape ops merge") {
  const Value cube = g.input("cube", DType::f32, {2, 3, 4});
  g.output("t", ops::transpose(ops::transpose(cube, {1, 2, 0}), {1, 2, 0}));
  g.output("r", ops::reshape(ops::reshape(ops::flatten(cube), {24}), {4, 6}));
  const Graph after = graph::simplify(g);
  CHECK(ops_of(after) == "Transpose Reshape");
  CHECK(axes_of(after.nodes()[0]) == std::vector<std::int64_t>{2, 0, 1});
  CHECK(after.nodes()[1].inputs == std::vector<ValueId>{2});
}

TEST_CASE("simplify: an Expand before a broadcast is removed") {
  CHECK(simplified([](Bench& t) { return ops::mul(ops::expand(ops::reduce_sum(t.x, {0}), {2, 3}), t.x); }) == "ReduceSum Mul Neg");
  CHECK(simplified([](Bench& t) {
          const Value wide = ops::expand(t.g.input("s", DType::f32, {}), {2, 3});
          return ops::add(wide, wide);
        }) == "Expand Add Neg");
  // the expansion determines the result's shape
  CHECK(simplified([](Bench& t) { return ops::mul(ops::expand(t.x, {4, 2, 3}), t.w); }) == "Expand Mul Neg");
}

TEST_CASE_FIXTURE(Bench, "simplify: outputs and updates keep separate values") {
  g.output("y", ops::mul(x, 1.0));
  g.update(w, ops::mul(x, 1.0));
  const Graph after = graph::simplify(g);
  CHECK(ops_of(after) == "Mul Mul");
}

TEST_CASE_FIXTURE(Bench, "optimize: the gradient of a mean squared error reduces to its arithmetic") {
  const Value loss = ops::mse(w, x);
  g.output("loss", loss);
  g.output("dw", gradients(loss, {w})[0]);
  CHECK(ops_of(graph::optimize(g)) == "Sub Mul ReduceMean Mul Add");
}

TEST_CASE_FIXTURE(Bench, "optimize: a minimal graph is unchanged") {
  g.output("y", ops::tanh(ops::add(x, w)));
  const std::string before = g.str();
  const Graph once = graph::optimize(g);
  CHECK(once.str() == before);
  CHECK(graph::optimize(once).str() == before);
}

TEST_CASE_FIXTURE(Bench, "optimize: a graph can be extended afterwards, names and ids stay unique") {
  g.output("y", ops::tanh(x));
  Graph after = graph::optimize(g);
  const Value more = ops::tanh(Value(&after, 1));
  CHECK(more.name() == "tanh_1");
  CHECK(after.nodes()[1].id == 2);
}
