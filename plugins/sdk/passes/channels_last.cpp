// SPDX-License-Identifier: Apache-2.0
// channels_last.cpp - keeps images (N, C, d...) as (N, d..., C) between the kernels that need it, with transposes only at the ends.
#include <algorithm>
#include <cstring>

#include "operands.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// The position of dimension d of (N, C, d...) in (N, d..., C).
std::int64_t turned(std::int64_t d, std::uint32_t rank) {
  return d == 0 ? 0 : d == 1 ? std::int64_t{rank} - 1 : d - 1;
}

/// perm of the Transpose from (N, C, d...) to (N, d..., C), or back.
tenon_attributes_axes permutation(std::uint32_t rank, bool back) {
  tenon_attributes_axes attributes{};
  attributes.struct_size = sizeof attributes;
  attributes.count = rank;
  for (std::uint32_t d = 0; d < rank; ++d) {
    const auto last = static_cast<std::uint32_t>(turned(d, rank));
    attributes.axes[back ? d : last] = back ? last : d;
  }
  return attributes;
}

template <class Attributes>
void set_attributes(Node& node, const Attributes& attributes) {
  node.attributes.assign((sizeof attributes + 7) / 8, 0);
  std::memcpy(node.attributes.data(), &attributes, sizeof attributes);
}
template <class Attributes>
Attributes attributes_of(const Node& node) {
  Attributes attributes;
  std::memcpy(&attributes, node.attributes.data(), sizeof attributes);
  return attributes;
}

/// A node of DynamicQuantizeLinear: elements of its first result are at the places of those of its operand, the others are scalars.
bool quantizes_dynamically(const Node& node) {
  return node.is(TENON_OP_DynamicQuantizeLinear);
}

/// The indexing of a node that can take its operands with channels last; Indexing::other if it cannot.
Indexing movable_indexing(const Node& node) {
  if (quantizes_dynamically(node)) return Indexing::pointwise;
  const Indexing indexing = indexing_of(node);
  const bool stays = indexing == Indexing::reshape || indexing == Indexing::transpose || indexing == Indexing::gather;
  return stays ? Indexing::other : indexing;
}

/// The node's attributes for operands with channels last.
void turn_attributes(Node& node, Indexing indexing, std::uint32_t rank) {
  const auto turn_list = [&](std::int64_t* list) {
    const std::vector<std::int64_t> was(list, list + rank);
    for (std::uint32_t d = 0; d < rank; ++d) list[turned(d, rank)] = was[d];
  };
  switch (indexing) {
    case Indexing::reduction: {
      auto attributes = attributes_of<tenon_attributes_axes>(node);
      for (std::uint32_t i = 0; i < attributes.count; ++i) attributes.axes[i] = turned(attributes.axes[i], rank);
      std::sort(attributes.axes, attributes.axes + attributes.count);
      return set_attributes(node, attributes);
    }
    case Indexing::axis: {
      auto attributes = attributes_of<tenon_attributes_axis>(node);
      attributes.axis = turned(attributes.axis, rank);
      return set_attributes(node, attributes);
    }
    case Indexing::pad: {
      auto attributes = attributes_of<tenon_attributes_pad>(node);
      turn_list(attributes.before);
      return set_attributes(node, attributes);
    }
    case Indexing::slice: {
      auto attributes = attributes_of<tenon_attributes_slice>(node);
      turn_list(attributes.starts);
      turn_list(attributes.steps);
      return set_attributes(node, attributes);
    }
    default:
      return;
  }
}

class ChannelsLastPass {
 public:
  ChannelsLastPass(GraphModel& graph, const KernelRow* rows)
      : graph_(graph), rows_(rows), native_(graph.values.size(), false), moves_(graph.nodes.size(), Indexing::other) {}

  void run() {
    if (std::none_of(graph_.nodes.begin(), graph_.nodes.end(), needs_channels_last)) return;
    follow();
    precede();
    for (std::size_t n = 0; n < moves_.size(); ++n) emit(std::move(graph_.nodes[n]), moves_[n]);
    drop_unread();
    graph_.nodes = std::move(result_);
  }

 private:
  struct Reader {
    std::uint32_t node, input;
  };

