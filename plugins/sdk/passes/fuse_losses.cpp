// SPDX-License-Identifier: Apache-2.0
// fuse_losses.cpp - the gradient of a classification loss, and the accuracy, as part of the loss's kernel: on small batches their launches
// take longer than their work.
#include <algorithm>

#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// The nodes that a loss may compute.
class LossFusion {
 public:
  explicit LossFusion(GraphModel& graph) : graph_(graph), uses_(graph), absorbed_(graph.nodes.size(), false) {}

  void run() {
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      Node& loss = graph_.nodes[n];
      if (!loss.is(TENON_OP_SoftmaxCrossEntropyLoss) || loss.row->kernel->traits.loss_companions == nullptr) continue;
      if (loss.outputs[0] == none || graph_.values[loss.outputs[0]].rank != 0) continue;
      std::vector<Operand> operands;
      if (!loss.row->kernel->traits.loss_companions(describe(graph_, loss, operands))) continue;
      loss.inputs.resize(4, none);
      loss.outputs.resize(4, none);
      take_gradient(loss, n);
      take_accuracy(loss, n);
    }
    remove_nodes(graph_, absorbed_);
  }

 private:
  const Value& value(std::uint32_t v) const { return graph_.values[v]; }
  /// Whether both are the same elements in the same order.
  bool is_same(std::uint32_t a, std::uint32_t b) const {
    if (a == b) return true;
    return a != none && b != none && value(a).root == value(b).root && value(a).dense && value(b).dense && value(a).count == value(b).count;
  }
  void absorb(Node& into, std::uint32_t n) {
    absorbed_[n] = true;
    into.fused_count += graph_.nodes[n].fused_count;
  }

  /// dloss must be known when the loss runs: its producer comes before the loss in the order of the graph.
  void take_gradient(Node& loss, std::uint32_t at) {
    const std::uint32_t log_prob = loss.outputs[1];
    if (log_prob == none) return;
    for (const Read& read : uses_.readers[log_prob]) {
      const Node& gradient = graph_.nodes[read.node];
      if (absorbed_[read.node] || !gradient.is(TENON_OP_SoftmaxCrossEntropyLossGrad) || gradient.inputs[1] != log_prob) continue;
      const std::uint32_t dloss = gradient.inputs[0], dscores = gradient.outputs[0], maker = uses_.producers[value(dloss).root];
      const std::uint32_t weights = gradient.inputs.size() > 3 ? gradient.inputs[3] : none;
      if (gradient.attributes != loss.attributes || gradient.inputs[2] != loss.inputs[1] || weights != loss.inputs[2]) continue;
      if ((maker != none && maker >= at) || value(dloss).dtype != value(dscores).dtype || uses_.donated[dscores]) continue;
      loss.inputs[3] = dloss;
      loss.outputs[2] = dscores;
      if (uses_.only_reader(log_prob) != nullptr) loss.outputs[1] = none;
      absorb(loss, read.node);
      return;
    }
  }

  /// The only node that reads an internal value, if it is this op; none otherwise.
  std::uint32_t only_reader(std::uint32_t v, tenon_op op) const {
    const Read* const read = uses_.only_reader(v);
    return read != nullptr && graph_.nodes[read->node].is(op) && is_same(read->value, v) ? read->node : none;
  }

  /// Mean(Cast(Equal(ArgMax(scores, axis 1), labels))) over all positions. Nothing may read it before the loss in the order of the graph,
  /// since the loss may depend on what does.
  void take_accuracy(Node& loss, std::uint32_t at) {
    const std::uint32_t scores = loss.inputs[0], labels = loss.inputs[1];
    for (const Read& read : uses_.readers[value(scores).root]) {
      const Node& best = graph_.nodes[read.node];
      if (absorbed_[read.node] || !best.is(TENON_OP_ArgMax) || read.value != scores || best.attr<tenon_attributes_axis>().axis != 1)
        continue;
      const std::uint32_t equal = only_reader(best.outputs[0], TENON_OP_Equal);
      if (equal == none) continue;
      const std::vector<std::uint32_t>& compared = graph_.nodes[equal].inputs;
      const std::uint32_t other = compared[is_same(compared[0], best.outputs[0]) ? 1 : 0], hits = graph_.nodes[equal].outputs[0];
      if (!is_same(other, labels) || value(hits).count != value(labels).count) continue;
      const std::uint32_t cast = only_reader(hits, TENON_OP_Cast);
      if (cast == none || value(graph_.nodes[cast].outputs[0]).dtype != value(scores).dtype) continue;
      const std::uint32_t mean = only_reader(graph_.nodes[cast].outputs[0], TENON_OP_ReduceMean);
      if (mean == none || uses_.donated[graph_.nodes[mean].outputs[0]] || value(graph_.nodes[mean].outputs[0]).count != 1) continue;
      const std::vector<Read>& readers = uses_.readers[graph_.nodes[mean].outputs[0]];
      if (std::any_of(readers.begin(), readers.end(), [&](const Read& reader) { return reader.node < at; })) continue;
      loss.outputs[3] = graph_.nodes[mean].outputs[0];
      for (const std::uint32_t n : {read.node, equal, cast, mean}) absorb(loss, n);
      return;
    }
  }

  GraphModel& graph_;
  GraphUses uses_;
  std::vector<bool> absorbed_;
};

}  // namespace

void fuse_losses(GraphModel& graph) {
  LossFusion(graph).run();
}

}  // namespace tenon::sdk
