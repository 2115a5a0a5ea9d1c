// SPDX-License-Identifier: Apache-2.0
// Expressions of exported models become rotary embeddings, and transposes meet.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "patterns_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// x cos + rotate_half(x) sin with angles of two halves, x (2,3,5,8).
Value rotated(Graph& g, const std::function<Value(Value first, Value second)>& join, const Shape& table, bool by_split = false,
              double sign = -1) {
  const Value x = g.input("x", DType::f32, {2, 3, 5, 8});
  const Value angles = g.input("angles", DType::f32, {5, 4}), others = g.input("others", DType::f32, {5, 4});
  const Value both = join(angles, others);
  const Value cosines = ops::reshape(ops::cos(both), table), sines = ops::reshape(ops::sin(both) * 1.0, table);
  const std::vector<Value> halves =
      by_split ? ops::split(x, {4, 4}, 3) : std::vector<Value>{ops::slice(x, 3, 0, 4), ops::slice(x, 3, 4, 8)};
  return x * cosines + ops::concat({halves[1] * sign, halves[0]}, 3) * sines;
}

Value twice(Value first, Value) {
  return ops::concat({first, first}, 1);
}

}  // namespace

TEST_CASE("patterns: rotary embedding with cosines and sines of equal halves") {
  for (const bool by_split : {false, true}) {
    CAPTURE(by_split);
    for (const Shape& table : {Shape{5, 8}, Shape{1, 1, 5, 8}}) {
      CAPTURE(table.str());
      CHECK(found_in([&](Graph& g) { return rotated(g, twice, table, by_split); }) == "RotaryEmbedding 1");
    }
  }
  // constants are compared
  const auto by_table = [](const Tensor& table) {
    return found_in([&](Graph& g) {
      const Value x = g.input("x", DType::f32, {3, 2, 4});
      const Value turned = ops::concat({-ops::slice(x, 2, 2, 4), ops::slice(x, 2, 0, 2)}, 2);
      return x * g.constant(table) + turned * g.constant(table);
    });
  };
  CHECK(by_table(Tensor::of<float>({1, 2, 1, 2, 3, 4, 3, 4}, {2, 4})) == "RotaryEmbedding 1");
  CHECK(by_table(Tensor::of<float>({1, 2, 1, 2, 3, 4, 3, 5}, {2, 4})) == "nothing");
}

TEST_CASE("patterns: what only looks like a rotary embedding stays") {
  const auto joined = [](Value first, Value second) { return ops::concat({first, second}, 1); };
  CHECK(found_in([&](Graph& g) { return rotated(g, joined, {5, 8}); }) == "nothing");
  CHECK(found_in([&](Graph& g) { return rotated(g, twice, {5, 8}, false, 1); }) == "nothing");
  // parameters may be anything
  CHECK(found_in([](Graph& g) {
          const Value x = g.input("x", DType::f32, {2, 5, 8}), cosines = parameter(g, "cos", {5, 8}), sines = parameter(g, "sin", {5, 8});
          return x * cosines + ops::concat({-ops::slice(x, 2, 4, 8), ops::slice(x, 2, 0, 4)}, 2) * sines;
        }) == "nothing");
}

TEST_CASE("patterns: pairs of transposes cancel or become one, through elementwise ops too") {
  CHECK(recognition_of(of_x([](Value x) {
          return ops::transpose(ops::relu(ops::transpose(x, {0, 2, 1}) * 2.0), {0, 2, 1});
        })).ops == "Mul Relu");
  CHECK(recognition_of(of_x([](Value x) { return ops::relu(ops::transpose(ops::transpose(x, {1, 2, 0}), {2, 0, 1})); })).ops == "Relu");
  const Recognition joined = recognition_of(of_x([](Value x) {
    return ops::transpose(ops::tanh(ops::transpose(x, {1, 2, 0})), {1, 2, 0});
  }));
  CHECK(joined.ops == "Tanh Transpose");
  CHECK(axes_of(joined.graph.nodes()[1]) == std::vector<std::int64_t>{2, 0, 1});
  // a residual: both operands are transposed
  CHECK(recognition_of([](Graph& g) {
          const Value a = ops::transpose(g.input("a", DType::f32, {2, 3, 4}), {0, 2, 1});
          const Value b = ops::transpose(g.input("b", DType::f32, {2, 3, 4}), {0, 2, 1});
          const Value sum = a + b;
          return ops::transpose(ops::clip(sum * ops::sigmoid(b), 0, 6), {0, 2, 1});
        }).ops == "Add Sigmoid Mul Clip");
}

TEST_CASE("patterns: transposes that do not meet stay") {
  const auto kept = [](const Build& build) { return found_in(build) == "nothing"; };
  // only one operand is transposed
  CHECK(kept([](Graph& g) {
    const Value a = ops::transpose(g.input("a", DType::f32, {2, 3, 4}), {0, 2, 1}), b = g.input("b", DType::f32, {2, 4, 3});
    return ops::transpose(a + b, {0, 2, 1});
  }));
  // two permutations
  CHECK(kept([](Graph& g) {
    const Value a = ops::transpose(g.input("a", DType::f32, {2, 2, 2}), {0, 2, 1});
    const Value b = ops::transpose(g.input("b", DType::f32, {2, 2, 2}), {1, 0, 2});
    return ops::transpose(a + b, {0, 2, 1});
  }));
  // a vector along the last dimension, which another dimension becomes
  CHECK(kept([](Graph& g) {
    const Value a = ops::transpose(g.input("a", DType::f32, {2, 3, 4}), {0, 2, 1});
    return ops::transpose(a + parameter(g, "b", {3}), {0, 2, 1});
  }));
  // no elementwise op
  CHECK(kept(of_x([](Value x) { return ops::transpose(ops::softmax(ops::transpose(x, {0, 2, 1})), {0, 2, 1}); })));
  // the inner value is read elsewhere
  Graph g;
  const Value inner = ops::relu(ops::transpose(g.input("x", DType::f32, {2, 3}), {1, 0}));
  g.output("y", ops::transpose(inner, {1, 0}));
  g.output("inner", inner);
  CHECK(recognition_of(g).found == "nothing");
  // the pair does not cancel, and the first transpose has other readers
  Graph h;
  const Value turned = ops::transpose(h.input("x", DType::f32, {2, 3, 4}), {1, 2, 0});
  h.output("y", ops::transpose(ops::tanh(turned), {1, 2, 0}));
  h.output("turned", ops::relu(turned));
  CHECK(recognition_of(h).found == "nothing");
}
