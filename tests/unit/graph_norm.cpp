// SPDX-License-Identifier: Apache-2.0
// Shapes, errors and forms of the normalisation ops.
#include <doctest/doctest.h>

#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

using ops::BatchNormOptions;

/// An image batch of three channels and the other operands of batch norm.
struct Images {
  Graph g;
  Value x = g.input("x", DType::f32, {2, 3, 4, 5});
  Value scale = g.parameter("scale", DType::f32, {3});
  Value bias = g.parameter("bias", DType::f32, {3});
  Value mean = g.parameter("mean", DType::f32, {3});
  Value variance = g.parameter("variance", DType::f32, {3});

  Value train(Value of, const BatchNormOptions& options = {}) { return ops::batch_norm_train(of, scale, bias, mean, variance, options); }
};
std::int64_t axis_of(Value y) {
  return node_of(y).attributes.as<tenon_attributes_batch_norm>().axis;
}

}  // namespace

TEST_CASE_FIXTURE(Images, "batch norm: results have the shape of x, and training updates both statistics") {
  CHECK(str(ops::batch_norm(x, scale, bias, mean, variance)) == "f32(2,3,4,5)");
  const Value y = train(x);
  CHECK(str(y) == "f32(2,3,4,5)");
  REQUIRE(g.updates().size() == 2);
  CHECK(g.updates()[0].parameter == mean.id());
  CHECK(g.updates()[1].parameter == variance.id());
  CHECK(g.updates()[0].value == node_of(y).outputs[1]);
  CHECK(g.updates()[1].value == node_of(y).outputs[2]);
}

TEST_CASE_FIXTURE(Images, "batch norm: a batch of one element per channel has no variance to train with, and the error names the layer") {
  const Value one = g.input("one", DType::f32, {1, 3}), pixel = g.input("pixel", DType::f32, {1, 3, 1, 1});
  const Value row = g.input("row", DType::f32, {1, 3, 2}), none = g.input("none", DType::f32, {0, 3});
  const NameScope scope(g, "block_1");
  CHECK_ERROR(
      "batch_norm_train 'block_1/batch_norm_train': training needs 2 or more elements per channel for the variance, got 1 in each "
      "channel of x f32(1,3)",
      train(one));
  CHECK_ERROR_CONTAINS("got 1 in each channel of x f32(1,3,1,1)", train(pixel));
  CHECK_ERROR_CONTAINS("got 0 in each channel of x f32(0,3)", train(none));
  CHECK(str(ops::batch_norm(one, scale, bias, mean, variance)) == "f32(1,3)");
  CHECK(str(train(row)) == "f32(1,3,2)");
}

TEST_CASE("batch norm: operands that do not fit are rejected by name") {
  Images m;
  const Value four = m.g.input("four", DType::f32, {4}), wide = m.g.input("wide", DType::f64, {3});
  const auto evaluate = [&](Value x, Value scale, const BatchNormOptions& options = {}) {
    return message_of([&] { ops::batch_norm(x, scale, m.bias, m.mean, m.variance, options); });
  };
  CHECK(evaluate(m.x, four) ==
        "batch_norm 'batch_norm': expected 3 values, one per channel of x f32(2,3,4,5) along axis 1, got scale f32(4)");
  CHECK(evaluate(m.x, wide) == "batch_norm 'batch_norm': expected f32 values per channel for x f32(2,3,4,5), got scale f64(3)");
  CHECK(evaluate(m.x, {}) == "batch_norm 'batch_norm': operand scale is absent");
  CHECK(evaluate(m.g.input("line", DType::f32, {3}), m.scale) ==
        "batch_norm 'batch_norm': expected x of rank 2 or more (batch, channels, ...), got x f32(3)");
  CHECK(evaluate(m.g.input("whole", DType::i32, {2, 3}), m.scale) == "batch_norm 'batch_norm': expected a floating dtype, got x i32(2,3)");
  CHECK(evaluate(m.x, m.scale, {.axis = 4}) == "batch_norm 'batch_norm': axis 4 is out of range for x f32(2,3,4,5)");
  CHECK(evaluate(m.x, m.scale, {.epsilon = -1}) == "batch_norm 'batch_norm': epsilon is -1, expected epsilon >= 0");
  CHECK_ERROR("batch_norm_train 'batch_norm_train': momentum is 1.5, expected 0 <= momentum <= 1", m.train(m.x, {.momentum = 1.5}));
}

TEST_CASE_FIXTURE(Images, "batch norm: channels last are the columns of a matrix") {
  for (const std::int64_t axis : {-1, 3}) {
    const Value y =
        ops::batch_norm(g.input("x" + std::to_string(axis), DType::f32, {2, 4, 5, 3}), scale, bias, mean, variance, {.axis = axis});
    CHECK(str(y) == "f32(2,4,5,3)");
    CHECK(axis_of(Value(&g, node_of(y).inputs[0])) == 1);
    CHECK(g.info(node_of(y).inputs[0]).shape == Shape{40, 3});
  }
  CHECK(axis_of(ops::batch_norm(g.input("turned", DType::f32, {3, 2}), scale, bias, mean, variance, {.axis = 0})) == 0);
}

