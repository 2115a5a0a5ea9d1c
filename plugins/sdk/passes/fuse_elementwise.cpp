// SPDX-License-Identifier: Apache-2.0
// fuse_elementwise.cpp - finds elementwise nodes over one shape that can run together, and makes a group of each such set.
#include <algorithm>
#include <limits>

#include <tenon/sdk/device.h>

#include "elementwise_group.h"
#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

class Grouping {
 public:
  explicit Grouping(GraphModel& graph)
      : graph_(graph),
        uses_(graph),
        group_of_(graph.nodes.size(), none),
        seen_(graph.nodes.size(), 0),
        place_of_(graph.values.size(), none),
        last_reader_(graph.values.size(), none),
        classes_(graph.nodes.size(), 0) {
    assign_levels();
  }

  void find() {
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      classes_[n] = eligible(n) ? classes_of(n) : 0;
      if (classes_[n] == 0) continue;
      std::vector<std::uint32_t> members{n};
      std::vector<std::uint32_t> joined;
      for (const std::uint32_t v : graph_.nodes[n].inputs) {
        const std::uint32_t g = uses_.producers[v] == none || stays_narrow(n, v) ? none : group_of_[uses_.producers[v]];
        if (g == none || std::find(joined.begin(), joined.end(), g) != joined.end()) continue;
        if (!same_shape(result(groups_[g].front()), result(n))) continue;
        std::vector<std::uint32_t> together = members;
        together.insert(together.end(), groups_[g].begin(), groups_[g].end());
        std::sort(together.begin(), together.end());
        if (!fits(together) || !independent(together)) continue;
        members = std::move(together);
        joined.push_back(g);
      }
      for (const std::uint32_t g : joined) groups_[g].clear();
      const auto id = static_cast<std::uint32_t>(groups_.size());
      std::uint32_t highest = 0;
      for (const std::uint32_t m : members) {
        group_of_[m] = id;
        highest = std::max(highest, level_[m]);
      }
      groups_.push_back(std::move(members));
      if (!joined.empty()) raise(groups_.back(), highest);
    }
  }

  void replace() {
    std::vector<bool> absorbed(graph_.nodes.size(), false);
    for (const std::vector<std::uint32_t>& members : groups_) {
      if (members.size() < 2) continue;
      Node group = make(members);
      for (const std::uint32_t m : members) absorbed[m] = true;
      graph_.nodes[members.back()] = std::move(group);
      absorbed[members.back()] = false;
    }
    remove_nodes(graph_, absorbed);
  }

 private:
  const Value& result(std::uint32_t n) const { return graph_.values[graph_.nodes[n].outputs[0]]; }

  bool eligible(std::uint32_t n) const {
    const Node& node = graph_.nodes[n];
    if (!node.row->kernel->traits.elementwise || node.outputs.size() != 1 || node.outputs[0] == none) return false;
    if (node.has_epilogue_operands()) return false;
    // A node that writes over a donated input keeps its own call: the input's other readers must run first.
    if (uses_.donated[node.outputs[0]] || result(n).count == 0) return false;
    for (const std::uint32_t v : node.inputs) {
      std::int64_t row = 0, column = 0;
      if (v == none || !collapse(graph_.values[v], result(n), row, column)) return false;
    }
    return true;
  }

  /// True for a node that makes wider elements of v, such as DequantizeLinear, where others read v as well: v is in memory, and the node's
  /// readers make the wider elements as they need them.
  bool stays_narrow(std::uint32_t n, std::uint32_t v) const {
    return size_of(result(n).dtype) > size_of(graph_.values[v].dtype) && uses_.readers[graph_.values[v].root].size() > 1;
  }

  /// The classes that the device's fusion gives a node.
  std::uint32_t classes_of(std::uint32_t n) const {
    const Node& node = graph_.nodes[n];
    const std::int32_t typed = node.row->type_operand;
    const tenon_dtype out = result(n).dtype;
    return graph_.fusion->classes(node.op, typed < 0 ? out : graph_.values[node.inputs[static_cast<std::size_t>(typed)]].dtype, out);
  }

  /// True if the members are within a group's limits and share a class.
  bool fits(const std::vector<std::uint32_t>& members) const {
    std::size_t operands = 0;
    std::uint32_t classes = ~0u;
    std::vector<std::uint32_t> read;
    for (const std::uint32_t m : members) {
      operands += graph_.nodes[m].inputs.size() + 1;
      classes &= classes_[m];
      for (const std::uint32_t v : graph_.nodes[m].inputs) {
        const std::uint32_t maker = uses_.producers[v];
        if (maker == none || !std::binary_search(members.begin(), members.end(), maker)) read.push_back(v);
      }
    }
    std::sort(read.begin(), read.end());
    const auto inputs = std::unique(read.begin(), read.end()) - read.begin();
    return classes != 0 && members.size() <= graph_.fusion->max_members &&
           inputs <= static_cast<std::ptrdiff_t>(graph_.fusion->max_inputs) && operands <= ElementwiseGroup::max_places;
  }

  /// Assigns levels to the nodes so that no node depends on one with a higher level. Members of a group, which depends on all that any
  /// member depends on, have the same level. The list is not such an order: an epilogue may read a value that is listed later.
  void assign_levels() {
    level_.assign(graph_.nodes.size(), none);
    std::uint32_t next = 0;
    std::vector<std::uint32_t> open;
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      open.push_back(n);
      while (!open.empty()) {
        const std::uint32_t at = open.back();
        const std::size_t before = open.size();
        if (level_[at] == none) {
          graph_.nodes[at].for_each_read([&](std::uint32_t v) {
            const std::uint32_t p = uses_.producers[graph_.values[v].root];
            if (p != none && level_[p] == none) open.push_back(p);
          });
        }
        if (open.size() != before) continue;
        if (level_[at] == none) level_[at] = next++;
        open.pop_back();
      }
    }
  }

  /// Raises the level of a new group, and that of all nodes that depend on it, to at least `to`.
  void raise(const std::vector<std::uint32_t>& group, std::uint32_t to) {
    open_.assign(group.begin(), group.end());
    while (!open_.empty()) {
      const std::uint32_t n = open_.back();
      open_.pop_back();
      if (level_[n] >= to) continue;
      level_[n] = to;
      if (group_of_[n] != none) open_.insert(open_.end(), groups_[group_of_[n]].begin(), groups_[group_of_[n]].end());
      for (const std::uint32_t v : graph_.nodes[n].outputs) {
        if (v == none) continue;
        for (const Read& read : uses_.readers[v]) open_.push_back(read.node);
      }
    }
  }

  /// True if no member depends on another through a node outside the group: they may run as one.
  bool independent(const std::vector<std::uint32_t>& members) {
    const std::uint32_t inside = stamp_ + 1, seen = stamp_ + 2;  // marks of this search
    stamp_ += 2;
    std::uint32_t lowest = none;
    for (const std::uint32_t m : members) {
      seen_[m] = inside;
      lowest = std::min(lowest, level_[m]);
    }
    open_.clear();
    bool reached = false;
    const auto visit = [&](std::uint32_t v) {
      const std::uint32_t p = uses_.producers[graph_.values[v].root];
      if (p == none || seen_[p] == seen) return;
      reached = reached || seen_[p] == inside;
      if (reached) return;
      if (level_[p] < lowest) return;  // depends on none of them
      seen_[p] = seen;
      open_.push_back(p);
    };
    for (const std::uint32_t m : members) {
      for (const std::uint32_t v : graph_.nodes[m].inputs) {
        if (uses_.producers[v] == none || seen_[uses_.producers[v]] != inside) visit(v);  // also for a view of a member's result
      }
    }
    while (!open_.empty() && !reached) {
      const std::uint32_t n = open_.back();
      open_.pop_back();
      graph_.nodes[n].for_each_read(visit);
      if (group_of_[n] == none) continue;
      for (const std::uint32_t companion : groups_[group_of_[n]]) {
        if (seen_[companion] == seen && companion != n) continue;
        seen_[companion] = seen;
        graph_.nodes[companion].for_each_read(visit);
      }
    }
    return !reached;
  }

  /// True if a member's result is read outside of the group.
  bool leaves(std::uint32_t v, std::uint32_t group) const {
    if (graph_.values[v].kind != TENON_VALUE_INTERNAL) return true;
    return std::any_of(uses_.readers[v].begin(), uses_.readers[v].end(),
                       [&](const Read& read) { return group_of_[read.node] != group || read.value != v; });
  }

  Node make(const std::vector<std::uint32_t>& members) {
    const std::uint32_t id = group_of_[members.front()];
    const Value& space = result(members.front());
    auto group = std::make_shared<ElementwiseGroup>();
    Node node;
    node.fused_count = 0;  // those of the members are added
    std::vector<std::uint32_t>& place_of = place_of_;
    const auto add_place = [&](std::uint32_t v) {
      place_of[v] = static_cast<std::uint32_t>(group->places.size());
      ElementwisePlace& place = group->places.emplace_back();
      place.dtype = graph_.values[v].dtype;
    };
    const auto is_inside = [&](std::uint32_t v) { return uses_.producers[v] != none && group_of_[uses_.producers[v]] == id; };
    for (const std::uint32_t m : members) {
      for (const std::uint32_t v : graph_.nodes[m].inputs) {
        if (is_inside(v) || place_of[v] != none) continue;
        add_place(v);
        node.inputs.push_back(v);
      }
    }
    for (const std::uint32_t m : members) {
      const std::uint32_t v = graph_.nodes[m].outputs[0];
      if (!leaves(v, id)) continue;
      add_place(v);
      node.outputs.push_back(v);
    }
    group->input_count = static_cast<std::uint32_t>(node.inputs.size());
    group->output_count = static_cast<std::uint32_t>(node.outputs.size());

    // Results that stay inside go through buffers, each reused as soon as its last reader has run, in place where dtypes agree.
    std::vector<std::uint32_t>& last_reader = last_reader_;
    for (const std::uint32_t m : members) {
      for (const std::uint32_t v : graph_.nodes[m].inputs) last_reader[v] = m;
    }
    std::vector<std::int32_t> idle;
    for (const std::uint32_t m : members) {
      const Node& from = graph_.nodes[m];
      const std::uint32_t out = from.outputs[0];
      std::vector<std::int32_t> freed;
      for (const std::uint32_t v : from.inputs) {
        const ElementwisePlace& place = group->places[place_of[v]];
        if (place.buffer < 0 || last_reader[v] != m || std::find(freed.begin(), freed.end(), place.buffer) != freed.end()) continue;
        if (place_of[out] == none && place.dtype == graph_.values[out].dtype) {
          const ElementwisePlace same = place;
          place_of[out] = static_cast<std::uint32_t>(group->places.size());
          group->places.push_back(same);
          freed.push_back(same.buffer);
          idle.erase(std::remove(idle.begin(), idle.end(), same.buffer), idle.end());
          continue;
        }
        freed.push_back(place.buffer);
        idle.push_back(place.buffer);
      }
      if (place_of[out] == none) {
        // not a buffer that this member still reads
        std::int32_t buffer = -1;
        for (const std::int32_t candidate : idle) {
          if (std::find(freed.begin(), freed.end(), candidate) == freed.end()) buffer = candidate;
        }
        if (buffer < 0) buffer = static_cast<std::int32_t>(group->buffer_count++);
        idle.erase(std::remove(idle.begin(), idle.end(), buffer), idle.end());
        add_place(out);
        group->places.back().buffer = buffer;
      }
      ElementwiseMember& member = group->members.emplace_back();
      member.op = from.op;
      member.function = from.function;
      member.attributes = from.attributes;
      member.vendor_op = from.row->vendor_op;
      for (const std::uint32_t v : from.inputs) member.inputs.push_back(place_of[v]);
      member.output = place_of[out];
      node.fused_count += from.fused_count;
    }
    for (const std::uint32_t m : members) {
      for (const std::uint32_t v : graph_.nodes[m].inputs) place_of[v] = last_reader[v] = none;
      place_of[graph_.nodes[m].outputs[0]] = none;
    }

    group->space = space;
    std::int64_t work = 0;
    if (__builtin_mul_overflow(space.count, static_cast<std::int64_t>(members.size()), &work))
      work = std::numeric_limits<std::int64_t>::max();
    group->slots = std::clamp<std::int64_t>(work / ElementwiseGroup::worth_a_thread, 1,
                                            std::int64_t{2} * std::max<std::uint32_t>(1, graph_.host.thread_count()));

    // A conversion that ends the group was inserted for a node that reads its result, and stands at that node.
    const auto computes = [&](std::uint32_t m) { return graph_.nodes[m].fused_count > 0; };
    const auto found = std::find_if(members.rbegin(), members.rend(), computes);
    const Node& last = graph_.nodes[found == members.rend() ? members.back() : *found];
    node.index = last.index;
    node.id = last.id;
    node.row = &graph_.fusion->row;
    node.function = node.row->kernel->functions[TENON_DTYPE_NONE];
    node.attributes = group_attributes(*group);
    node.group = std::move(group);  // arrange() settles its strides after the last pass that replaces operands
    return node;
  }

  GraphModel& graph_;
  const GraphUses uses_;
  std::vector<std::uint32_t> group_of_;             ///< per node
  std::vector<std::vector<std::uint32_t>> groups_;  ///< members in list order; empty: merged into another
  std::vector<std::uint32_t> level_;                ///< per node: see assign_levels()
  std::vector<std::uint32_t> seen_, open_;          ///< state of a search
  std::uint32_t stamp_ = 0;
  std::vector<std::uint32_t> place_of_, last_reader_;  ///< per value, used by make(); none otherwise
  std::vector<std::uint32_t> classes_;                 ///< per visited node: see ElementwiseFusion::classes
};

}  // namespace

void fuse_elementwise(GraphModel& graph) {
  const bool pieces_fit = graph.device == nullptr || graph.device->operand_alignment_bytes == 1;  // a piece starts at any element
  if (is_piecewise(*graph.fusion) && !pieces_fit) return;
  Grouping grouping(graph);
  grouping.find();
  grouping.replace();
}

}  // namespace tenon::sdk
