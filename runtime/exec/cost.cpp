// SPDX-License-Identifier: Apache-2.0
#include "exec/cost.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "graph/op.h"

namespace tenon::exec {
namespace {

std::uint64_t bytes_of(const Graph& graph, ValueId v) {
  return v == no_id ? 0 : static_cast<std::uint64_t>(graph.info(v).shape.count() * size_of(graph.info(v).dtype));
}

/// The ops of a group of elementwise nodes that runs as one kernel: "Mul+Add+Relu" has Mul, Add and Relu. Empty for other kernels, whose
/// fused parts have names in lower case, as in "Conv+bias+relu"; a vendor's op has a dot in its name. A name that the record cut, which
/// ends in "...", is left out.
std::vector<std::string_view> ops_of_group(std::string_view algorithm) {
  std::vector<std::string_view> ops;
  bool is_group = false;
  while (!algorithm.empty()) {
    const std::string_view op = algorithm.substr(0, algorithm.find('+'));
    algorithm.remove_prefix(op.size());
    is_group = is_group || !algorithm.empty();
    if (!algorithm.empty()) algorithm.remove_prefix(1);
    if (op.ends_with("...")) continue;
    const bool named = !op.empty() && (std::isupper(static_cast<unsigned char>(op[0])) != 0 || op.find('.') != std::string_view::npos);
    if (!named) return {};
    ops.push_back(op);
  }
  return is_group ? ops : std::vector<std::string_view>{};
}

}  // namespace

Cost cost_of(const Graph& graph, const std::vector<NodeId>& nodes) {
  const std::unordered_set<NodeId> inside(nodes.begin(), nodes.end());
  std::unordered_set<ValueId> counted;
  Cost cost;
  for (const NodeId n : nodes) {
    const NodeInfo& node = graph.nodes()[n];
    cost.flops += static_cast<std::uint64_t>(graph::rules_of(node.op).flops(graph, node));
    const graph::Indexing indexing = graph::indexing_of(node.op);
    // Of operand 0 such a node reads no more than it writes.
    const bool selects = indexing == graph::Indexing::slice || indexing == graph::Indexing::gather;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (v == no_id || !counted.insert(v).second || inside.contains(graph.info(v).producer)) continue;
      cost.size_bytes += selects && i == 0 ? std::min(bytes_of(graph, v), bytes_of(graph, node.outputs[0])) : bytes_of(graph, v);
    }
  }
  // A value that other nodes read must be written.
  std::unordered_set<ValueId> read_outside;
  for (NodeId n = 0; n < graph.nodes().size(); ++n) {
    if (inside.contains(n)) continue;
    for (const ValueId v : graph.nodes()[n].inputs) {
      if (v != no_id && inside.contains(graph.info(v).producer)) read_outside.insert(v);
    }
  }
  for (const GraphOutput& output : graph.outputs()) read_outside.insert(output.value);
  for (const GraphUpdate& update : graph.updates()) read_outside.insert(update.value);
  for (const NodeId n : nodes) {
    for (const ValueId v : graph.nodes()[n].outputs) {
      if (v != no_id && (nodes.size() == 1 || read_outside.contains(v))) cost.size_bytes += bytes_of(graph, v);
    }
  }
  return cost;
}

DType arithmetic_dtype(const Graph& graph, const std::vector<NodeId>& nodes) {
  DType dtype = DType::f32;
  std::int64_t most = -1;
  for (const NodeId n : nodes) {
    const NodeInfo& node = graph.nodes()[n];
    const auto flops = static_cast<std::int64_t>(graph::rules_of(node.op).flops(graph, node));
    if (node.inputs.empty() || node.inputs[0] == no_id || flops <= most) continue;
    const auto several = std::ranges::find_if(node.inputs, [&](ValueId v) { return v != no_id && graph.info(v).shape.count() > 1; });
    dtype = graph.info(several == node.inputs.end() ? node.inputs[0] : *several).dtype;
    most = flops;
  }
  return dtype;
}

