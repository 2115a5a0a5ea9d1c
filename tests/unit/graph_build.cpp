// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <set>

#include "graph/op.h"
#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;

TEST_CASE("graph: inputs and parameters share one set of names") {
  Graph g;
  g.input("x", DType::f32, {2});
  CHECK_ERROR("parameter 'x': the name is already used by an input; expected a unique name, since values are bound by name",
              g.parameter("x", DType::f32, {2}));
  CHECK_ERROR("graph: the name of the input is empty; it is bound by name", g.input("", DType::f32, {2}));
  CHECK_ERROR("input 'y': the dtype is none, expected an element type", g.input("y", DType::none, {2}));
  CHECK(g.values().size() == 1);
}

TEST_CASE("graph: node names are unique and default to the op's name") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2, 3});
  const Value first = ops::softmax(x), second = ops::softmax(x);
  CHECK(first.name() == "softmax");
  CHECK(second.name() == "softmax_1");
  const Value named = g.apply(TENON_OP_Relu, {x}, {}, {.name = "softmax_2", .shape = {}})[0];
  CHECK(named.name() == "softmax_2");
  CHECK(ops::softmax(x).name() == "softmax_3");
  CHECK(g.apply(TENON_OP_Relu, {x}, {}, {.name = "x", .shape = {}})[0].name() == "x_1");
  std::set<std::string> names;
  for (const NodeInfo& node : g.nodes()) names.insert(node.name);
  CHECK(names.size() == g.nodes().size());
}

TEST_CASE("graph: an op's second result is also named after the node") {
  Graph g;
  const Value scores = g.input("scores", DType::f32, {8, 10}), labels = g.input("labels", DType::i64, {8});
  const std::vector<Value> results = g.apply(TENON_OP_SoftmaxCrossEntropyLoss, {scores, labels},
                                             Attributes::of(tenon_attributes_cross_entropy{}), {.name = "loss", .shape = {}});
  REQUIRE(results.size() == 2);
  CHECK(results[0].name() == "loss");
  CHECK(results[1].name() == "loss.1");
}

TEST_CASE("graph: name scopes nest") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2});
  {
    const NameScope outer(g, "block_1");
    {
      const NameScope inner(g, "dense");
      CHECK(ops::relu(x).name() == "block_1/dense/relu");
      CHECK(ops::relu(x).name() == "block_1/dense/relu_1");
    }
    CHECK(ops::relu(x).name() == "block_1/relu");
  }
  CHECK(ops::relu(x).name() == "relu");
}

TEST_CASE("graph: of nested device scopes the inner one wins") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2});
  CHECK(node_of(ops::relu(x)).device == "");
  {
    const DeviceScope outer(g, "cpu:0");
    CHECK(node_of(ops::relu(x)).device == "cpu:0");
    {
      const DeviceScope inner(g, "gpu:1");
      CHECK(node_of(ops::relu(x)).device == "gpu:1");
    }
    CHECK(node_of(ops::relu(x)).device == "cpu:0");
  }
  CHECK(node_of(ops::relu(x)).device == "");
}

TEST_CASE("graph: a rejected node leaves the graph unchanged") {
  Graph g;
  const Value a = g.input("a", DType::f32, {2}), b = g.input("b", DType::f32, {3});
  CHECK_THROWS_AS(ops::add(a, b), Error);
  CHECK(g.nodes().empty());
  CHECK(g.values().size() == 2);
  CHECK(ops::add(a, a).name() == "add");
}

TEST_CASE("graph: values of another graph and undefined values are rejected") {
  Graph g, other;
  const Value x = g.input("x", DType::f32, {2}), y = other.input("y", DType::f32, {2});
  CHECK_ERROR("add: 'y' belongs to another graph", ops::add(x, y));
  CHECK_ERROR("relu: every operand is absent", ops::relu(Value()));
  CHECK_ERROR("add 'add': operand b is absent", ops::add(x, Value()));
  CHECK(message_of([&] { Value().shape(); }).find("an absent value") == 0);
}

