// SPDX-License-Identifier: Apache-2.0
// The mixed precision pass: which nodes are lowered, which are not, and the number of casts.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/op.h"
#include "graph/passes.h"
#include "graph_testing.h"

using namespace tenon;
using namespace tenon::test;
using graph::PrecisionClass;

namespace {

/// Ops and dtypes without casts: "MatMul:bf16 Add:f32".
std::string widths(const Graph& graph) {
  std::string text;
  for (const NodeInfo& node : graph.nodes()) {
    if (node.op == TENON_OP_Cast) continue;
    text += fmt::format("{}{}:{}", text.empty() ? "" : " ", op_name(node.op), name_of(graph::kernel_dtype(graph, node)));
  }
  return text;
}

std::int64_t casts_in(const Graph& graph) {
  return std::count_if(graph.nodes().begin(), graph.nodes().end(), [](const NodeInfo& node) { return node.op == TENON_OP_Cast; });
}

/// Each value is cast to a dtype once, and no Cast reads a Cast.
void check_casts(const Graph& graph) {
  std::set<std::pair<ValueId, DType>> seen;
  for (const NodeInfo& node : graph.nodes()) {
    if (node.op != TENON_OP_Cast) continue;
    CAPTURE(node.name);
    CHECK(seen.emplace(node.inputs[0], graph.info(node.outputs[0]).dtype).second);
    const NodeId maker = graph.info(node.inputs[0]).producer;
    CHECK((maker == no_id || graph.nodes()[maker].op != TENON_OP_Cast));
  }
}

/// Checks that every node precedes its readers and that every operand has a dtype that the op's rule accepts.
void check_order(const Graph& graph) {
  Graph again;
  std::vector<Value> copy(graph.values().size());
  for (ValueId v = 0; v < copy.size(); ++v) {
    const ValueInfo& info = graph.info(v);
    if (info.kind == ValueKind::input) copy[v] = again.input(info.name, info.dtype, info.shape);
    if (info.kind == ValueKind::parameter) copy[v] = again.parameter(info.name, info.dtype, info.shape);
    if (info.kind == ValueKind::constant) copy[v] = again.constant(info.constant);
  }
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    const NodeInfo& node = graph.nodes()[n];
    std::vector<Value> operands;
    for (const ValueId v : node.inputs) {
      if (v != no_id) REQUIRE(copy[v].present());
      operands.push_back(v == no_id ? Value() : copy[v]);
    }
    const std::vector<Value> made = graph::apply_again(graph, node, operands, again);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] == no_id) continue;
      CHECK(made[i].dtype() == graph.info(node.outputs[i]).dtype);
      CHECK(graph.info(node.outputs[i]).producer == n);
      CHECK(graph.info(node.outputs[i]).output == i);
      copy[node.outputs[i]] = made[i];
    }
  }
}

Graph mixed(const Graph& graph, DType dtype = DType::bf16) {
  Graph result = graph::mix_precision(graph::optimize(graph), dtype);
  check_casts(result);
  check_order(result);
  return result;
}

/// Two dense layers with a loss, and their step if `train`.
struct Net {
  Graph g;
  Value x = g.input("x", DType::f32, {4, 6});
  Value labels = g.input("labels", DType::i64, {4});
  std::vector<Value> parameters{g.parameter("w1", DType::f32, {6, 8}), g.parameter("b1", DType::f32, {8}),
                                g.parameter("w2", DType::f32, {8, 3}), g.parameter("b2", DType::f32, {3})};

  explicit Net(bool train) {
    const Value h = ops::relu(ops::add(ops::matmul(x, parameters[0]), parameters[1]));
    const Value scores = ops::add(ops::matmul(h, parameters[2]), parameters[3]);
    const Value loss = ops::softmax_cross_entropy(scores, labels);
    g.output("loss", loss);
    if (!train) return;
    const std::vector<Value> found = gradients(loss, parameters);
    tenon_attributes_sgd plain{};
    ops::sgd_step(parameters, found, {}, g.input("lr", DType::f64, {}), plain);
  }
};

}  // namespace

// A record without precision class or flops does not compile.
template <class... Fields>
constexpr bool makes_rules = requires(Fields... fields) {
  graph::OpRules{"", fields...};
};
using InferRule = decltype(graph::OpRules::infer);
using Flops = std::int64_t (*)(const Graph&, const NodeInfo&);
static_assert(makes_rules<InferRule, PrecisionClass, Flops>);
static_assert(!makes_rules<InferRule, PrecisionClass> && !makes_rules<InferRule> && !makes_rules<InferRule, Flops>);

