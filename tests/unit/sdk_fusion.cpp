// SPDX-License-Identifier: Apache-2.0
// Epilogues: bias and activation after a product become part of it.
#include "sdk_testing.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace tenon::sdk_test {
namespace {

const Floats left{1, 2, 3, 4, 5, 6}, right{1, 0, -1, 2, 1, 1, 0, -1, 2, 1, 3, -2};  // (2, 3) and (3, 4)

/// y = relu(a b + bias) with named parts, so that a test can change one.
struct Layer {
  Net net;
  std::uint32_t a, b, product, bias, sum, y;
  explicit Layer(Shape bias_shape = {4}, std::uint32_t product_kind = TENON_VALUE_INTERNAL, tenon_op activation = TENON_OP_Relu) {
    a = net.input({2, 3});
    b = net.input({3, 4});
    product = product_kind == TENON_VALUE_OUTPUT ? net.output({2, 4}) : net.internal({2, 4});
    bias = net.input(std::move(bias_shape));
    sum = net.internal({2, 4});
    y = net.output({2, 4});
    net.node(TENON_OP_MatMul, {a, b}, {product});
    net.node(TENON_OP_Add, {product, bias}, {sum});
    net.node(activation, {sum}, {y});
  }
};

void check(Session& session, Layer& layer, std::uint32_t kernels, std::uint32_t fusion = TENON_FUSION_FULL) {
  Run run(session, layer.net, options(fusion));
  CHECK(run.info.kernel_count == kernels);
  std::map<std::uint32_t, Floats> bound;
  for (std::uint32_t v = 0; v < layer.net.values.size(); ++v) {
    if (layer.net.values[v].kind != TENON_VALUE_INPUT) continue;
    Floats data(static_cast<std::size_t>(layer.net.values[v].count()));
    for (std::size_t i = 0; i < data.size(); ++i) data[i] = v == layer.a ? left[i] : v == layer.b ? right[i] : 2.0f - static_cast<float>(i);
    run.set(v, data);
    bound[v] = data;
  }
  run();
  const auto expected = evaluate(layer.net, bound);
  for (std::uint32_t v = 0; v < layer.net.values.size(); ++v) {
    if (layer.net.values[v].kind == TENON_VALUE_OUTPUT) CHECK(run.get(v) == expected[v]);
  }
}

TEST_CASE("sdk: product, bias and activation are one kernel") {
  Session session;
  for (const tenon_op activation : {TENON_OP_Relu, TENON_OP_Sigmoid, TENON_OP_Tanh}) {
    Layer layer({4}, TENON_VALUE_INTERNAL, activation);
    check(session, layer, 1);
  }
  Layer swapped;
  swapped.net.nodes[1].inputs = {swapped.bias, swapped.product};
  check(session, swapped, 1);
  Layer row({1, 4});
  check(session, row, 1);
}

TEST_CASE("sdk: an epilogue has the activations that its kernel names") {
  Session session;
  for (const auto& [activation, kernels] : {std::pair<tenon_op, std::uint32_t>{TENON_OP_Relu, 1}, {TENON_OP_Tanh, 2}}) {
    Layer layer({4}, TENON_VALUE_INTERNAL, activation);
    tenon_attributes_gemm attributes{};
    attributes.struct_size = sizeof attributes;
    attributes.alpha = attributes.beta = 1;
    layer.net.nodes.erase(layer.net.nodes.begin());
    layer.net.node(TENON_OP_Gemm, {layer.a, layer.b}, {layer.product}, attributes);
    std::rotate(layer.net.nodes.begin(), layer.net.nodes.end() - 1, layer.net.nodes.end());
    check(session, layer, kernels);
  }
}

TEST_CASE("sdk: the options disable fusion") {
  Session session;
  Layer layer;
  check(session, layer, 3, TENON_FUSION_OFF);
  check(session, layer, 2, TENON_FUSION_ELEMENTWISE);  // sum and activation, but no epilogue
}

TEST_CASE("sdk: an activation follows a product without a bias, and another op ends the epilogue") {
  Session session;
  Layer bare;
  bare.net.nodes.erase(bare.net.nodes.begin() + 1);
  bare.net.nodes[1].inputs = {bare.product};
  check(session, bare, 1);
  Layer negated({4}, TENON_VALUE_INTERNAL, TENON_OP_Neg);
  check(session, negated, 2);
}

TEST_CASE("sdk: a product with another reader is stored") {
  Session session;
  Layer output({4}, TENON_VALUE_OUTPUT);
  check(session, output, 2);  // the product; sum and activation
  Layer read_twice;
  read_twice.net.node(TENON_OP_Neg, {read_twice.product}, {read_twice.net.output({2, 4})});
  check(session, read_twice, 3);
  Layer sum_read;
  sum_read.net.node(TENON_OP_Neg, {sum_read.sum}, {sum_read.net.output({2, 4})});
  check(session, sum_read, 3);
  Layer doubled;
  doubled.net.nodes[1].inputs = {doubled.product, doubled.product};
  check(session, doubled, 2);
  Layer viewed;
  const auto view = viewed.net.internal({4, 2});
  viewed.net.node(TENON_OP_Transpose, {viewed.product}, {view}, axes({1, 0}));
  viewed.net.node(TENON_OP_Neg, {view}, {viewed.net.output({4, 2})});
  check(session, viewed, 3);
}

TEST_CASE("sdk: only a bias along the last dimension is an epilogue") {
  Session session;
  for (const Shape& shape : {Shape{2, 1}, Shape{2, 4}, Shape{1}, Shape{}}) {
    Layer layer(shape);
    check(session, layer, 2);  // the product; sum and activation
  }
  Layer strided;
  strided.net.values[strided.bias].strides = {2};
  check(session, strided, 2);
  Layer widened({4});
  widened.net.values[widened.bias].shape = {3, 1, 4};
  widened.net.values[widened.sum].shape = {3, 2, 4};
  widened.net.values[widened.y].shape = {3, 2, 4};
  check(session, widened, 3);  // and no elementwise chain either: such a bias needs more than two strides
}

TEST_CASE("sdk: a result that overwrites an input is not part of an epilogue") {
  Session session;
  Layer layer;
  layer.net.donate(layer.net.input({2, 4}), layer.y);
  check(session, layer, 2);
}

TEST_CASE("sdk: a bias that is made after the product is read after it was made") {
  Session session;
  Layer layer;
  const auto made = layer.net.internal({4});
  layer.net.node(TENON_OP_Neg, {layer.bias}, {made});
  std::swap(layer.net.nodes[1], layer.net.nodes[3]);  // product, bias, activation, sum
  std::swap(layer.net.nodes[2], layer.net.nodes[3]);  // product, bias, sum, activation
  layer.net.nodes[2].inputs[1] = made;
  check(session, layer, 2);
}

TEST_CASE("sdk: a bias that a later step overwrites is read before") {
  Session session;
  Layer layer;
  const auto next = layer.net.output({4});
  layer.net.node(TENON_OP_Neg, {layer.bias}, {next});
  layer.net.donate(layer.bias, next);
  check(session, layer, 2);
}

TEST_CASE("sdk: a bias made long before keeps its storage until the product has read it") {
  Session session;
  Layer layer;
  Net& net = layer.net;
  const auto made = net.internal({4}), other = net.internal({4}), end = net.output({4});
  net.node(TENON_OP_Tanh, {layer.bias}, {made});
  net.node(TENON_OP_Neg, {layer.bias}, {other});
  net.node(TENON_OP_Sub, {other, layer.bias}, {end});
  std::rotate(net.nodes.begin(), net.nodes.begin() + 3, net.nodes.end());
  net.nodes[4].inputs[1] = made;
  check(session, layer, 4);
}

TEST_CASE("sdk: of two rows that are added one is the bias of the other") {
  Session session;
  Layer layer;
  for (const std::uint32_t v : {layer.a, layer.product, layer.sum, layer.y}) layer.net.values[v].shape[0] = 1;
  const auto other = layer.net.internal({1, 4});
  layer.net.node(TENON_OP_MatMul, {layer.a, layer.b}, {other});
  std::rotate(layer.net.nodes.begin(), layer.net.nodes.begin() + 3, layer.net.nodes.end());
  layer.net.nodes[2].inputs = {layer.product, other};
  check(session, layer, 2);
}

TEST_CASE("sdk: fused layers in a row each have their own epilogue") {
  Session session;
  Layer layer;
  const auto w = layer.net.input({4, 4}), second = layer.net.internal({2, 4}), z = layer.net.output({2, 4});
  layer.net.node(TENON_OP_MatMul, {layer.y, w}, {second});
  layer.net.node(TENON_OP_Tanh, {second}, {z});
  check(session, layer, 2);
}

TEST_CASE("sdk: a profile has the nodes of each kernel") {
  Session session;
  Layer layer;
  layer.net.node(TENON_OP_Neg, {layer.y}, {layer.net.output({2, 4})});
  Run run(session, layer.net);
  const tenon_profile_table* profile = session.table->profile;
  REQUIRE(profile != nullptr);
  ErrorText error;
  tenon_profile_record records[4] = {};
  std::uint32_t count = 99;
  const auto read = [&](std::uint64_t id, std::uint32_t capacity) {
    return profile->read(run.plan, id, records, sizeof records[0], capacity, &count, error);
  };
  run();
  CHECK(read(0, 4) == TENON_OK);  // the kernels to come
  CHECK(count == 2);
  CHECK(records[1].fused_count == 1);
  CHECK(records[1].begin_ns == 0);
  CHECK(read(1, 4) == TENON_INVALID_ARGUMENT);
  CHECK(error.text().find("one of the last 4 executions") != std::string::npos);
  std::memset(static_cast<void*>(records), 0, sizeof records);
  run.execution_id = 1;
  run();
  CHECK(read(1, 0) == TENON_OK);
  CHECK(count == 2);
  CHECK(read(1, 1) == TENON_OK);
  CHECK(count == 2);
  CHECK(records[1].fused_count == 0);  // was not written
  CHECK(read(1, 4) == TENON_OK);
  CHECK(records[0].id == 100);
  CHECK(records[0].node == 0);
  CHECK(records[0].fused_count == 3);
  CHECK(std::string(records[0].algorithm) == "MatMul+bias+relu");
  CHECK(records[1].id == 103);
  CHECK(records[1].node == 3);
  CHECK(records[1].fused_count == 1);
  CHECK(records[1].begin_ns >= records[0].begin_ns + records[0].duration_ns);
  CHECK(std::string(records[1].algorithm) == "Neg");
  const std::uint64_t duration = records[0].duration_ns;
  for (run.execution_id = 2; run.execution_id <= 4; ++run.execution_id) run();
  CHECK(read(1, 1) == TENON_OK);  // the last four are kept
  CHECK(records[0].duration_ns == duration);
  run.execution_id = 5;
  run();
  CHECK(read(1, 1) == TENON_INVALID_ARGUMENT);
  for (std::uint64_t id = 2; id <= 5; ++id) CHECK(read(id, 4) == TENON_OK);
}

TEST_CASE("sdk: the gradient of a relu is part of the only kernel that reads it") {
  Session session;
  const Floats gradients{1, 2, 3, 4, 5, 6}, relus{1, 0, 2, 0, 0, 3}, expected{1, 0, 3, 0, 0, 6};
  for (const bool is_read_twice : {false, true}) {
    for (const bool is_second : {false, true}) {
      Net net;
      const std::uint32_t dy = net.input({2, 3}), y = net.input({2, 3}), between = net.internal({2, 3}), dx = net.output({2, 3}),
                          other = net.output({2, 3});
      net.node(TENON_OP_ReluGrad, {dy, y}, {between});
      net.node(TENON_OP_LogSoftmax, {between}, {dx}, axis(1));
      net.node(TENON_OP_Tanh, {is_read_twice ? between : dy}, {other});
      if (is_second) net.donate(y, dx);  // which is then overwritten by the kernel that reads it
      for (const std::uint32_t fusion : {TENON_FUSION_OFF, TENON_FUSION_ELEMENTWISE, TENON_FUSION_FULL}) {
        Run run(session, net, options(fusion));
        const bool fuses = fusion == TENON_FUSION_FULL && !is_read_twice && !is_second;  // or a copy of y would be needed
        CHECK(run.info.kernel_count == (fuses ? 2 : 3));
        run({{dy, gradients}, {y, relus}});
        CHECK(run.get(dx) == expected);
      }
    }
  }
}

TEST_CASE("sdk: an epilogue goes on after a reshape, if its result stays in the plan") {
  Session session;
  for (const bool stays : {true, false}) {
    Layer layer;
    layer.net.nodes.pop_back();
    const std::uint32_t flat = layer.net.internal({8}), after = stays ? layer.net.internal({8}) : layer.net.output({8}),
                        square = layer.net.internal({4, 2}), last = layer.net.output({4, 2});
    layer.net.node(TENON_OP_Reshape, {layer.sum}, {flat});
    layer.net.node(TENON_OP_Relu, {flat}, {after});
    layer.net.node(TENON_OP_Reshape, {after}, {square});
    layer.net.node(TENON_OP_Tanh, {square}, {last});
    layer.net.node(TENON_OP_Neg, {layer.net.input({2, 4})}, {layer.y});
    check(session, layer, stays ? 3 : 4);
  }
}

}  // namespace
}  // namespace tenon::sdk_test
