// SPDX-License-Identifier: Apache-2.0
// Expressions of exported models become activations.
#include <cmath>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include "patterns_testing.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("patterns: every grouping of GELU is found") {
  const double root = std::sqrt(2.0);
  const std::vector<Function> forms = {
      [=](Value x) { return x * (ops::erf(x / root) + 1) * 0.5; },                  // PyTorch
      [=](Value x) { return 0.5 * x * (1 + ops::erf(x / root)); },                  // Keras
      [=](Value x) { return x * (0.5 * (ops::erf(x * (1 / root)) + 1)); },          // Paddle
      [=](Value x) { return (x / 2) * (1 + ops::erf(x / exactly(x, root))); },      //
      [=](Value x) { return x * (0.5 * ops::erf(x * std::sqrt(0.5)) + 0.5); },      //
      [=](Value x) { return ops::mul(ops::add(ops::erf(x / root), 1), x * 0.5); },  //
      [=](Value x) { return ops::neg(x * (ops::erf(x / root) + 1)) * -0.5; },       //
      [=](Value x) { return x * (ops::erf(x / 1.41421) - exactly(x, -1)) * 0.5; },  // six digits
      [=](Value x) {
        return ops::reshape(x, {2, 3, 8}) * (ops::erf(x / root) + 1) / 2;
      },
      [=](Value x) {
        return x * (ops::cast(ops::erf(x / root), DType::f32) + x.graph().constant(Tensor::full(DType::f32, {2, 3, 8}, 1))) * 0.5;
      },
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    CAPTURE(i);
    const Recognition found = recognition_of(of_x(forms[i]));
    CHECK(found.found == "Gelu 1");
    CHECK(found.ops == "Gelu");
    CHECK(found.graph.nodes()[0].attributes.as<tenon_attributes_gelu>().approximate_tanh == 0);
  }
}

TEST_CASE("patterns: every grouping of GELU by tanh is found") {
  const double scale = std::sqrt(2 / std::numbers::pi), cubic = 0.044715;
  const std::vector<Function> forms = {
      [=](Value x) { return 0.5 * x * (1 + ops::tanh(scale * (x + cubic * ops::pow(x, 3)))); },
      [=](Value x) { return x * 0.5 * (ops::tanh((x + ops::cube(x) * cubic) * 0.7978845608) + 1); },
      [=](Value x) { return x * (0.5 * ops::tanh(scale * x + scale * cubic * ops::cube(x)) + 0.5); },
      [=](Value x) { return 0.5 * (x * (1 + ops::tanh(scale * x * (1 + cubic * x * x)))); },
      [=](Value x) { return 0.5 * (x * (1 + ops::tanh(x * scale * (1 + cubic * ops::pow(x, 2))))); },
  };
  for (std::size_t i = 0; i < forms.size(); ++i) {
    CAPTURE(i);
    const Recognition found = recognition_of(of_x(forms[i]));
    CHECK(found.ops == "Gelu");
    CHECK(found.graph.nodes()[0].attributes.as<tenon_attributes_gelu>().approximate_tanh == 1);
  }
}

TEST_CASE("patterns: SiLU, Mish and softmax") {
  CHECK(recognition_of(of_x([](Value x) { return x * ops::sigmoid(x); })).ops == "Silu");
  CHECK(recognition_of(of_x([](Value x) { return ops::sigmoid(x) * x; })).ops == "Silu");
  CHECK(recognition_of(of_x([](Value x) { return x / (1 + ops::exp(-x)); })).ops == "Silu");
  CHECK(recognition_of(of_x([](Value x) { return x * ops::tanh(ops::softplus(x)); })).ops == "Mish");
  CHECK(recognition_of(of_x([](Value x) { return ops::tanh(ops::log(ops::exp(x) + 1)) * x; })).ops == "Mish");
  CHECK(recognition_of(of_x([](Value x) { return ops::tanh(ops::log1p(ops::exp(x))) * x; })).ops == "Mish");
  const Recognition softmax = recognition_of(of_x([](Value x) {
    const Value e = ops::exp(x - ops::reduce_max(x, {1}, true));
    return e / ops::reduce_sum(e, {1}, true);
  }));
  CHECK(softmax.ops == "Softmax");
  CHECK(softmax.graph.nodes()[0].attributes.as<tenon_attributes_axis>().axis == 1);
}

