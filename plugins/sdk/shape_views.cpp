// SPDX-License-Identifier: Apache-2.0
// shape_views.cpp - shape ops as views of their inputs, and copies of views for kernels that need dense operands.
#include "graph_uses.h"
#include "operands.h"
#include "plan.h"
#include "plan_passes.h"

namespace tenon::sdk {
namespace {

/// A listed shape op: its operands have been checked.
bool is_view_op(const Node& node) {
  const Indexing indexing = indexing_of(node);
  return indexing == Indexing::reshape || indexing == Indexing::transpose || indexing == Indexing::expand;
}

}  // namespace

bool view_strides(const GraphModel& graph, const Node& node, Value& view) {
  const Value& x = graph.values[node.inputs[0]];
  switch (indexing_of(node)) {
    case Indexing::reshape:
      return x.dense;  // the view keeps its own dense strides
    case Indexing::transpose: {
      const auto& perm = *reinterpret_cast<const tenon_attributes_axes*>(node.attributes.data());
      for (std::uint32_t i = 0; i < view.rank; ++i) view.strides[i] = x.strides[perm.axes[i]];
      return true;
    }
    default: {  // expand: missing and unit dimensions are repeated
      const std::uint32_t added = view.rank - x.rank;
      for (std::uint32_t i = 0; i < view.rank; ++i) {
        view.strides[i] = i < added || (x.shape[i - added] == 1 && view.shape[i] != 1) ? 0 : x.strides[i - added];
      }
      return true;
    }
  }
}

Node copy_node(const GraphModel& graph, const KernelRow* rows, std::uint32_t from, std::uint32_t to, const Node& on_behalf_of) {
  const Value& x = graph.values[from];
  Node copy;
  copy.op = TENON_OP_Reshape;
  copy.version = 14;
  copy.index = on_behalf_of.index;
  copy.id = on_behalf_of.id;
  copy.inputs = {from};
  copy.outputs = {to};
  copy.attributes = {sizeof(tenon_attributes_none)};
  copy.row = find_copier(rows, x);
  if (copy.row == nullptr) {
    throw MissingCopy(on_behalf_of, op_name(on_behalf_of) +
                                        ": writes over a donated input that is read with or after it, and a copy of that " +
                                        name_of(x.dtype) + (x.dense ? "" : " with strides") + " needs a Reshape kernel");
  }
  copy.function = copy.row->kernel->functions[x.dtype];
  return copy;
}

void resolve_views(GraphModel& graph) {
  const GraphUses uses(graph);  // before any view exists: readers of each value itself
  std::vector<bool> overwritten(graph.values.size(), false);
  for (const tenon_donation& d : graph.donations) overwritten[d.input] = true;
  std::vector<Node> kept;
  kept.reserve(graph.nodes.size());
  for (Node& node : graph.nodes) {
    if (is_view_op(node) && graph.values[node.outputs[0]].kind == TENON_VALUE_INTERNAL) {
      Value view = graph.values[node.outputs[0]];
      const std::uint32_t root = graph.values[node.inputs[0]].root;
      // A donated input may have to be read from a dense copy, whose views have other strides than those of a strided input.
      bool possible = (graph.values[root].dense || !overwritten[root]) && view_strides(graph, node, view);
      view.update_dense();
      if (possible && !view.dense) {
        possible = !node.requires_copy;
        for (const Read& read : uses.readers[node.outputs[0]]) possible = possible && graph.nodes[read.node].row->kernel->traits.strided;
      }
      if (possible) {
        view.root = root;
        graph.values[node.outputs[0]] = view;
        continue;
      }
    }
    kept.push_back(node);  // a copy, because `uses` still refers to the original list
  }
  graph.nodes = std::move(kept);
}

void make_dense(GraphModel& graph, const KernelRow* rows) {
  std::vector<Node> result;
  std::vector<std::uint32_t> dense_copy(graph.values.size(), none);
  for (Node& node : graph.nodes) {
    if (!node.row->kernel->traits.strided) {
      for (std::uint32_t& v : node.inputs) {
        if (v == none || graph.values[v].dense) continue;
        if (dense_copy[v] == none) {
          dense_copy[v] = graph.add_dense_copy(v);
          result.push_back(copy_node(graph, rows, v, dense_copy[v], node));
        }
        v = dense_copy[v];
      }
    }
    result.push_back(std::move(node));
  }
  graph.nodes = std::move(result);
}

}  // namespace tenon::sdk