TEST_CASE("mixed: the policy") {
  const auto of = [](std::initializer_list<tenon_op> ops, PrecisionClass precision) {
    return std::all_of(ops.begin(), ops.end(), [&](tenon_op op) { return graph::rules_of(op).precision == precision; });
  };
  CHECK(of(
      {TENON_OP_MatMul, TENON_OP_Gemm, TENON_OP_Conv, TENON_OP_ConvInputGrad, TENON_OP_ConvWeightGrad, TENON_OP_ConvTranspose, TENON_OP_RNN,
       TENON_OP_RNNGrad, TENON_OP_GRU, TENON_OP_GRUGrad, TENON_OP_LSTM, TENON_OP_LSTMGrad, TENON_OP_Attention, TENON_OP_AttentionGrad},
      PrecisionClass::low_precision));
  CHECK(of({TENON_OP_Add, TENON_OP_Relu, TENON_OP_ReluGrad, TENON_OP_MaxPool, TENON_OP_AveragePoolGrad, TENON_OP_Dropout, TENON_OP_Concat,
            TENON_OP_Transpose, TENON_OP_BatchNormTrain, TENON_OP_BatchNormTrainGrad},
           PrecisionClass::inherits));
  CHECK(of({TENON_OP_LayerNormalization, TENON_OP_RMSNormalizationGrad, TENON_OP_LRN}, PrecisionClass::fp32_internal));
  CHECK(of({TENON_OP_Softmax, TENON_OP_LogSoftmax, TENON_OP_SoftmaxCrossEntropyLoss, TENON_OP_ReduceSum, TENON_OP_ReduceMean, TENON_OP_Exp,
            TENON_OP_Log, TENON_OP_Pow, TENON_OP_Sqrt, TENON_OP_Div, TENON_OP_CumSum, TENON_OP_ScatterAdd, TENON_OP_AdamStep,
            TENON_OP_SgdStep, TENON_OP_RandomNormal, TENON_OP_Cast},
           PrecisionClass::fp32));
}

TEST_CASE("mixed: products and nodes between them run in 16 bits, scores and loss in f32") {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const Graph after = mixed(Net(false).g, dtype);
    const std::string name = name_of(dtype);
    CHECK(widths(after) == fmt::format("MatMul:{0} Add:{0} Relu:{0} MatMul:{0} Add:f32 SoftmaxCrossEntropyLoss:f32", name));
    CHECK(casts_in(after) == 5);  // x, w1, b1 and w2 to bf16, the second product to f32
    CHECK(after.info(after.outputs()[0].value).dtype == DType::f32);
  }
}

TEST_CASE("mixed: a training step casts each weight once, and gradients of weights are f32") {
  const Graph after = mixed(Net(true).g);
  std::map<std::string, int> narrow_copies;
  for (const NodeInfo& node : after.nodes()) {
    if (node.op == TENON_OP_Cast && after.info(node.inputs[0]).kind == ValueKind::parameter)
      ++narrow_copies[after.info(node.inputs[0]).name];
    if (node.op == TENON_OP_MatMul || node.op == TENON_OP_ReluGrad || node.op == TENON_OP_Gemm)
      CHECK(after.info(node.inputs[0]).dtype == DType::bf16);
    if (node.op == TENON_OP_ReduceSum || node.op == TENON_OP_SoftmaxCrossEntropyLossGrad)
      CHECK(after.info(node.inputs[0]).dtype == DType::f32);
    if (node.op == TENON_OP_SgdStep) {
      for (std::size_t i = 1; i < node.inputs.size(); ++i) CHECK(after.info(node.inputs[i]).dtype == DType::f32);
    }
  }
  CHECK(narrow_copies == std::map<std::string, int>{{"w1", 1}, {"b1", 1}, {"w2", 1}});
  CHECK(after.updates().size() == 4);
  for (const GraphUpdate& update : after.updates()) CHECK(after.info(update.value).dtype == DType::f32);
}

TEST_CASE("mixed: gradient transformations before the step are f32") {
  Net net(false);
  const Value loss(&net.g, net.g.outputs()[0].value);
  const Value g = gradients(loss, {net.parameters[0]})[0];
  net.g.output("norm", ops::sqrt(ops::reduce_sum(ops::mul(g, g))));
  net.g.output("clipped", ops::clip(ops::mul(g, 0.5), -1, 1));
  const Graph after = mixed(net.g, DType::f16);
  for (const NodeInfo& node : after.nodes()) {
    if (node.op == TENON_OP_Mul || node.op == TENON_OP_Clip) CHECK(graph::kernel_dtype(after, node) == DType::f32);
  }
}

