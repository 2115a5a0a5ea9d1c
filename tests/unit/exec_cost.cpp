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

}  // namespace
}  // namespace tenon::test
