// SPDX-License-Identifier: Apache-2.0
// passes.cpp - dead code and common subexpression elimination.
#include "graph/passes.h"

#include <string>
#include <unordered_map>
#include <utility>

#include "graph/collectives.h"

namespace tenon::graph {
namespace {

/// Appends a number or an array of them byte by byte: keys are compared whole, so that equal keys mean equal things.
template <class T>
void append(std::string& key, const T* values, std::size_t count) {
  key.append(reinterpret_cast<const char*>(values), count * sizeof(T));
}
template <class T>
void append(std::string& key, T value) {
  append(key, &value, 1);
}
void append(std::string& key, DType dtype, const Shape& shape) {
  append(key, dtype);
  append(key, shape.rank());
  append(key, shape.data(), shape.rank());
}

std::string key_of(const GraphEditor& editor, const NodeInfo& node) {
  std::string key;
  append(key, node.op);
  append(key, node.version);
  append(key, static_cast<const char*>(node.attributes.data()), Attributes::capacity);
  append(key, node.inputs.size());
  append(key, node.inputs.data(), node.inputs.size());
  // the shape of a Reshape or a random tensor is in the result only
  for (ValueId output : node.outputs) {
    append(key, output == no_id);
    if (output != no_id) append(key, editor.info(output).dtype, editor.info(output).shape);
  }
  return key + node.device;
}

}  // namespace

Graph eliminate_dead_code(Graph graph) {
  GraphEditor(graph).finish();
  return graph;
}

Graph eliminate_common_subexpressions(Graph graph) {
  GraphEditor editor(graph);
  std::unordered_map<std::string, ValueId> constants;
  for (ValueId id = 0; id < editor.values().size(); ++id) {
    const ValueInfo& value = editor.info(id);
    if (value.kind != ValueKind::constant || value.shape.count() != 1) continue;
    std::string key;
    append(key, value.dtype, value.shape);
    append(key, static_cast<const char*>(value.constant.raw()), static_cast<std::size_t>(value.constant.size_bytes()));
    const auto found = constants.try_emplace(std::move(key), id).first;
    if (found->second != id) editor.redirect(id, found->second);
  }
  std::unordered_map<std::string, NodeId> nodes;
  for (NodeId id = 0; id < editor.node_count(); ++id) {
    const NodeInfo& node = editor.node(id);
    if (is_collective(node.op)) continue;  // equal operands here may differ on another rank
    const auto found = nodes.try_emplace(key_of(editor, node), id).first;
    if (found->second == id) continue;
    const NodeInfo& first = editor.node(found->second);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != no_id) editor.redirect(node.outputs[i], first.outputs[i]);
    }
  }
  editor.finish();
  return graph;
}

std::vector<bool> fixed_values(const Graph& graph, const std::set<std::string>& fixed) {
  std::vector<bool> result;
  for (const ValueInfo& value : graph.values()) {
    const bool is_parameter = value.kind == ValueKind::parameter && (graph.updates().empty() || fixed.contains(value.name));
    result.push_back(is_parameter || value.kind == ValueKind::constant);
  }
  for (const GraphUpdate& update : graph.updates()) result[update.parameter] = false;
  return result;
}

Graph optimize(Graph graph, const std::set<std::string>& fixed) {
  // rewrites can make nodes equal that read the same value through different paths
  graph = fold_batch_norm(update_rows(simplify(stabilize(eliminate_dead_code(std::move(graph))))), fixed);
  return eliminate_common_subexpressions(fuse_quantized(std::move(graph)));
}

}  // namespace tenon::graph