TEST_CASE("graph: an op outside the list and foreign attributes are rejected") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2});
  CHECK_ERROR("op 12345 is not listed in tenon/ops.def", g.apply(12345, {x}));
  CHECK_ERROR("softmax: expected attributes tenon_attributes_axis (16 bytes), got 8 bytes", g.apply(TENON_OP_Softmax, {x}));
  CHECK(std::string(op_name(TENON_OP_MatMul)) == "MatMul");
  CHECK(std::string(op_name(12345)) == "op 12345");
}

TEST_CASE("graph: outputs have separate names") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2});
  g.output("x", x);
  g.output("y", ops::relu(x));
  CHECK_ERROR("output 'y': the name is already used by another output; expected a unique name", g.output("y", x));
  CHECK_ERROR("output 'z': the value is absent, expected a value of this graph", g.output("z", Value()));
  REQUIRE(g.outputs().size() == 2);
  CHECK(g.outputs()[1].name == "y");
}

TEST_CASE("graph: a parameter is updated once, by a value of its dtype and shape") {
  Graph g;
  const Value w = g.parameter("w", DType::f32, {2}), x = g.input("x", DType::f32, {2}), y = g.input("y", DType::f32, {3});
  CHECK_ERROR("update: 'x' is not a parameter", g.update(x, w));
  CHECK_ERROR("update of parameter 'w': expected f32(2), got 'y' f32(3)", g.update(w, y));
  g.update(w, ops::add(w, x));
  CHECK_ERROR("update: parameter 'w' already has an update", g.update(w, x));
}

TEST_CASE("graph: a constant keeps its own copy of the elements") {
  Graph g;
  Tensor t = Tensor::of<float>({1, 2}, {2});
  const Value c = g.constant(t);
  t.data<float>()[0] = 5;
  CHECK(g.info(c.id()).constant.data<float>()[0] == 1);
  CHECK(c.name() == "constant");
  CHECK_ERROR("constant 'c': the tensor is undefined, expected one with elements", g.constant(Tensor(), "c"));
}

TEST_CASE("graph: scalar constants must be representable in their dtype") {
  Graph g;
  CHECK(str(graph::scalar(g, DType::f64, 0.1)) == "f64()");
  CHECK(g.info(graph::scalar(g, DType::u8, 255).id()).constant.data<std::uint8_t>()[0] == 255);
  CHECK_ERROR("the constant 256 is not a value of u8", graph::scalar(g, DType::u8, 256));
  CHECK_ERROR("the constant 1.5 is not a value of i32", graph::scalar(g, DType::i32, 1.5));
  CHECK_ERROR_CONTAINS("is not a value of i64", graph::scalar(g, DType::i64, 9223372036854775808.0));
  CHECK_ERROR("the constant 1 is not a value of bool", graph::scalar(g, DType::boolean, 1));
  CHECK(str(graph::scalar(g, DType::bf16, 1)) == "bf16()");
  CHECK(ops_of(g) == "Cast");
}

TEST_CASE("graph: node ids start at 1 and are unique") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2});
  ops::relu(ops::relu(x));
  CHECK(g.nodes()[0].id == 1);
  CHECK(g.nodes()[1].id == 2);
}

TEST_CASE("graph: its text has one line per item") {
  Graph g;
  const Value x = g.input("x", DType::f32, {8, 4}), key = g.input("key", DType::u64, {2}), lr = g.input("lr", DType::f64, {});
  const Value w = g.parameter("w", DType::f32, {4, 3});
  const Value c = g.constant(Tensor::of<float>({1, 2, 3}, {3}), "bias");
  const Value y = ops::gemm(x, w, c, {.alpha = 0.5});
  Value z;
  {
    const DeviceScope scope(g, "cpu:0");
    z = ops::dropout(ops::reduce_sum(ops::transpose(ops::mul(y, 2.0)), {-1}, true), key, 0.25, 7);
  }
  g.output("z", z);
  ops::sgd_step({w}, {w}, {}, lr, {.struct_size = 0, .nesterov = 0, .momentum = 0, .weight_decay = 0.1});
  CHECK(g.str() ==
        "input x:f32(8,4)\n"
        "input key:u64(2)\n"
        "input lr:f64()\n"
        "parameter w:f32(4,3)\n"
        "constant bias:f32(3)\n"
        "gemm:f32(8,3) = Gemm(x, w, bias) alpha=0.5\n"
        "mul:f32(8,3) = Mul(gemm, 2)  @cpu:0\n"
        "transpose:f32(3,8) = Transpose(mul) perm=(1,0)  @cpu:0\n"
        "reduce_sum:f32(3,1) = ReduceSum(transpose) axes=(1) keepdims  @cpu:0\n"
        "dropout:f32(3,1) = Dropout(reduce_sum, key) stream=7 probability=0.25  @cpu:0\n"
        "sgd_step:f32(4,3) = SgdStep(lr, w, w) momentum=0 weight_decay=0.1\n"
        "output z = dropout\n"
        "update w = sgd_step\n");
}

