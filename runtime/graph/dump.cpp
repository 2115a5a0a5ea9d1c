// SPDX-License-Identifier: Apache-2.0
// dump.cpp - exports graphs as DOT for Graphviz and as JSON.
#include <fmt/format.h>

#include <tenon/graph.h>

#include "graph/op.h"
#include "yaml/json.h"

namespace tenon {
namespace {

std::int64_t bytes_of(const ValueInfo& value) {
  return value.shape.count() * size_of(value.dtype);
}

std::string type_of(const ValueInfo& value) {
  return std::string(name_of(value.dtype)) + value.shape.str();
}

const char* kind_of(ValueKind kind) {
  switch (kind) {
    case ValueKind::input:
      return "input";
    case ValueKind::parameter:
      return "parameter";
    case ValueKind::constant:
      return "constant";
    case ValueKind::computed:
      break;
  }
  return "computed";
}

std::string device_of(const DeviceByNode& devices, const NodeInfo& node) {
  const auto found = devices.find(node.name);
  return found == devices.end() ? node.device : found->second;
}

/// Escapes text for a DOT string.
std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

std::string to_dot(const Graph& graph, const DeviceByNode& devices) {
  std::string text =
      "digraph tenon {\n  rankdir=TB;\n  node [fontname=\"sans-serif\", fontsize=10];\n  edge [fontname=\"sans-serif\", fontsize=8];\n";
  std::vector<bool> read(graph.values().size());
  for (const NodeInfo& node : graph.nodes()) {
    for (const ValueId input : node.inputs) {
      if (input != no_id) read[input] = true;
    }
  }
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& value = graph.info(v);
    if (value.kind == ValueKind::computed || (value.kind == ValueKind::constant && !read[v])) continue;
    text += fmt::format("  v{} [shape={}, label=\"{} {}\\n{}\"];\n", v, value.kind == ValueKind::input ? "ellipse" : "cylinder",
                        kind_of(value.kind), escaped(value.name), type_of(value));
  }
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    const NodeInfo& node = graph.nodes()[n];
    std::int64_t bytes = 0;
    for (const ValueId output : node.outputs) bytes += output == no_id ? 0 : bytes_of(graph.info(output));
    const std::string device = device_of(devices, node);
    text += fmt::format("  n{} [shape=box, style=rounded, label=\"{}{}\\n{}{}\\n{} bytes\"];\n", n, op_name(node.op),
                        escaped(graph::attributes_str(node.op, node.attributes)), escaped(node.name),
                        device.empty() ? "" : "\\n@" + escaped(device), bytes);
    for (const ValueId input : node.inputs) {
      if (input == no_id) continue;
      const ValueInfo& value = graph.info(input);
      const std::string from = value.kind == ValueKind::computed ? fmt::format("n{}", value.producer) : fmt::format("v{}", input);
      text += fmt::format("  {} -> n{} [label=\"{}\"];\n", from, n, type_of(value));
    }
  }
  const auto source = [&](ValueId id) {
    return graph.info(id).kind == ValueKind::computed ? fmt::format("n{}", graph.info(id).producer) : fmt::format("v{}", id);
  };
  for (std::size_t i = 0; i < graph.outputs().size(); ++i) {
    const GraphOutput& output = graph.outputs()[i];
    text += fmt::format("  o{} [shape=ellipse, style=bold, label=\"output {}\"];\n  {} -> o{} [label=\"{}\"];\n", i, escaped(output.name),
                        source(output.value), i, type_of(graph.info(output.value)));
  }
  for (const GraphUpdate& update : graph.updates()) {
    text += fmt::format("  {} -> v{} [style=dashed, label=\"update\"];\n", source(update.value), update.parameter);
  }
  return text + "}\n";
}

std::string to_json(const Graph& graph, const DeviceByNode& devices) {
  const auto list = [](const std::vector<ValueId>& ids) {
    Json array = Json::array();
    for (const ValueId id : ids) array.push_back(id == no_id ? Json(nullptr) : Json(id));
    return array;
  };
  Json values = Json::array();
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& value = graph.info(v);
    Json shape = Json::array();
    for (std::size_t d = 0; d < value.shape.rank(); ++d) shape.push_back(value.shape[d]);
    values.push_back({{"id", v},
                      {"name", value.name},
                      {"kind", kind_of(value.kind)},
                      {"dtype", name_of(value.dtype)},
                      {"shape", shape},
                      {"bytes", bytes_of(value)}});
  }
  Json nodes = Json::array();
  for (const NodeInfo& node : graph.nodes()) {
    std::int64_t bytes = 0;
    for (const ValueId output : node.outputs) bytes += output == no_id ? 0 : bytes_of(graph.info(output));
    std::string attributes = graph::attributes_str(node.op, node.attributes);
    if (!attributes.empty()) attributes.erase(0, 1);
    nodes.push_back({{"id", node.id},
                     {"name", node.name},
                     {"op", op_name(node.op)},
                     {"version", node.version},
                     {"attributes", attributes},
                     {"inputs", list(node.inputs)},
                     {"outputs", list(node.outputs)},
                     {"device", device_of(devices, node)},
                     {"output_bytes", bytes}});
  }
  Json outputs = Json::array(), updates = Json::array();
  for (const GraphOutput& output : graph.outputs()) outputs.push_back({{"name", output.name}, {"value", output.value}});
  for (const GraphUpdate& update : graph.updates()) updates.push_back({{"parameter", update.parameter}, {"value", update.value}});
  return json_text({{"values", values}, {"nodes", nodes}, {"outputs", outputs}, {"updates", updates}}, 1) + "\n";
}

}  // namespace tenon