std::vector<std::vector<NodeId>> kernel_nodes(const Graph& graph, const std::vector<NodeId>& nodes,
                                              std::span<const tenon_profile_record> records) {
  constexpr std::size_t none = ~std::size_t{0};
  std::vector<std::vector<NodeId>> result(records.size());
  std::vector<std::size_t> missing(records.size(), 0);
  std::vector<std::vector<std::string_view>> groups(records.size());  // ops of a group that are not found yet
  std::unordered_map<NodeId, std::size_t> kernel_of;
  std::unordered_map<NodeId, std::size_t> position;  // in `nodes`, which are in the order of a run
  for (const NodeId n : nodes) position.emplace(n, position.size());
  const auto find_op = [&](std::size_t k, NodeId n) { return std::ranges::find(groups[k], op_name(graph.nodes()[n].op)); };
  const auto add = [&](std::size_t k, NodeId n) {
    kernel_of[n] = k;
    result[k].push_back(n);
    if (const auto op = find_op(k, n); op != groups[k].end()) groups[k].erase(op);
  };
  for (const NodeId n : nodes) kernel_of[n] = none;
  for (std::size_t r = 0; r < records.size(); ++r) groups[r] = ops_of_group(records[r].algorithm);
  const auto node_of = [&](std::size_t r) { return records[r].node < nodes.size() ? nodes[records[r].node] : no_id; };
  const auto claim = [&](std::size_t r, NodeId n) {
    missing[r] = records[r].fused_count > 0 ? records[r].fused_count - 1 : 0;
    add(r, n);
  };
  // First the records that are named after the node's op, then groups that have it, as Cast+Mul+Cast of a Mul whose operand a Cast
  // converts.
  for (const bool by_group : {false, true}) {
    for (std::size_t r = 0; r < records.size(); ++r) {
      const NodeId n = node_of(r);
      if (n == no_id || kernel_of[n] != none) continue;
      const std::string_view algorithm = records[r].algorithm, op = op_name(graph.nodes()[n].op);
      if (by_group ? std::ranges::find(groups[r], op) != groups[r].end() : algorithm.starts_with(op)) claim(r, n);
    }
  }
  std::unordered_map<ValueId, std::vector<NodeId>> readers;
  for (const NodeId n : nodes) {
    for (const ValueId v : graph.nodes()[n].inputs) {
      if (v != no_id) readers[v].push_back(n);
    }
  }
  const auto wanting = [&](NodeId n) {
    const auto found = kernel_of.find(n);
    return found != kernel_of.end() && found->second != none && missing[found->second] > 0 ? found->second : none;
  };
  // The record of a group is that of its last node: other members come before it, and their ops are in its name.
  const auto is_member = [&](std::size_t k, NodeId n) { return position[n] < position[result[k][0]] && find_op(k, n) != groups[k].end(); };
  const auto neighbour = [&](NodeId n, bool members) {
    const NodeInfo& node = graph.nodes()[n];
    const auto fits = [&](std::size_t k) { return k != none && (!members || is_member(k, n)); };
    for (const ValueId v : node.inputs) {
      if (v == no_id || graph.info(v).producer == no_id) continue;
      if (const std::size_t k = wanting(graph.info(v).producer); fits(k)) return k;
    }
    for (const ValueId v : node.outputs) {
      if (v == no_id) continue;
      for (const NodeId reader : readers[v]) {
        if (const std::size_t k = wanting(reader); fits(k)) return k;
      }
    }
    return none;
  };
  const auto is_reshape = [&](NodeId n) { return graph::indexing_of(graph.nodes()[n].op) == graph::Indexing::reshape; };
  const auto before_reshapes = [&](ValueId v) {
    while (graph.info(v).producer != no_id && is_reshape(graph.info(v).producer)) v = graph.nodes()[graph.info(v).producer].inputs[0];
    return v;
  };
  // A kernel that reads what the node reads.
  const auto sibling = [&](const NodeInfo& node) {
    for (const ValueId v : node.inputs) {
      if (v == no_id) continue;
      for (const NodeId other : nodes) {
        if (wanting(other) == none) continue;
        const auto& read = graph.nodes()[other].inputs;
        const bool reads = std::ranges::any_of(read, [&](ValueId w) { return w != no_id && before_reshapes(w) == before_reshapes(v); });
        if (reads) return wanting(other);
      }
    }
    return none;
  };
  struct Pass {
    bool members, views, siblings;
  };
  const auto find_kernels = [&](const Pass& pass) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const NodeId n : nodes) {
        if (kernel_of[n] != none || is_reshape(n) != pass.views) continue;
        std::size_t k = neighbour(n, pass.members);  // also of a sibling that was just found
        if (k == none && pass.siblings) k = sibling(graph.nodes()[n]);
        if (k == none) continue;
        add(k, n);
        --missing[k];
        changed = true;
      }
    }
  };
  // What names tell comes first: the records of a node that a group has computed are conversions.
  find_kernels({.members = true, .views = false, .siblings = false});
  // Of other names the record that has the most nodes is not the conversion, nor is a group whose name was cut before the node's op.
  const auto likelihood = [&](std::size_t r) { return std::pair(records[r].fused_count, !groups[r].empty()); };
  std::unordered_map<NodeId, std::size_t> likeliest;
  for (std::size_t r = 0; r < records.size(); ++r) {
    const NodeId n = node_of(r);
    if (n == no_id || kernel_of[n] != none) continue;
    const auto [found, inserted] = likeliest.emplace(n, r);
    if (!inserted && likelihood(r) > likelihood(found->second)) found->second = r;
  }
  for (std::size_t r = 0; r < records.size(); ++r) {
    const NodeId n = node_of(r);
    if (n != no_id && kernel_of[n] == none && likeliest.at(n) == r) claim(r, n);
  }
  // Views without a kernel of their own come last.
  for (const Pass& pass :
       {Pass{.members = true, .views = false, .siblings = false}, Pass{.members = false, .views = false, .siblings = false},
        Pass{.members = false, .views = false, .siblings = true}, Pass{.members = false, .views = true, .siblings = false}}) {
    find_kernels(pass);
  }
  return result;
}

