// SPDX-License-Identifier: Apache-2.0
// onnx/graph_names.h - the names in an ONNX graph: of nodes, of the values that they read and define, and the order that follows from them.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <tenon/onnx.h>

#include "onnx/records.h"

namespace tenon::onnx {

/// "layer1/conv1/Conv" of "/layer1/conv1/Conv".
std::string scope_name(const NodeRecord& node);

/// "net.onnx: node 'conv1' (Conv)", with which errors begin.
std::string label_of(std::string_view file, const NodeRecord& node);

/// The names that a graph defines.
std::set<std::string_view> names_of(const GraphRecord& graph);

/// The names that the values depend on, themselves included: of nodes, inputs and initializers of the graph. What `given` has is not
/// computed.
std::set<std::string_view> names_behind(const GraphRecord& graph, std::span<const std::string> values, const InputTypes& given = {});

/// The nodes so that each comes after those whose results it reads; as they are if that holds already. Errors  a cycle; `file` is named.
std::vector<const NodeRecord*> sort_nodes(const std::vector<NodeRecord>& nodes, std::string_view file);

/// Calls f with each name that a node, or a graph in it, reads from outside.
template <class F>
void for_each_read(const NodeRecord& node, const F& f) {
  for (const std::string_view name : node.inputs) {
    if (!name.empty()) f(name);
  }
  for (const AttributeRecord& attribute : node.attributes) {
    for (const GraphRecord& graph : attribute.graphs) {
      for (const NodeRecord& inner : graph.nodes) for_each_read(inner, f);
      for (const ValueRecord& output : graph.outputs) f(output.name);
    }
  }
}

}  // namespace tenon::onnx