TEST_CASE("mixed: normalisation keeps the width of its input, with per-channel values in f32") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2, 3, 8, 8});
  const auto channels = [&](const char* name) { return g.parameter(name, DType::f32, {4}); };
  const Value y = ops::conv(x, g.parameter("w", DType::f32, {4, 3, 3, 3}));
  const Value n = ops::batch_norm(y, channels("scale"), channels("bias"), channels("mean"), channels("var"));
  const Value z = ops::conv(ops::relu(n), g.parameter("w2", DType::f32, {5, 4, 3, 3}));
  g.output("z", z);
  g.update(g.parameter("seen", DType::f32, {4}), ops::reduce_mean(y, {0, 2, 3}));  // keeps the batch norm from being folded
  CHECK(widths(mixed(g)) == "Conv:bf16 BatchNormalization:bf16 Relu:bf16 Conv:bf16 ReduceMean:f32");

  Graph trained;
  const auto numbers = [&](const char* name) { return trained.parameter(name, DType::f32, {4}); };
  const Value w = trained.parameter("w", DType::f32, {4, 3, 3, 3}), scale = numbers("scale");
  const Value wide = ops::conv(trained.input("x", DType::f32, {2, 3, 8, 8}), w);
  const Value t = ops::batch_norm_train(wide, scale, numbers("bias"), numbers("mean"), numbers("var"));
  const Value made = ops::conv(t, trained.parameter("w2", DType::f32, {5, 4, 3, 3}));
  const Value loss = ops::reduce_mean(ops::mul(made, made));
  trained.output("loss", loss);
  for (const Value of : gradients(loss, {w, scale})) trained.output("d" + std::to_string(of.id()), of);
  const Graph after = mixed(trained);
  for (const NodeInfo& node : after.nodes()) {
    if (node.op != TENON_OP_BatchNormTrain && node.op != TENON_OP_BatchNormTrainGrad) continue;
    CHECK(graph::kernel_dtype(after, node) == DType::bf16);
    CHECK(after.info(node.inputs[2]).dtype == DType::f32);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) CHECK((after.info(node.outputs[i]).dtype == DType::f32) == (i > 0));
  }

  Graph embedded;  // no 16-bit input: the residual stream of an embedding stays f32
  const Value rows = ops::embedding(embedded.parameter("table", DType::f32, {10, 8}), embedded.input("i", DType::i64, {4}));
  const Value normed = ops::layer_norm(rows, {}, {}, -1, 1e-5);
  const Value out = ops::add(rows, ops::matmul(ops::relu(normed), embedded.parameter("w", DType::f32, {8, 8})));
  embedded.output("y", out);
  CHECK(widths(mixed(embedded)) == "Gather:f32 LayerNormalization:f32 Relu:f32 MatMul:bf16 Add:f32");
}

TEST_CASE("mixed: a batch norm in prediction is folded before anything is cast") {
  Graph g;
  const Value x = g.input("x", DType::f32, {2, 3, 8, 8});
  const auto channels = [&](const char* name) { return g.parameter(name, DType::f32, {4}); };
  const Value y = ops::conv(x, g.parameter("w", DType::f32, {4, 3, 3, 3}));
  g.output("y", ops::relu(ops::batch_norm(y, channels("scale"), channels("bias"), channels("mean"), channels("var"))));
  const Graph after = mixed(g);
  CHECK_FALSE(contains(widths(after), "BatchNormalization"));
  const graph::Hoisted halves = graph::hoist(after);
  CHECK(widths(halves.main) == "Conv:bf16 Relu:f32");
  for (const GraphOutput& made : halves.prologue.outputs()) CHECK(halves.prologue.info(made.value).dtype == DType::bf16);
}

TEST_CASE("mixed: the nodes of a loss are f32, although gradients of products depend on them") {
  for (const bool is_sigmoid : {true, false}) {
    CAPTURE(is_sigmoid);
    Graph g;
    const Value x = g.input("x", DType::f32, {4, 6}), target = g.input("target", DType::f32, {4, 3});
    const Value w = g.parameter("w", DType::f32, {6, 3}), b = g.parameter("b", DType::f32, {3});
    const Value scores = ops::add(ops::matmul(x, w), b), made = is_sigmoid ? ops::sigmoid(scores) : scores;
    const Value loss =
        is_sigmoid ? ops::reduce_mean(ops::log(ops::clip(made, 1e-7, 1))) : ops::reduce_mean(ops::square(ops::sub(made, target)));
    g.output("loss", loss);
    g.output("dw", gradients(loss, {w})[0]);
    const Graph after = mixed(g);
    int products = 0;
    for (const NodeInfo& node : after.nodes()) {
      const bool is_product = node.op == TENON_OP_MatMul || node.op == TENON_OP_Gemm;
      products += is_product ? 1 : 0;
      if (is_product || node.op == TENON_OP_Transpose || node.op == TENON_OP_Cast) continue;
      CHECK_MESSAGE(graph::kernel_dtype(after, node) != DType::bf16, std::string(op_name(node.op)));
    }
    CHECK(products == 2);
  }
}

