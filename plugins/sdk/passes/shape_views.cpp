// SPDX-License-Identifier: Apache-2.0
// shape_views.cpp - shape ops as views of their inputs, and copies of views for kernels that need dense operands.
#include "operands.h"
#include "passes/graph_uses.h"
#include "passes/passes.h"
#include "plan.h"

namespace tenon::sdk {
namespace {

/// A listed shape op: its operands have been checked.
bool is_view_op(const Node& node) {
  const Indexing indexing = indexing_of(node);
  return indexing == Indexing::reshape || indexing == Indexing::transpose || indexing == Indexing::expand;
}

/// Strides of a value of x's elements in order with the view's shape; false if there are none: a dimension would join elements of x that
/// are not evenly spaced.
bool reshape_strides(const Value& x, Value& view) {
  if (x.count == 0) return false;
  // From the last dimension on, runs of dimensions of x that are evenly spaced are divided among those of the view.
  auto next = static_cast<std::int64_t>(view.rank) - 1;
  std::int64_t run = 1, run_stride = x.rank == 0 ? 1 : x.strides[x.rank - 1];
  for (std::uint32_t d = x.rank; d-- > 0;) {
    run *= x.shape[d];
    const std::int64_t begin = run * run_stride;  // the stride of a dimension that continues the run
    if (d > 0 && (x.shape[d - 1] == 1 || x.strides[d - 1] == begin)) continue;
    std::int64_t given = 1;
    while (next >= 0 && (given < run || view.shape[next] == 1)) {
      view.strides[next] = given * run_stride;
      given *= view.shape[next--];
    }
    if (given != run) return false;
    run = 1;
    if (d > 0) run_stride = x.strides[d - 1];
  }
  while (next >= 0) view.strides[next--] = 1;  // dimensions of one element
  return true;
}

}  // namespace

bool reads_strides(const GraphModel& graph, const Node& node, std::uint32_t v, std::vector<Operand>& operands) {
  const Traits& traits = node.row->kernel->traits;
  if (traits.strided) return true;
  if (traits.takes_view == nullptr) return false;
  const Call call = describe(graph, node, operands);
  for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] == v && !traits.takes_view(call, i)) return false;
  }
  return true;
}

bool view_strides(const Node& node, const Value& x, Value& view) {
  switch (indexing_of(node)) {
    case Indexing::reshape:
      return x.dense || reshape_strides(x, view);  // of a dense value, the view keeps its own dense strides
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
  copy.fused_count = 0;
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
  std::vector<Operand> operands;
  for (Node& node : graph.nodes) {
    if (is_view_op(node) && graph.values[node.outputs[0]].kind == TENON_VALUE_INTERNAL) {
      Value view = graph.values[node.outputs[0]];
      const std::uint32_t root = graph.values[node.inputs[0]].root;
      // A donated input may have to be read from a dense copy, whose views have other strides than those of a strided input.
      bool possible = (graph.values[root].dense || !overwritten[root]) && view_strides(node, graph.values[node.inputs[0]], view);
      view.update_dense();
      view.root = root;
      if (possible) {
        std::swap(graph.values[node.outputs[0]], view);
        if (graph.values[node.outputs[0]].dense) continue;
        possible = !node.requires_copy;
        for (const auto& [reader, v] : uses.readers[node.outputs[0]])
          possible = possible && reads_strides(graph, graph.nodes[reader], v, operands);
        if (possible) continue;
        std::swap(graph.values[node.outputs[0]], view);
      }
    }
    kept.push_back(node);  // a copy, because `uses` still refers to the original list
    if (graph.options.fusion == TENON_FUSION_FULL && compute_in_memory_order(graph, uses, kept.back())) {
      overwritten.resize(graph.values.size(), false);
    }
  }
  graph.nodes = std::move(kept);
}

void make_dense(GraphModel& graph, const KernelRow* rows) {
  std::vector<Node> result;
  std::vector<std::uint32_t> dense_copy(graph.values.size(), none);
  std::vector<Operand> operands;
  for (Node& node : graph.nodes) {
    if (!node.row->kernel->traits.strided) {
      for (std::uint32_t& v : node.inputs) {
        if (v == none || graph.values[v].dense || reads_strides(graph, node, v, operands)) continue;
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
