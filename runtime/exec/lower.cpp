// SPDX-License-Identifier: Apache-2.0
#include "exec/lower.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "graph/op.h"

namespace tenon::exec {
namespace {

/// True if the op's line in ops.def allows an unused result to be absent: "indices:i64?", also in a repeated group, "(w:T velocity:T?)*".
bool may_be_absent(tenon_op op, std::size_t output) {
  std::string_view results = graph::schema_of(op);
  results = results.substr(0, results.find(';'));
  results.remove_prefix(results.find("-> ") + 3);
  for (; output > 0 && results.front() != '('; --output) {
    const std::size_t space = results.find(' ');
    if (space == results.npos) return false;
    results.remove_prefix(space + 1);
  }
  if (results.front() == '(') {
    results = results.substr(1, results.find(')') - 1);
    for (output %= static_cast<std::size_t>(std::ranges::count(results, ' ')) + 1; output > 0; --output) {
      results.remove_prefix(results.find(' ') + 1);
    }
  }
  return results.substr(0, results.find(' ')).back() == '?';
}

}  // namespace

std::vector<std::uint32_t> count_uses(const Graph& graph) {
  std::vector<std::uint32_t> uses(graph.values().size(), 0);
  for (const NodeInfo& node : graph.nodes()) {
    for (const ValueId v : node.inputs) {
      if (v != no_id) ++uses[v];
    }
  }
  for (const GraphOutput& output : graph.outputs()) ++uses[output.value];
  for (const GraphUpdate& update : graph.updates()) ++uses[update.value];
  return uses;
}

void lower(const Graph& graph, const std::vector<NodeId>& nodes, const std::vector<bool>& needed_outside,
           const std::vector<GraphUpdate>& donations, const std::vector<std::uint32_t>& uses, AbiGraph& out) {
  std::unordered_map<ValueId, std::uint32_t> abi_value_of;
  std::vector<bool> made_here(graph.values().size(), false);
  for (const NodeId n : nodes) {
    for (const ValueId v : graph.nodes()[n].outputs) {
      if (v != no_id) made_here[v] = true;
    }
  }
  const auto index_of = [&](ValueId v) -> std::uint32_t {
    if (v == no_id) return TENON_NO_INDEX;
    const auto [found, inserted] = abi_value_of.try_emplace(v, static_cast<std::uint32_t>(out.values.size()));
    if (!inserted) return found->second;
    const ValueInfo& info = graph.info(v);
    tenon_value value{};
    const std::int64_t* const strides = info.strides.empty() ? nullptr : info.strides.data();
    value.desc = {info.shape.data(), strides, static_cast<std::uint32_t>(info.shape.rank()), static_cast<tenon_dtype>(info.dtype)};
    value.binding = TENON_NO_INDEX;
    if (made_here[v]) {
      value.kind = needed_outside[v] ? TENON_VALUE_OUTPUT : TENON_VALUE_INTERNAL;
    } else if (info.kind == ValueKind::constant) {
      value.kind = TENON_VALUE_CONSTANT;
      value.data = info.constant.raw();
    } else {
      value.kind = info.kind == ValueKind::parameter ? TENON_VALUE_PARAMETER : TENON_VALUE_INPUT;
    }
    if (value.kind != TENON_VALUE_INTERNAL && value.kind != TENON_VALUE_CONSTANT) {
      value.binding = static_cast<std::uint32_t>(out.bound.size());
      out.bound.push_back(v);
    }
    out.values.push_back(value);
    return found->second;
  };
  const auto abi_value_list = [&](const std::vector<ValueId>& list, tenon_op op) -> const std::uint32_t* {
    std::vector<std::uint32_t>& indices = out.operands.emplace_back();
    for (std::size_t i = 0; i < list.size(); ++i) {
      const bool unread = op != TENON_OP_NONE && i > 0 && list[i] != no_id && uses[list[i]] == 0 && !needed_outside[list[i]];
      const bool absent = unread && may_be_absent(op, i);
      indices.push_back(absent ? TENON_NO_INDEX : index_of(list[i]));
    }
    return indices.data();
  };
  for (const NodeId n : nodes) {
    const NodeInfo& info = graph.nodes()[n];
    tenon_node node{};
    node.op = info.op;
    node.version = info.version;
    node.inputs = abi_value_list(info.inputs, TENON_OP_NONE);
    node.outputs = abi_value_list(info.outputs, info.op);
    node.input_count = static_cast<std::uint32_t>(info.inputs.size());
    node.output_count = static_cast<std::uint32_t>(info.outputs.size());
    node.attributes = info.attributes.data();
    node.name = info.name.c_str();
    node.id = out.program << 32 | info.id;
    out.nodes.push_back(node);
    out.node_ids.push_back(n);
  }
  for (const GraphUpdate& update : donations) {
    // A parameter that is never read has no ABI value yet; its address is that of the output.
    out.donations.push_back({index_of(update.parameter), index_of(update.value)});
  }
  out.graph.struct_size = sizeof out.graph;
  out.graph.value_count = static_cast<std::uint32_t>(out.values.size());
  out.graph.values = out.values.data();
  out.graph.value_stride = sizeof(tenon_value);
  out.graph.node_count = static_cast<std::uint32_t>(out.nodes.size());
  out.graph.nodes = out.nodes.data();
  out.graph.node_stride = sizeof(tenon_node);
  out.graph.donation_count = static_cast<std::uint32_t>(out.donations.size());
  out.graph.donations = out.donations.data();
  out.graph.binding_count = static_cast<std::uint32_t>(out.bound.size());
}

}  // namespace tenon::exec