TEST_CASE("mixed: a constant beyond the 16-bit range saturates to the largest finite value") {
  Graph g;
  const Value q = g.input("q", DType::f32, {1, 1, 2, 4});
  ops::AttentionOptions options;
  options.mask = g.constant(Tensor::of<float>({0, -1e9f}, {1, 1, 1, 2}));
  g.output("y", ops::attention(q, q, q, options));
  const Graph after = mixed(g, DType::f16);
  bool seen = false;
  for (ValueId v = 0; v < after.values().size(); ++v) {
    const ValueInfo& info = after.info(v);
    if (info.kind != ValueKind::constant || info.shape != Shape{1, 1, 1, 2}) continue;
    seen = true;
    CHECK(info.constant.data<float>()[1] == -65504.0f);
  }
  CHECK(seen);
}

TEST_CASE("mixed: a view of a weight is a view of its only cast") {
  Graph g;
  const Value x = g.input("x", DType::f32, {4, 6}), w = g.parameter("w", DType::f32, {8, 6});
  const Value y = ops::matmul(x, ops::transpose(w));
  g.output("y", ops::matmul(y, w));
  const Graph after = mixed(g);
  CHECK(widths(after) == "Transpose:bf16 MatMul:bf16 MatMul:bf16");
  CHECK(casts_in(after) == 3);  // x, w, the result
}

TEST_CASE("mixed: constants that 16 bits would change beyond rounding keep an op in f32") {
  const auto between = [](double value, DType dtype) {
    Graph g;
    const Value x = g.input("x", DType::f32, {4, 4}), w = g.parameter("w", DType::f32, {4, 4});
    g.output("y", ops::matmul(ops::add(ops::matmul(x, w), value), w));
    return widths(mixed(g, dtype));
  };
  CHECK(between(0.5, DType::f16) == "MatMul:f16 Add:f16 MatMul:f16");
  CHECK(between(1e-7, DType::f16) == "MatMul:f16 Add:f32 MatMul:f16");
  CHECK(between(-1e9, DType::f16) == "MatMul:f16 Add:f32 MatMul:f16");
  CHECK(between(1e-7, DType::bf16) == "MatMul:bf16 Add:bf16 MatMul:bf16");
  CHECK(between(-1e9, DType::bf16) == "MatMul:bf16 Add:bf16 MatMul:bf16");
}

TEST_CASE("mixed: f64 and 16-bit values are unchanged, and the caller's casts are not duplicated") {
  Graph g;
  const Value a = g.input("a", DType::f64, {3, 3}), b = g.input("b", DType::bf16, {3, 3});
  g.output("p", ops::matmul(a, a));
  const Value wide = ops::cast(ops::matmul(b, b), DType::f32);
  g.output("q", ops::matmul(wide, wide));
  const Graph after = mixed(g);
  CHECK(widths(after) == "MatMul:f64 MatMul:bf16 MatMul:bf16");
  CHECK(casts_in(after) == 1);  // only the result
}

TEST_CASE("mixed: the interface and node ids are unchanged") {
  const Graph before = graph::optimize(Net(true).g);
  const Graph after = graph::mix_precision(before, DType::f16);
  std::set<std::uint64_t> ids;
  for (const NodeInfo& node : after.nodes()) CHECK(ids.insert(node.id).second);
  for (const NodeInfo& node : before.nodes()) CHECK(ids.contains(node.id));
  std::map<std::string, DType> bound;
  for (const ValueInfo& value : after.values()) bound[value.name] = value.dtype;
  for (const ValueInfo& value : before.values()) {
    if (value.kind == ValueKind::input || value.kind == ValueKind::parameter) CHECK(bound.at(value.name) == value.dtype);
  }
  const Graph twice = graph::mix_precision(after, DType::f16);
  CHECK(widths(twice) == widths(after));
  CHECK(casts_in(twice) == casts_in(after));
}

TEST_CASE("skip_updates: the named updates keep the parameter where the flag is true") {
  Graph g;
  const Value w = g.parameter("w", DType::f32, {2}), v = g.parameter("v", DType::f32, {2});
  const Value flag = g.input("flag", DType::boolean, {});
  g.update(v, ops::add(v, 1));
  const std::size_t first = g.updates().size();
  g.update(w, ops::mul(w, 2));
  graph::skip_updates(g, first, flag);
  CHECK(ops_of(g) == "Add Mul Where");
  CHECK(op_name(node_of(Value(&g, g.updates()[0].value)).op) == std::string("Add"));
  CHECK(op_name(node_of(Value(&g, g.updates()[1].value)).op) == std::string("Where"));
}
