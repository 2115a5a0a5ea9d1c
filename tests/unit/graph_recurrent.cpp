// SPDX-License-Identifier: Apache-2.0
// Shapes and errors of recurrent layers.
#include <doctest/doctest.h>

#include "graph/passes.h"
#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// 5 steps of 3 sequences of 4 features; 2 units.
struct Layer {
  Graph g;
  Value x = g.input("x", DType::f32, {5, 3, 4});

  Value of(const char* name, const Shape& shape) { return g.input(name, DType::f32, shape); }
  ops::RecurrentValues values(std::int64_t directions, std::int64_t gates) {
    return {of("w", {directions, gates * 2, 4}), of("r", {directions, gates * 2, 2}), of("b", {directions, gates * 4}),
            of("h0", {directions, 3, 2}), of("c0", {directions, 3, 2})};
  }
};

}  // namespace

TEST_CASE("recurrent: results are the states of every step and the last of each direction") {
  for (const bool both : {false, true}) {
    Layer layer;
    const std::int64_t d = both ? 2 : 1;
    const ops::RecurrentResult lstm = ops::lstm(layer.x, layer.values(d, 4), both ? ops::Direction::both : ops::Direction::reverse);
    CHECK(lstm.y.shape() == Shape{5, d, 3, 2});
    CHECK(lstm.h.shape() == Shape{d, 3, 2});
    CHECK(lstm.c.shape() == Shape{d, 3, 2});
  }
  Layer layer;
  const Value w = layer.of("w", {1, 6, 4}), r = layer.of("r", {1, 6, 2});
  const ops::RecurrentResult gru = ops::gru(layer.x, {w, r, {}, {}, {}});
  CHECK(str(gru.y) == "f32(5,1,3,2)");
  CHECK(str(gru.h) == "f32(1,3,2)");
  CHECK(!gru.c.present());
}

TEST_CASE_FIXTURE(Layer, "recurrent: an empty sequence is rejected") {
  const Value none = of("none", {0, 3, 4});
  CHECK_ERROR("lstm 'lstm': expected a sequence length of 1 or more, got x f32(0,3,4)", ops::lstm(none, values(1, 4)));
}

TEST_CASE_FIXTURE(Layer, "recurrent: mismatched gates and units are reported") {
  const Value three_gates = of("three", {1, 6, 2}), four_gates = of("four", {1, 8, 2});
  const Value w = of("w", {1, 8, 4}), wide = of("wide", {1, 8, 7});
  CHECK_ERROR("lstm 'lstm': expected r of shape (directions, 4 units, units), got r f32(1,6,2)",
              ops::lstm(x, {w, three_gates, {}, {}, {}}));
  CHECK_ERROR("gru 'gru': expected r of shape (directions, 3 units, units), got r f32(1,8,2)", ops::gru(x, {w, four_gates, {}, {}, {}}));
  CHECK_ERROR("rnn 'rnn': expected r of shape (directions, units, units), got r f32(1,8,2)", ops::rnn(x, {w, four_gates, {}, {}, {}}));
  CHECK_ERROR("lstm 'lstm': expected w of shape (1,8,4) for x f32(5,3,4) and r f32(1,8,2), got w f32(1,8,7)",
              ops::lstm(x, {wide, four_gates, {}, {}, {}}));
  CHECK_ERROR("lstm 'lstm': expected b of shape (1,16) for r f32(1,8,2), got b f32(1,8)",
              ops::lstm(x, {w, four_gates, of("short", {1, 8}), {}, {}}));
  CHECK_ERROR("lstm 'lstm': expected c0 of shape (1,3,2) for x f32(5,3,4), got c0 f32(1,4,2)",
              ops::lstm(x, {w, four_gates, {}, {}, of("c0", {1, 4, 2})}));
  CHECK_ERROR("lstm 'lstm': expected 3 to 6 operands, got 2", ops::lstm(x, {w, {}, {}, {}, {}}));
}

TEST_CASE("recurrent: weights have the number of directions of the layer") {
  Layer layer;
  const ops::RecurrentValues one = layer.values(1, 4);
  CHECK_ERROR("lstm 'lstm': direction both expects 2 directions, got r f32(1,8,2)", ops::lstm(layer.x, one, ops::Direction::both));
  Layer other;
  const ops::RecurrentValues two = other.values(2, 4);
  CHECK_ERROR("lstm 'lstm': direction reverse expects 1 direction, got r f32(2,8,2)", ops::lstm(other.x, two, ops::Direction::reverse));
  tenon_attributes_recurrent attributes{.direction = 3};
  CHECK_ERROR("lstm 'lstm': direction is 3, expected forward (0), reverse (1) or both (2)",
              other.g.apply(TENON_OP_LSTM, {other.x, two.w, two.r}, Attributes::of(attributes)));
}

TEST_CASE_FIXTURE(Layer, "recurrent: intermediate results are kept only for a gradient") {
  const ops::RecurrentValues own = values(1, 4);
  const ops::RecurrentResult result = ops::lstm(x, own);
  g.output("h", result.h);
  const Graph plain = graph::eliminate_dead_code(g);
  std::size_t kept = 0;
  for (const ValueId id : plain.nodes()[0].outputs) kept += id != no_id ? 1 : 0;
  CHECK(kept == 1);

  const Value loss = ops::reduce_sum(result.h);
  g.output("dr", gradients(loss, {own.r})[0]);
  const Graph trained = graph::eliminate_dead_code(g);
  for (const NodeInfo& node : trained.nodes()) {
    if (node.op == TENON_OP_LSTM) CHECK(node.outputs[2] == no_id);
    if (node.op == TENON_OP_LSTM) CHECK(node.outputs[3] != no_id);
    if (node.op == TENON_OP_LSTM) CHECK(node.outputs[4] != no_id);
    if (node.op != TENON_OP_LSTMGrad) continue;
    CHECK(node.inputs[0] == no_id);
    CHECK(node.inputs[1] != no_id);
    CHECK(node.outputs[3] == no_id);
    CHECK(node.outputs[5] == no_id);
  }
}

TEST_CASE_FIXTURE(Layer, "recurrent: intermediate results kept for a gradient have no gradient") {
  const ops::RecurrentValues own = values(1, 3);
  const std::vector<Value> results = g.apply(TENON_OP_GRU, {x, own.w, own.r}, Attributes::of(tenon_attributes_recurrent{}));
  const Value loss = ops::reduce_sum(results[2]);
  CHECK_ERROR("gradients: GRU 'gru' has none with respect to its result gates", gradients(loss, {own.r}));
}
