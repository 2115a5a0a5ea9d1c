// SPDX-License-Identifier: Apache-2.0
// transposed_elementwise.cpp - elementwise ops of transposed operands, computed in the order in which these lie in memory.
#include <algorithm>
#include <array>
#include <numeric>

#include "operands.h"
#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// The dimensions of a value, from the largest stride to the smallest; those of one element keep their places among equal strides.
std::array<std::uint32_t, TENON_MAX_RANK> order_of(const Value& x) {
  std::array<std::uint32_t, TENON_MAX_RANK> order{};
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.begin() + x.rank, [&x](std::uint32_t a, std::uint32_t b) { return x.strides[a] > x.strides[b]; });
  return order;
}

/// A view with the dimensions in another order. `x` may have fewer dimensions than `rank`: it is broadcast.
Value permuted(const Value& x, const std::array<std::uint32_t, TENON_MAX_RANK>& order, std::uint32_t rank) {
  Value view = x;
  view.rank = rank;
  const std::uint32_t added = rank - x.rank;
  for (std::uint32_t d = 0; d < rank; ++d) {
    view.shape[d] = order[d] < added ? 1 : x.shape[order[d] - added];
    view.strides[d] = order[d] < added ? 0 : x.strides[order[d] - added];
  }
  view.update_dense();
  view.kind = TENON_VALUE_INTERNAL;
  view.binding = none;
  view.data = nullptr;
  view.packed = nullptr;
  return view;
}

/// Whether all elements of a transposed value lie in memory without gaps.
bool is_transposed(const Value& x) {
  return !x.dense && x.count > 1 && permuted(x, order_of(x), x.rank).dense;
}

bool same_strides(const Value& a, const Value& b) {
  return same_shape(a, b) && std::equal(a.strides, a.strides + a.rank, b.strides);
}

/// What the result of an elementwise node is when it has the order of `x`.
Value in_order_of(const Value& x, Value result) {
  std::copy(x.strides, x.strides + x.rank, result.strides);
  result.dense = false;
  return result;
}

/// Whether the node may have to read a dense copy of a donated input that is not dense: views of the copy have other strides.
bool may_read_copy(const GraphModel& graph, const Node& node) {
  return std::any_of(graph.donations.begin(), graph.donations.end(), [&](const tenon_donation& d) {
    return !graph.values[d.input].dense && std::any_of(node.inputs.begin(), node.inputs.end(),
                                                       [&](std::uint32_t v) { return v != none && graph.values[v].root == d.input; });
  });
}

/// Decides which nodes compute in the order of memory.
class MemoryOrder {
 public:
  MemoryOrder(const GraphModel& graph, const GraphUses& uses) : graph_(graph), uses_(uses) {}

  /// Whether a node can compute in the order of its operand v, which has the layout x, and all that reads the result takes a dense view of
  /// it, perhaps after further elementwise nodes.
  bool gains(const Node& node, std::uint32_t v, const Value& x, int depth = 0) const {
    constexpr int max_depth = 8;  // nodes after this one; a value that is read twice doubles the work
    if (depth > max_depth || indexing_of(node) != Indexing::pointwise || node.outputs.size() != 1 || node.outputs[0] == none) return false;
    const Value& result = graph_.values[node.outputs[0]];
    if (result.kind != TENON_VALUE_INTERNAL || result.root != node.outputs[0] || uses_.donated[node.outputs[0]] || !same_shape(x, result))
      return false;
    const auto order = order_of(x);
    for (const std::uint32_t input : node.inputs) {
      if (input == none || input == v) continue;
      const Value& other = graph_.values[input];
      if (same_strides(other, x)) continue;
      if (same_shape(other, x) || other.rank > x.rank || !permuted(other, order, x.rank).dense) return false;
    }
    const Value made = in_order_of(x, result);
    const auto& readers = uses_.readers[node.outputs[0]];
    return !readers.empty() && std::all_of(readers.begin(), readers.end(), [&](const Read& read) {
      const Node& reader = graph_.nodes[read.node];
      const Indexing indexing = indexing_of(reader);
      if (indexing == Indexing::transpose || indexing == Indexing::reshape) return is_dense_view(reader, made);
      return gains(reader, node.outputs[0], made, depth + 1);
    });
  }

 private:
  /// Whether the view that a shape op makes of a value with this layout is dense.
  bool is_dense_view(const Node& node, const Value& x) const {
    Value view = graph_.values[node.outputs[0]];
    if (view.kind != TENON_VALUE_INTERNAL || !view_strides(node, x, view)) return false;
    view.update_dense();
    return view.dense;
  }

  const GraphModel& graph_;
  const GraphUses& uses_;
};

}  // namespace

bool compute_in_memory_order(GraphModel& graph, const GraphUses& uses, Node& node) {
  const auto transposed = std::find_if(node.inputs.begin(), node.inputs.end(), [&](std::uint32_t v) {
    return v != none && is_transposed(graph.values[v]) && MemoryOrder(graph, uses).gains(node, v, graph.values[v]);
  });
  if (transposed == node.inputs.end() || may_read_copy(graph, node)) return false;
  const Value x = graph.values[*transposed];
  const auto order = order_of(x);
  const auto view_of = [&](std::uint32_t v) {
    graph.values.push_back(permuted(graph.values[v], order, x.rank));
    return static_cast<std::uint32_t>(graph.values.size() - 1);
  };
  for (std::uint32_t& v : node.inputs) {
    if (v != none) v = view_of(v);
  }
  const std::uint32_t result = node.outputs[0], made = view_of(result);
  graph.values[made].make_dense();
  graph.values[made].root = made;
  graph.values[result] = in_order_of(x, graph.values[result]);
  graph.values[result].root = made;
  node.outputs[0] = made;
  return true;
}

}  // namespace tenon::sdk