TEST_CASE("graph: every op's attributes are printed under the names of ops.def") {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  CHECK_NOTHROW(graph::attributes_str(id, Attributes::of(tenon_attributes_##attributes{})));
#include <tenon/ops.def>
#undef TENON_OP
  CHECK(graph::attributes_str(TENON_OP_Add, {}) == "");
  CHECK(graph::attributes_str(TENON_OP_Softmax, Attributes::of(tenon_attributes_axis{.struct_size = 0, .keepdims = 0, .axis = 1})) ==
        " axis=1");
  CHECK(graph::attributes_str(TENON_OP_ArgMax, Attributes::of(tenon_attributes_axis{.struct_size = 0, .keepdims = 1, .axis = 0})) ==
        " axis=0 keepdims");
  CHECK(graph::attributes_str(TENON_OP_Cast, Attributes::of(tenon_attributes_cast{.struct_size = 0, .to = TENON_DTYPE_I64})) == " to=i64");
  CHECK(graph::attributes_str(TENON_OP_Gemm, Attributes::of(tenon_attributes_gemm{
                                                 .struct_size = 0, .trans_a = 1, .trans_b = 1, .reserved = 0, .alpha = 1, .beta = 2})) ==
        " trans_a trans_b beta=2");
  CHECK(graph::attributes_str(TENON_OP_RandomUniform,
                              Attributes::of(tenon_attributes_random{
                                  .struct_size = 0, .stream = 3, .a = -1, .b = 1, .dtype = TENON_DTYPE_F32, .reserved = 0})) ==
        " stream=3 low=-1 high=1 dtype=f32");
  CHECK(graph::attributes_str(TENON_OP_SoftmaxCrossEntropyLoss,
                              Attributes::of(tenon_attributes_cross_entropy{
                                  .struct_size = 0, .reduction = 1, .has_ignore_index = 1, .reserved = 0, .ignore_index = -100})) ==
        " reduction=mean ignore_index=-100");
  CHECK(graph::attributes_str(TENON_OP_AdamStep,
                              Attributes::of(tenon_attributes_adam{
                                  .struct_size = 0, .reserved = 0, .beta1 = 0.9, .beta2 = 0.999, .epsilon = 1e-8, .weight_decay = 0})) ==
        " beta1=0.9 beta2=0.999 epsilon=1e-08 weight_decay=0");
  CHECK(graph::attributes_str(TENON_OP_RmsPropStep, Attributes::of(tenon_attributes_rmsprop{
                                                        .struct_size = 0, .epsilon_outside = 1, .rho = 0.9, .epsilon = 1e-7})) ==
        " epsilon_outside rho=0.9 epsilon=1e-07");
}

TEST_CASE("graph: every listed op has a shape rule and documentation") {
  for (const graph::OpRulesRow* row = graph::op_rules_rows; row->rules != nullptr; ++row) {
    CAPTURE(op_name(row->op));
    CHECK((row->rules->infer != nullptr));
    CHECK(std::string(row->rules->doc).size() > 5);
    CHECK(&graph::rules_of(row->op) == row->rules);
    CHECK(graph::version_of(row->op) > 0);
  }
}
