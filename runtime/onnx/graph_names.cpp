// SPDX-License-Identifier: Apache-2.0
#include "onnx/graph_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <unordered_map>

#include <tenon/error.h>

namespace tenon::onnx {

std::string scope_name(const NodeRecord& node) {
  std::string_view name = node.name.empty() && !node.outputs.empty() ? node.outputs[0] : node.name;
  while (!name.empty() && name.front() == '/') name.remove_prefix(1);
  return std::string(name.empty() ? node.op : name);
}

std::string label_of(std::string_view file, const NodeRecord& node) {
  return fmt::format("{}: node '{}' ({})", file, scope_name(node), node.op);
}

std::set<std::string_view> names_of(const GraphRecord& graph) {
  std::set<std::string_view> names;
  for (const ValueRecord& input : graph.inputs) names.insert(input.name);
  for (const TensorRecord& record : graph.initializers) names.insert(record.name);
  for (const SparseTensorRecord& record : graph.sparse_initializers) names.insert(record.values.name);
  for (const NodeRecord& node : graph.nodes) names.insert(node.outputs.begin(), node.outputs.end());
  return names;
}

std::set<std::string_view> names_behind(const GraphRecord& graph, std::span<const std::string> values, const InputTypes& given) {
  std::unordered_map<std::string_view, const NodeRecord*> producers;
  for (const NodeRecord& node : graph.nodes) {
    for (const std::string_view name : node.outputs) producers.try_emplace(name, &node);
  }
  std::set<std::string_view> names(values.begin(), values.end());
  std::vector<std::string_view> open(values.begin(), values.end());
  while (!open.empty()) {
    const auto producer = producers.find(open.back());
    const bool is_given = given.contains(std::string(open.back()));
    open.pop_back();
    if (producer == producers.end() || is_given) continue;
    for_each_read(*producer->second, [&](std::string_view name) {
      if (names.insert(name).second) open.push_back(name);
    });
  }
  return names;
}

std::vector<const NodeRecord*> sort_nodes(const std::vector<NodeRecord>& nodes, std::string_view file) {
  std::unordered_map<std::string_view, std::size_t> producers;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for (const std::string_view output : nodes[n].outputs) {
      if (!output.empty()) producers.try_emplace(output, n);
    }
  }
  // What a node waits for: earlier and later ones alike. Names of other graphs, and of values in a subgraph, have no producer here.
  std::vector<std::size_t> waits(nodes.size());
  std::vector<std::vector<std::size_t>> readers(nodes.size());
  bool sorted = true;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    for_each_read(nodes[n], [&](std::string_view name) {
      const auto producer = producers.find(name);
      if (producer == producers.end()) return;
      sorted = sorted && producer->second < n;
      ++waits[n];
      readers[producer->second].push_back(n);
    });
  }
  std::vector<const NodeRecord*> order;
  if (sorted) {
    for (const NodeRecord& node : nodes) order.push_back(&node);
    return order;
  }
  std::vector<std::size_t> ready;
  for (std::size_t n = nodes.size(); n-- > 0;) {
    if (waits[n] == 0) ready.push_back(n);
  }
  while (!ready.empty()) {
    const std::size_t n = ready.back();
    ready.pop_back();
    order.push_back(&nodes[n]);
    for (const std::size_t reader : readers[n]) {
      if (--waits[reader] == 0) ready.push_back(reader);
    }
  }
  if (order.size() < nodes.size()) {
    const auto stuck = static_cast<std::size_t>(std::ranges::find_if(waits, [](std::size_t n) { return n > 0; }) - waits.begin());
    throw Error(
        fmt::format("{} reads a value that depends on its own result: expected a graph without cycles", label_of(file, nodes[stuck])));
  }
  return order;
}

}  // namespace tenon::onnx
