// SPDX-License-Identifier: Apache-2.0
// quantize/readers.h - which nodes read a value.
#pragma once

#include <vector>

#include <tenon/graph.h>

namespace tenon::quantize {

/// The readers of each value of a graph.
class Readers {
 public:
  explicit Readers(const Graph& graph) : nodes_(graph.values().size()), is_output_(graph.values().size()) {
    for (NodeId id = 0; id < graph.nodes().size(); ++id) {
      for (const ValueId input : graph.nodes()[id].inputs) {
        if (input != no_id && (nodes_[input].empty() || nodes_[input].back() != id)) nodes_[input].push_back(id);
      }
    }
    for (const GraphOutput& output : graph.outputs()) is_output_[output.value] = true;
  }

  /// Each node once, in order.
  const std::vector<NodeId>& of(ValueId value) const { return nodes_[value]; }
  bool is_output(ValueId value) const { return is_output_[value]; }
  /// Whether one node reads the value and it is no output.
  bool only_one(ValueId value) const { return nodes_[value].size() == 1 && !is_output_[value]; }

 private:
  std::vector<std::vector<NodeId>> nodes_;
  std::vector<bool> is_output_;
};

}  // namespace tenon::quantize