TEST_CASE("patterns: what only looks like an activation stays") {
  const double root = std::sqrt(2.0);
  const std::vector<Function> others = {
      [=](Value x) { return x * (ops::erf(x / 1.5) + 1) * 0.5; },                // another deviation
      [=](Value x) { return x * (ops::erf(x / root) + 1) * 0.25; },              // another factor
      [=](Value x) { return x * (ops::erf(x / root) + 2) * 0.5; },               // another term
      [=](Value x) { return x * (ops::erf(ops::neg(x) / root) + 1) * 0.5; },     // another sign
      [=](Value x) { return ops::tanh(x) * (ops::erf(x / root) + 1) * 0.5; },    // two operands
      [=](Value x) { return ops::square(x) * (ops::erf(x / root) + 1) * 0.5; },  //
      [=](Value x) { return 0.5 * x * (1 + ops::tanh(0.8 * (x + 0.044715 * ops::cube(x)))); },
      [=](Value x) { return x * ops::sigmoid(x * 1.702); },
      [=](Value x) { return x / ops::sigmoid(x); },
      [=](Value x) { return x * ops::tanh(ops::softplus(ops::abs(x))); },
      // the constant determines the shape
      [=](Value x) {
        return x * (ops::erf(x / root) + 1) * x.graph().constant(Tensor::full(DType::f32, {1, 1, 1, 1}, 0.5));
      },
      [=](Value x) {
        const Value e = ops::exp(x - ops::reduce_max(x, {1}, true));
        return e / ops::reduce_sum(e, {2}, true);
      },
  };
  for (std::size_t i = 0; i < others.size(); ++i) {
    CAPTURE(i);
    CHECK(found_in(of_x(others[i])) == "nothing");
  }
}

TEST_CASE("patterns: an inner value that is read elsewhere keeps the expression") {
  Graph g;
  const Value x = g.input("x", DType::f32, {4});
  const Value sum = ops::erf(x * std::sqrt(0.5)) + 1;
  g.output("y", 0.5 * x * sum);
  g.output("sum", sum);
  CHECK(recognition_of(g).found == "nothing");

  Graph twice;
  const Value z = twice.input("x", DType::f32, {4});
  const Value s = ops::sigmoid(z);
  twice.output("y", (z * s) * (s + 1));
  CHECK(recognition_of(twice).found == "nothing");
}

TEST_CASE(
    "patterns: inner nodes on another device keep the expression; the replacement has theirs, and a name below that of the last one") {
  Graph g;
  const Value x = g.input("x", DType::f32, {4});
  const Value s = ops::sigmoid(x);
  g.set_device("reference:0");
  g.output("y", x * s);
  CHECK(recognition_of(g).found == "nothing");

  Graph one;
  const Value z = one.input("x", DType::f32, {4});
  one.set_device("reference:0");
  const Value y = z * ops::sigmoid(z);
  one.set_device("");
  one.output("y", ops::relu(y));
  const Graph after = recognition_of(one).graph;
  REQUIRE(ops_of(after) == "Silu Relu");
  CHECK(after.nodes()[0].device == "reference:0");
  CHECK(after.nodes()[0].name == y.name() + "/silu");
  CHECK(after.nodes()[1].id == one.nodes()[2].id);
  CHECK(after.outputs()[0].name == "y");
}

TEST_CASE("patterns: results that are outputs are replaced, those that are updates stay") {
  Graph g;
  const Value x = g.input("x", DType::f32, {4});
  const Value w = g.parameter("w", DType::f32, {4});
  g.update(w, x * ops::sigmoid(x));
  const Graph after = graph::recognize_patterns(g);
  CHECK(ops_of(after) == "Sigmoid Mul");
}

TEST_CASE("patterns: counts add up and are printed in order of names") {
  Graph g;
  const Value x = g.input("x", DType::f32, {4});
  g.output("y", ops::sigmoid(x) * x);
  g.output("z", x * ops::tanh(ops::softplus(x)));
  graph::PatternCounts counts;
  CHECK(graph::str(counts) == "recognized: nothing");
  graph::recognize_patterns(g, &counts);
  graph::recognize_patterns(g, &counts);
  CHECK(graph::str(counts) == "recognized: Mish 2, Silu 2");
}
