// SPDX-License-Identifier: Apache-2.0
// plan_builder.cpp - the passes that turn a graph into an ordered list of kernel calls, and the answers for all nodes of a graph.
#include "elementwise_group.h"
#include "passes/passes.h"
#include "plan.h"

namespace tenon::sdk {

void arrange(GraphModel& graph, const KernelRow* rows) {
  widen(graph, rows);
  put_channels_last(graph, rows);
  if (graph.options.fusion == TENON_FUSION_FULL) {
    fuse_quantized_attention(graph);
    merge_heads(graph);
  }
  resolve_views(graph);
  if (graph.options.fusion == TENON_FUSION_FULL) {
    fuse_losses(graph);
    fuse_column_sums(graph);
    fuse_epilogues(graph);
    fuse_relu_grads(graph);
    fuse_relu_grads_of_results(graph);
    fuse_input_scales(graph);
    fuse_pixel_means(graph);
  }
  if (graph.options.fusion != TENON_FUSION_OFF) fuse_elementwise(graph);
  make_dense(graph, rows);
  order_for_donations(graph, rows);
  convert_weights(graph);
  if (graph.options.fusion != TENON_FUSION_OFF) {
    const KernelRow* const batched = graph.device == nullptr ? nullptr : graph.device->batched_copy();
    if (batched != nullptr && batched->kernel->traits.run_together != nullptr) merge_copies(graph, *batched);
    run_together(graph);
  }
  if (graph.options.fusion == TENON_FUSION_FULL) chain_convolutions(graph);
  for (const Node& node : graph.nodes) {
    if (node.group != nullptr) node.group->settle(graph, node);
  }
}

std::vector<tenon_answer> answer_all(GraphModel& graph, const KernelRow* rows) {
  std::vector<tenon_answer> answers;
  answers.reserve(graph.nodes.size());
  for (Node& node : graph.nodes) answers.push_back(answer(graph, node, rows));
  // A yes is binding, so the copies that donations need are tried with the supported nodes.
  for (bool settled = graph.donations.empty(); !settled;) {
    GraphModel trial = graph;
    std::vector<Node> supported;
    for (const Node& node : graph.nodes) {
      if (answers[node.index].supported != 0) supported.push_back(node);
    }
    trial.nodes = std::move(supported);
    try {
      arrange(trial, rows);
      settled = true;
    } catch (const MissingCopy& missing) {
      answers[missing.node] = refusal(TENON_REASON_GRAPH, missing.what());
    }
  }
  return answers;
}

}  // namespace tenon::sdk