std::vector<Cost> kernel_costs(const Graph& graph, const std::vector<NodeId>& nodes, std::span<const tenon_profile_record> records,
                               const std::vector<std::vector<NodeId>>& kernels) {
  std::vector<Cost> costs(records.size());
  std::unordered_map<std::uint32_t, std::vector<std::uint64_t>> operands, results;  // per node: sizes that are not converted yet
  const auto largest_of = [&](std::vector<std::uint64_t>& sizes, const std::vector<ValueId>& values) {
    if (sizes.empty()) {
      for (const ValueId v : values) sizes.push_back(bytes_of(graph, v));
      std::ranges::sort(sizes);
    }
    if (sizes.empty()) return std::uint64_t{0};
    const std::uint64_t size = sizes.back();
    sizes.pop_back();
    return size;
  };
  std::unordered_set<std::uint32_t> computed;  // nodes whose kernel has run
  for (std::size_t r = 0; r < records.size(); ++r) {
    costs[r] = cost_of(graph, kernels[r]);
    const std::uint32_t n = records[r].node;
    if (n >= nodes.size()) continue;
    const NodeInfo& node = graph.nodes()[nodes[n]];
    if (!kernels[r].empty()) {
      computed.insert(n);
    } else {
      costs[r].size_bytes = 2 * (computed.contains(n) ? largest_of(results[n], node.outputs) : largest_of(operands[n], node.inputs));
    }
  }
  return costs;
}

}  // namespace tenon::exec