TEST_CASE("batch norm: per activation every element of a sample has its own statistics") {
  Graph g;
  const Value x = g.input("x", DType::f32, {6, 3, 4});
  const auto parameter = [&](const char* name) { return g.parameter(name, DType::f32, {3, 4}); };
  const Value scale = parameter("scale"), bias = parameter("bias"), mean = parameter("mean"), variance = parameter("variance");
  const Value y = ops::batch_norm_train(x, scale, bias, mean, variance, {.per_activation = true});
  CHECK(str(y) == "f32(6,3,4)");
  REQUIRE(g.updates().size() == 2);
  CHECK(g.info(g.updates()[0].value).shape == Shape{3, 4});
  const Value small = g.parameter("small", DType::f32, {4, 3});
  CHECK_ERROR("batch_norm: with per_activation, expected 'small' in the shape of x 'x' (6,3,4) without its first dimension, got (4,3)",
              ops::batch_norm(x, small, bias, mean, variance, {.per_activation = true}));
  CHECK_ERROR("batch_norm: per_activation has no channel axis: expected axis 1, got 2",
              ops::batch_norm(x, scale, bias, mean, variance, {.axis = 2, .per_activation = true}));
}

TEST_CASE("layer norm: statistics are per line, and unused results are left out") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2, 3, 4});
  const Value scale = g.parameter("scale", DType::f32, {3, 4});
  const Value y = ops::layer_norm(x, scale, {}, 1);
  CHECK(str(y) == "f32(2,3,4)");
  CHECK(g.info(node_of(y).outputs[1]).shape == Shape{2, 1, 1});
  CHECK(str(ops::layer_norm(x)) == "f32(2,3,4)");
  CHECK_ERROR("layer_norm 'layer_norm_2': expected (4) for a line of x f32(2,3,4), got scale f32(3,4)", ops::layer_norm(x, scale));
  CHECK_ERROR("layer_norm 'layer_norm_2': axis 3 is out of range for x f32(2,3,4)", ops::layer_norm(x, {}, {}, 3));
  CHECK_ERROR("layer_norm 'layer_norm_2': expected elements in x f32(2,0) from axis 1 on, got none",
              ops::layer_norm(g.input("empty", DType::f32, {2, 0})));
  CHECK_ERROR("rms_norm 'rms_norm': expected (4) for a line of x f32(2,3,4), got scale f32(3,4)", ops::rms_norm(x, scale));
  CHECK(str(ops::rms_norm(x, scale, 1)) == "f32(2,3,4)");
}

TEST_CASE("group and instance norm: groups must divide the channels") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2, 6, 4, 5});
  const Value scale = g.parameter("scale", DType::f32, {6}), short_scale = g.parameter("short", DType::f32, {5});
  CHECK(str(ops::group_norm(x, 3, scale, scale)) == "f32(2,6,4,5)");
  CHECK(str(ops::instance_norm(x, scale)) == "f32(2,6,4,5)");
  CHECK_ERROR("group_norm: 4 groups do not divide the 6 channels of 'x' (2,6,4,5)", ops::group_norm(x, 4));
  CHECK_ERROR("group_norm: 0 groups do not divide the 6 channels of 'x' (2,6,4,5)", ops::group_norm(x, 0));
  CHECK_ERROR("group_norm: expected scale (6), one per channel of 'x' (2,6,4,5), got 'short' (5)", ops::group_norm(x, 2, short_scale));
  CHECK_ERROR("instance_norm: expected x (N, C, d...), got 'scale' (6)", ops::instance_norm(scale));
}

TEST_CASE("lrn: invalid windows and constants are rejected") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2, 6, 4});
  CHECK(str(ops::lrn(x, 5)) == "f32(2,6,4)");
  CHECK_ERROR("lrn 'lrn_1': size is 0, expected a window of 1 channel or more", ops::lrn(x, 0));
  CHECK_ERROR("lrn 'lrn_1': alpha is -1, expected alpha >= 0", ops::lrn(x, 5, -1));
  CHECK_ERROR("lrn 'lrn_1': bias is 0, expected bias > 0", ops::lrn(x, 5, 1e-4, 0.75, 0));
  CHECK_ERROR("lrn 'lrn_1': expected x (N, C, d...), got x f32(6)", ops::lrn(g.input("line", DType::f32, {6}), 5));
}

TEST_CASE_FIXTURE(Images, "normalisation: the gradient by every operand has the operand's shape") {
  const Value loss = ops::reduce_sum(ops::batch_norm(x, scale, bias, mean, variance));
  const std::vector<Value> by{x, scale, bias, mean, variance};
  const std::vector<Value> given = gradients(loss, by);
  for (std::size_t i = 0; i < by.size(); ++i) CHECK(str(given[i]) == str(by[i]));

  const std::vector<Value> trained = gradients(ops::reduce_sum(train(x)), {x, scale, bias});
  for (std::size_t i = 0; i < trained.size(); ++i) CHECK(str(trained[i]) == str(by[i]));
  CHECK(op_name(node_of(trained[0]).op) == std::string("BatchNormTrainGrad"));
  CHECK(node_of(trained[0]).outputs[1] == trained[1].id());

  const Value line = g.parameter("line", DType::f32, {5});
  const std::vector<Value> layered = gradients(ops::reduce_sum(ops::layer_norm(x, line, line)), {x, line});
  CHECK(str(layered[0]) == str(x));
  CHECK(str(layered[1]) == str(line));
}
