// SPDX-License-Identifier: Apache-2.0
// graph_testing.h - helpers of the graph tests.
#pragma once

#include <string>
#include <vector>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <tenon/graph.h>

#include "testing.h"

namespace tenon::test {

/// Dtype and shape, such as "f32(8,10)".
inline std::string str(Value value) {
  return std::string(name_of(value.dtype())) + value.shape().str();
}

/// The ops of a graph's nodes from node `first` on: "MatMul Add".
inline std::string ops_of(const Graph& graph, std::size_t first = 0) {
  std::string text;
  for (std::size_t i = first; i < graph.nodes().size(); ++i) text += (text.empty() ? "" : " ") + std::string(op_name(graph.nodes()[i].op));
  return text;
}

inline const NodeInfo& node_of(Value value) {
  return value.graph().nodes()[value.graph().info(value.id()).producer];
}

/// The axes of a reduction or the permutation of a Transpose.
inline std::vector<std::int64_t> axes_of(const NodeInfo& node) {
  const auto& attributes = node.attributes.as<tenon_attributes_axes>();
  return {attributes.axes, attributes.axes + attributes.count};
}

}  // namespace tenon::test