  static bool needs_channels_last(const Node& node) { return (node.turns.inputs | node.turns.outputs) != 0; }
  /// True if the kernel needs this operand with channels last.
  bool takes_channels_last(std::uint32_t mask, std::size_t i, std::uint32_t v) const {
    return i < 32 && (mask >> i & 1) != 0 && v != none && is_image(graph_.values[v]);
  }
  bool can_turn(std::uint32_t v) const { return find_transposer(rows_, graph_.values[v], graph_.values[v].dtype) != nullptr; }
  /// True if transposing it moves no byte.
  bool is_free(std::uint32_t v) const {
    const Value& value = graph_.values[v];
    return value.dense && (value.shape[1] == 1 || value.count == value.shape[0] * value.shape[1]);
  }
  /// Rank of the images that a node works on; 0 if its operands are not images.
  std::uint32_t image_rank(const Node& node, Indexing indexing) const {
    const std::vector<std::uint32_t>& operands =
        indexing == Indexing::pointwise || indexing == Indexing::expand ? node.outputs : node.inputs;
    if (operands.empty() || operands[0] == none || !is_image(graph_.values[operands[0]])) return 0;
    return graph_.values[operands[0]].rank;
  }

  /// True if the node can work on operands with channels last.
  bool movable(const Node& node, Indexing indexing) const {
    const std::uint32_t rank = indexing == Indexing::other ? 0 : image_rank(node, indexing);
    if (rank == 0) return false;
    for (const std::uint32_t v : node.inputs) {
      if (v == none || graph_.values[v].rank > rank || !can_turn(v)) return false;
      if (graph_.values[v].rank < rank && graph_.values[v].count != 1 && find_copier(rows_, graph_.values[v]) == nullptr) return false;
    }
    for (const std::uint32_t v : node.outputs) {
      if (v != none && !can_turn(v)) return false;
    }
    if (indexing == Indexing::reduction) return node.outputs.size() == 1 && node.outputs[0] != none && keeps_order(node, rank);
    if (quantizes_dynamically(node)) return node.outputs[0] != none;
    return node.op == TENON_OP_Split || (node.outputs.size() == 1 && node.outputs[0] != none);
  }

  /// A reduction without keepdims drops axes; the remaining ones must have the same order in both layouts.
  static bool keeps_order(const Node& node, std::uint32_t rank) {
    const auto attributes = attributes_of<tenon_attributes_axes>(node);
    if (attributes.keepdims != 0) return true;
    std::uint32_t kept = (1u << rank) - 1;
    for (std::uint32_t i = 0; i < attributes.count; ++i) kept &= ~(1u << attributes.axes[i]);
    return (kept & 2) == 0 || kept < 4;
  }

  /// True if enough of the operands have their channels last already.
  bool should_follow(const Node& node, Indexing indexing) const {
    const std::uint32_t rank = image_rank(node, indexing);
    std::int64_t turned_count = 0, count = 0;
    bool spans = false;  // one of them is as large as the result
    for (const std::uint32_t v : node.inputs) {
      const Value& value = graph_.values[v];
      if (value.rank != rank) continue;
      count += value.count;
      if (!native_[v]) continue;
      turned_count += value.count;
      spans = spans || (node.outputs[0] != none && value.count == graph_.values[node.outputs[0]].count);
    }
    if (indexing == Indexing::pointwise) return spans;
    return turned_count > 0 && 2 * turned_count >= count;
  }

  void move(std::size_t n, Indexing indexing) {
    moves_[n] = indexing;
    const Node& node = graph_.nodes[n];
    const std::uint32_t rank = image_rank(node, indexing);
    for (const std::uint32_t v : node.outputs) {
      if (v != none && graph_.values[v].rank == rank) native_[v] = true;
    }
  }

