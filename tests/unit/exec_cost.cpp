// SPDX-License-Identifier: Apache-2.0
// Which nodes the kernels of a plan compute, by the records of its profile.
#include "exec/cost.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <vector>

#include "testing.h"

namespace tenon::test {
namespace {

TEST_CASE("cost: the kernel of a loss that computes the accuracy has the nodes of both") {
  Graph graph;
  const Value scores = graph.input("scores", DType::f32, {6, 10}), labels = graph.input("labels", DType::i64, {6});
  graph.output("loss", ops::softmax_cross_entropy(scores, labels));
  const Value correct = ops::equal(ops::arg_max(scores, 1), labels);
  graph.output("accuracy", ops::reduce_mean(ops::cast(correct, DType::f32)));
  std::vector<NodeId> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  const auto loss = std::ranges::find(graph.nodes(), TENON_OP_SoftmaxCrossEntropyLoss, &NodeInfo::op);
  tenon_profile_record record{};
  record.node = static_cast<std::uint32_t>(loss - graph.nodes().begin());
  record.fused_count = static_cast<std::uint32_t>(nodes.size());
  std::strcpy(record.algorithm, "SoftmaxCrossEntropyLoss+accuracy");
  std::vector<std::vector<NodeId>> kernels = exec::kernel_nodes(graph, nodes, std::span(&record, 1));
  REQUIRE(kernels.size() == 1);
  std::ranges::sort(kernels[0]);
  CHECK((kernels[0] == nodes));
}

TEST_CASE("cost: the nodes of a group of elementwise ops come before the node of its record, not after it") {
  Graph graph;
  const Shape shape{4, 8};
  const Value a = graph.input("a", DType::f32, shape), b = graph.input("b", DType::f32, shape);
  const Value sum = ops::relu(ops::neg(a) + ops::neg(b));  // a kernel with two operands, as of the residual of a quantised net
  graph.output("sum", sum);
  graph.output("root", ops::sqrt(ops::neg(sum)));  // another kernel, which begins with the op that the first one begins with
  std::vector<NodeId> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  std::vector<tenon_profile_record> records(2);
  records[0].node = 3;
  records[0].fused_count = 4;
  std::strcpy(records[0].algorithm, "Neg+Neg+Add+Relu");
  records[1].node = 5;
  records[1].fused_count = 2;
  std::strcpy(records[1].algorithm, "Neg+Sqrt");
  std::vector<std::vector<NodeId>> kernels = exec::kernel_nodes(graph, nodes, records);
  for (std::vector<NodeId>& kernel : kernels) std::ranges::sort(kernel);
  CHECK((kernels[0] == std::vector<NodeId>{0, 1, 2, 3}));
  CHECK((kernels[1] == std::vector<NodeId>{4, 5}));
  const std::vector<exec::Cost> costs = exec::kernel_costs(graph, nodes, records, kernels);
  CHECK(costs[0].size_bytes == 3 * 4 * 8 * sizeof(float));  // two operands and the sum
  CHECK(costs[1].size_bytes == 2 * 4 * 8 * sizeof(float));
}

TEST_CASE("cost: a node whose kernel is joined with conversions is computed by that kernel, not by a conversion before it") {
  Graph graph;
  graph.output("y", ops::neg(graph.input("x", DType::bf16, {4, 8})));
  std::vector<tenon_profile_record> records(2);
  for (tenon_profile_record& record : records) record.fused_count = 1;
  std::strcpy(records[0].algorithm, "Cast");
  std::strcpy(records[1].algorithm, "Cast+Neg+Cast");
  const std::vector<std::vector<NodeId>> kernels = exec::kernel_nodes(graph, {0}, records);
  CHECK(kernels[0].empty());
  CHECK((kernels[1] == std::vector<NodeId>{0}));
}

tenon_profile_record record_of(std::uint32_t node, std::uint32_t fused_count, const char* algorithm) {
  tenon_profile_record record{};
  record.node = node;
  record.fused_count = fused_count;
  std::strcpy(record.algorithm, algorithm);
  return record;
}

std::vector<std::vector<NodeId>> sorted_kernels(const Graph& graph, const std::vector<tenon_profile_record>& records) {
  std::vector<NodeId> nodes(graph.nodes().size());
  std::iota(nodes.begin(), nodes.end(), NodeId{0});
  std::vector<std::vector<NodeId>> kernels = exec::kernel_nodes(graph, nodes, records);
  for (std::vector<NodeId>& kernel : kernels) std::ranges::sort(kernel);
  return kernels;
}

TEST_CASE("cost: a node that a group computes is not computed by a conversion of its operand") {
  Graph graph;
  const Value x = graph.input("x", DType::f16, {4, 8}), b = graph.input("b", DType::f16, {8});
  graph.output("y", ops::sigmoid(x + b));
  const auto kernels = sorted_kernels(graph, {record_of(0, 1, "Cast"), record_of(1, 2, "Cast+Add+Cast+Cast+Sigmoid+Cast")});
  CHECK(kernels[0].empty());
  CHECK((kernels[1] == std::vector<NodeId>{0, 1}));
}

TEST_CASE("cost: a group whose name is cut before the op of its record is no conversion") {
  Graph graph;
  Value x = graph.input("x", DType::f32, {4, 8});
  for (int i = 0; i < 3; ++i) x = ops::reciprocal(ops::sigmoid(x));
  graph.output("y", x * graph.input("r", DType::f32, {4, 8}));
  const auto kernels =
      sorted_kernels(graph, {record_of(6, 1, "Transpose"), record_of(6, 7, "Sigmoid+Reciprocal+Sigmoid+Reciprocal+Sigmo...")});
  CHECK(kernels[0].empty());
  CHECK((kernels[1] == std::vector<NodeId>{0, 1, 2, 3, 4, 5, 6}));
  const auto of_one_node =
      sorted_kernels(graph, {record_of(6, 1, "Transpose"), record_of(6, 1, "Cast+Cast+Cast+Cast+Cast+Cast+Cast+Cast+Cast...")});
  CHECK(of_one_node[0].empty());
  CHECK((of_one_node[1] == std::vector<NodeId>{6}));
}

TEST_CASE("cost: a group has the ops of its name, also if that is cut after a plus or has ops of vendors") {
  for (const char* name : {"Neg+Neg+Add+...", "com.example.Twice+Neg+Neg+Add", "Neg+Neg+Add+com.exam..."}) {
    CAPTURE(name);
    Graph graph;
    const Shape shape{4, 8};
    const Value a = graph.input("a", DType::f32, shape), b = graph.input("b", DType::f32, shape);
    const Value sum = ops::relu(ops::neg(a) + ops::neg(b));
    graph.output("sum", sum);
    graph.output("root", ops::sqrt(ops::neg(sum)));
    // The node after the group reads its result, but does not come before its last node.
    const auto kernels = sorted_kernels(graph, {record_of(3, 4, name), record_of(5, 2, "Sqrt+negated")});
    CHECK((kernels[0] == std::vector<NodeId>{0, 1, 2, 3}));
    CHECK((kernels[1] == std::vector<NodeId>{4, 5}));
  }
}

TEST_CASE("cost: the arithmetic of an optimizer's step is that of the parameters, not of the learning rate") {
  Graph graph;
  const Value w = graph.parameter("w", DType::f32, {4, 8}), gradient = graph.input("gradient", DType::f32, {4, 8});
  const Value rate = graph.input("rate", DType::f64, {});
  ops::sgd_step({w}, {gradient}, {}, rate, {.struct_size = 0, .nesterov = 0, .momentum = 0, .weight_decay = 0});
  REQUIRE(graph.nodes().size() == 1);
  CHECK(exec::arithmetic_dtype(graph, {0}) == DType::f32);
}

}  // namespace
}  // namespace tenon::test
