// SPDX-License-Identifier: Apache-2.0
// widen.cpp - f16 and bf16 as storage: operands are converted, the f32 kernel computes, results are converted back.
#include <cstring>

#include "passes/passes.h"
#include "plan.h"

namespace tenon::sdk {
namespace {

/// y = x in y's dtype, by the backend's own Cast.
Node cast_node(const GraphModel& graph, const KernelRow* rows, std::uint32_t from, std::uint32_t to, const Node& on_behalf_of) {
  tenon_attributes_cast attributes{};
  attributes.struct_size = sizeof attributes;
  attributes.to = graph.values[to].dtype;
  Node cast;
  cast.op = TENON_OP_Cast;
  cast.version = 13;
  cast.index = on_behalf_of.index;
  cast.id = on_behalf_of.id;
  cast.fused_count = 0;
  cast.inputs = {from};
  cast.outputs = {to};
  cast.attributes.resize((sizeof attributes + 7) / 8);
  std::memcpy(cast.attributes.data(), &attributes, sizeof attributes);
  cast.row = find_row(rows, TENON_OP_Cast, 13);
  cast.function = cast.row->kernel->functions[graph.values[from].dtype];
  return cast;
}

std::uint32_t add_wide_value(GraphModel& graph, std::uint32_t of) {
  const std::uint32_t wide = graph.add_dense_copy(of);
  graph.values[wide].dtype = TENON_DTYPE_F32;
  return wide;
}

}  // namespace

bool widens(const KernelRow* rows, const KernelRow& row, tenon_dtype dtype) {
  if (!is_half(dtype) || row.kernel->functions[dtype] != nullptr || row.kernel->functions[TENON_DTYPE_F32] == nullptr) return false;
  const KernelRow* cast = find_row(rows, TENON_OP_Cast, 13);
  return cast != nullptr && cast->kernel->functions[dtype] != nullptr && cast->kernel->functions[TENON_DTYPE_F32] != nullptr;
}

bool is_widening(const GraphModel& graph, const Node& node) {
  return node.is(TENON_OP_Cast) && is_half(graph.values[node.inputs[0]].dtype) && graph.values[node.outputs[0]].dtype == TENON_DTYPE_F32;
}

void widen(GraphModel& graph, const KernelRow* rows) {
  std::vector<Node> result;
  std::vector<std::uint32_t> wide_values(graph.values.size(), none);  // per value: its f32 copy, made once
  for (Node& node : graph.nodes) {
    if (!node.widened) {
      result.push_back(std::move(node));
      continue;
    }
    for (std::uint32_t& v : node.inputs) {
      if (v == none || !is_half(graph.values[v].dtype)) continue;
      if (wide_values[v] == none) {
        wide_values[v] = add_wide_value(graph, v);
        result.push_back(cast_node(graph, rows, v, wide_values[v], node));
      }
      v = wide_values[v];
    }
    std::vector<Node> narrowing;
    for (std::uint32_t& v : node.outputs) {
      if (v == none || !is_half(graph.values[v].dtype)) continue;
      const std::uint32_t wide = add_wide_value(graph, v);
      narrowing.push_back(cast_node(graph, rows, wide, v, node));
      v = wide;
    }
    result.push_back(std::move(node));
    for (Node& cast : narrowing) result.push_back(std::move(cast));
  }
  graph.nodes = std::move(result);
}

}  // namespace tenon::sdk