  /// Propagates channels last from the kernels that need it to their readers, transitively.
  void follow() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (needs_channels_last(node)) {
        for (std::size_t i = 0; i < node.outputs.size(); ++i) {
          if (takes_channels_last(node.turns.outputs, i, node.outputs[i])) native_[node.outputs[i]] = true;
        }
        continue;
      }
      const Indexing indexing = movable_indexing(node);
      if (movable(node, indexing) && should_follow(node, indexing)) move(n, indexing);
    }
  }

  /// Propagates backwards: a value whose readers all take channels last is computed so, if that transposes no more bytes.
  void precede() {
    std::vector<std::vector<Reader>> readers(graph_.values.size());
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
        if (node.inputs[i] != none) readers[node.inputs[i]].push_back({n, i});
      }
    }
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      const Node& node = graph_.nodes[n];
      if (moves_[n] != Indexing::other || needs_channels_last(node) || node.outputs.size() != 1 || node.outputs[0] == none) continue;
      const std::uint32_t v = node.outputs[0];
      if (graph_.values[v].kind != TENON_VALUE_INTERNAL || readers[v].empty()) continue;
      const Indexing indexing = movable_indexing(node);
      if (indexing == Indexing::reduction || !movable(node, indexing)) continue;
      if (!std::all_of(readers[v].begin(), readers[v].end(), [&](const Reader& reader) { return reads_turned(reader); })) continue;
      std::uint64_t turned_bytes = 0;  // to transpose, instead of the result
      for (const std::uint32_t input : node.inputs) {
        const Value& value = graph_.values[input];
        if (value.rank == graph_.values[v].rank && !native_[input] && !is_free(input)) turned_bytes += value.size_bytes();
      }
      if (turned_bytes <= graph_.values[v].size_bytes()) move(n, indexing);
    }
  }
  bool reads_turned(const Reader& reader) const {
    const Node& node = graph_.nodes[reader.node];
    const std::uint32_t v = node.inputs[reader.input];
    if (needs_channels_last(node)) return takes_channels_last(node.turns.inputs, reader.input, v);
    const Indexing indexing = moves_[reader.node];
    return indexing != Indexing::other && graph_.values[v].rank == image_rank(node, indexing);
  }

  // ---------------------------------------------------------------- rewriting the graph

  std::uint32_t& counterpart(std::uint32_t v) {
    if (counterparts_.size() < graph_.values.size()) counterparts_.resize(graph_.values.size(), none);
    return counterparts_[v];
  }
  /// An internal value for v with its channels last.
  std::uint32_t add_turned(std::uint32_t v) {
    const std::uint32_t made = graph_.add_dense_copy(v);
    Value& value = graph_.values[made];
    for (std::uint32_t d = 0; d < value.rank; ++d) value.shape[turned(d, value.rank)] = graph_.values[v].shape[d];
    value.make_dense();
    return counterpart(v) = made;
  }
  /// For an output of the plan whose bytes are the same in both layouts: the channels-last value becomes the output.
  void replace_output(std::uint32_t v, std::uint32_t made) {
    std::swap(graph_.values[v].kind, graph_.values[made].kind);
    std::swap(graph_.values[v].binding, graph_.values[made].binding);
    for (tenon_donation& d : graph_.donations) {
      if (d.output == v) d.output = made;
    }
  }
  /// y = x transposed, by the backend's Transpose.
  Node transpose_node(std::uint32_t from, std::uint32_t to, bool back, const Node& on_behalf_of) const {
    const Value& x = graph_.values[from];
    Node node;
    node.op = TENON_OP_Transpose;
    node.version = 13;
    node.index = on_behalf_of.index;
    node.id = on_behalf_of.id;
    node.fused_count = 0;
    node.inputs = {from};
    node.outputs = {to};
    set_attributes(node, permutation(x.rank, back));
    node.row = find_row(rows_, TENON_OP_Transpose, 13);
    node.function = node.row->kernel->functions[x.dtype];
    return node;
  }
  /// v with its channels last; inserts a Transpose the first time.
  std::uint32_t to_turned(std::uint32_t v, const Node& reader) {
    if (counterpart(v) != none) return counterpart(v);
    const std::uint32_t made = add_turned(v);
    result_.push_back(transpose_node(v, made, false, reader));
    result_.back().requires_copy = true;
    return made;
  }
  /// The same for an operand that is broadcast to `rank` dimensions.
  std::uint32_t to_turned(std::uint32_t v, std::uint32_t rank, const Node& reader) {
    if (graph_.values[v].rank == rank) return to_turned(v, reader);
    if (graph_.values[v].count == 1) return v;
    if (wide_.size() < graph_.values.size()) wide_.resize(graph_.values.size(), none);
    if (wide_[v] == none || graph_.values[wide_[v]].rank != rank) {
      const std::uint32_t made = graph_.add_dense_copy(v);
      Value& value = graph_.values[made];
      const std::uint32_t added = rank - value.rank;
      std::fill(value.shape, value.shape + added, 1);
      std::copy(graph_.values[v].shape, graph_.values[v].shape + value.rank, value.shape + added);
      value.rank = rank;
      value.make_dense();
      Node node;
      node.op = TENON_OP_Reshape;
      node.version = 14;
      node.index = reader.index;
      node.id = reader.id;
      node.fused_count = 0;
      node.inputs = {v};
      node.outputs = {made};
      set_attributes(node, tenon_attributes_none{sizeof(tenon_attributes_none), 0});
      node.row = find_copier(rows_, graph_.values[v]);
      node.function = node.row->kernel->functions[value.dtype];
      result_.push_back(std::move(node));
      if (wide_.size() < graph_.values.size()) wide_.resize(graph_.values.size(), none);
      wide_[v] = made;
    }
    return to_turned(wide_[v], reader);
  }

  void emit(Node node, Indexing indexing) {
    std::vector<std::uint32_t> plain;  // results to transpose back
    const auto turn_output = [&](std::uint32_t& v) {
      plain.push_back(v);
      const std::uint32_t made = add_turned(v);
      if (is_free(v)) replace_output(v, made);
      v = made;
    };
    if (needs_channels_last(node)) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (takes_channels_last(node.turns.inputs, i, node.inputs[i]))
          node.inputs[i] = to_turned(node.inputs[i], node), node.channels_last = true;
      }
      for (std::size_t i = 0; i < node.outputs.size(); ++i) {
        if (takes_channels_last(node.turns.outputs, i, node.outputs[i])) turn_output(node.outputs[i]), node.channels_last = true;
      }
    } else if (indexing != Indexing::other) {
      const std::uint32_t rank = image_rank(node, indexing);
      node.channels_last = true;
      turn_attributes(node, indexing, rank);
      for (std::uint32_t& v : node.inputs) v = to_turned(v, rank, node);
      for (std::uint32_t& v : node.outputs) {
        if (v != none && graph_.values[v].rank == rank) turn_output(v);
      }
    }
    const auto at = result_.size();
    result_.push_back(std::move(node));
    for (const std::uint32_t v : plain) {
      backs_.push_back(static_cast<std::uint32_t>(result_.size()));
      result_.push_back(transpose_node(counterpart(v), v, true, result_[at]));
    }
  }

  /// Removes transposes back to the graph's layout whose results are not read.
  void drop_unread() {
    std::vector<bool> read(graph_.values.size(), false);
    for (const Node& node : result_) {
      for (const std::uint32_t v : node.inputs) {
        if (v != none) read[v] = true;
      }
    }
    std::vector<Node> kept;
    kept.reserve(result_.size());
    auto back = backs_.begin();
    for (std::uint32_t n = 0; n < result_.size(); ++n) {
      const bool is_back = back != backs_.end() && *back == n;
      if (is_back) ++back;
      const std::uint32_t v = is_back ? result_[n].outputs[0] : none;
      if (is_back && graph_.values[v].kind == TENON_VALUE_INTERNAL && !read[v]) continue;
      kept.push_back(std::move(result_[n]));
    }
    result_ = std::move(kept);
  }

  GraphModel& graph_;
  const KernelRow* rows_;
  std::vector<bool> native_;     ///< per value of the graph: computed with its channels last
  std::vector<Indexing> moves_;  ///< per node of the graph: its indexing if it is rewritten
  std::vector<Node> result_;
  std::vector<std::uint32_t> counterparts_;  ///< per value: its channels-last counterpart
  std::vector<std::uint32_t> wide_;          ///< per value of lower rank: its counterpart with leading dimensions of 1
  std::vector<std::uint32_t> backs_;         ///< indices in result_ of transposes back
};

}  // namespace

void put_channels_last(GraphModel& graph, const KernelRow* rows) {
  ChannelsLastPass(graph, rows).run();
}

}  // namespace tenon::sdk
