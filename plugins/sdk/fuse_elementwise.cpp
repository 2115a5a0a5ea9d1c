// fuse_elementwise.cpp - finds elementwise nodes over one shape that can run together, and makes a group of each such set.
#include <algorithm>

#include "elementwise_group.h"
#include "plan.h"

namespace tenon::sdk {
namespace {

constexpr std::uint32_t none = TENON_NO_INDEX;

bool same_shape(const Value& a, const Value& b) {
  return a.rank == b.rank && std::equal(a.shape, a.shape + a.rank, b.shape);
}

class Grouping {
 public:
  explicit Grouping(GraphModel& graph) : graph_(graph), group_of_(graph.nodes.size(), none), producer_(graph.values.size(), none) {
    for (std::uint32_t n = 0; n < graph.nodes.size(); ++n) {
      for (const std::uint32_t v : graph.nodes[n].outputs) {
        if (v != none) producer_[v] = n;
      }
    }
    donated_.resize(graph.values.size());
    for (const tenon_donation& d : graph.donations) donated_[d.output] = true;
  }

  void find() {
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!eligible(n)) continue;
      std::vector<std::uint32_t> members{n};
      std::vector<std::uint32_t> joined;
      for (const std::uint32_t v : graph_.nodes[n].inputs) {
        const std::uint32_t g = producer_[v] == none ? none : group_of_[producer_[v]];
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
      for (const std::uint32_t m : members) group_of_[m] = id;
      groups_.push_back(std::move(members));
    }
  }

  void replace() {
    std::vector<Node> replacement(graph_.nodes.size());
    std::vector<bool> gone(graph_.nodes.size(), false);
    for (const std::vector<std::uint32_t>& members : groups_) {
      if (members.size() < 2) continue;
      replacement[members.back()] = make(members);
      for (const std::uint32_t m : members) gone[m] = true;
    }
    std::vector<Node> kept;
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      if (replacement[n].group != nullptr) {
        kept.push_back(std::move(replacement[n]));
      } else if (!gone[n]) {
        kept.push_back(std::move(graph_.nodes[n]));
      }
    }
    graph_.nodes = std::move(kept);
  }

 private:
  const Value& result(std::uint32_t n) const { return graph_.values[graph_.nodes[n].outputs[0]]; }

  bool eligible(std::uint32_t n) const {
    const Node& node = graph_.nodes[n];
    if (!node.row->kernel->traits.elementwise || node.outputs.size() != 1 || node.outputs[0] == none || node.bias != none) return false;
    // What is written over a donated input keeps its own call: its readers have to come first.
    if (donated_[node.outputs[0]] || result(n).count == 0) return false;
    for (const std::uint32_t v : node.inputs) {
      std::int64_t row = 0, column = 0;
      if (v == none || !collapse(graph_.values[v], result(n), row, column)) return false;
    }
    return true;
  }

  /// Within the fixed sizes of a group.
  bool fits(const std::vector<std::uint32_t>& members) const {
    std::size_t operands = 0;
    for (const std::uint32_t m : members) operands += graph_.nodes[m].inputs.size() + 1;
    return members.size() <= ElementwiseGroup::max_members && operands <= ElementwiseGroup::max_places;
  }

  /// True if no member waits for another by way of a node outside: they may run as one.
  bool independent(const std::vector<std::uint32_t>& members) const {
    std::vector<bool> inside(graph_.nodes.size(), false), seen(graph_.nodes.size(), false);
    for (const std::uint32_t m : members) inside[m] = true;
    std::vector<std::uint32_t> open;
    bool reached = false;
    const auto visit = [&](std::uint32_t v) {
      const std::uint32_t p = producer_[graph_.values[v].root];
      if (p == none) return;
      reached = reached || inside[p];
      if (!seen[p] && !inside[p]) open.push_back(p);
      seen[p] = true;
    };
    for (const std::uint32_t m : members) {
      for (const std::uint32_t v : graph_.nodes[m].inputs) {
        if (producer_[v] == none || !inside[producer_[v]]) visit(v);  // a view of a member's result comes this way too
      }
    }
    while (!open.empty() && !reached) {
      const std::uint32_t n = open.back();
      open.pop_back();
      // Members of another group wait for all that any of them waits for.
      static const std::vector<std::uint32_t> nothing;
      const std::vector<std::uint32_t>& company = group_of_[n] == none ? nothing : groups_[group_of_[n]];
      const auto visit_inputs = [&](const Node& node) {
        for (const std::uint32_t v : node.inputs) {
          if (v != none) visit(v);
        }
        if (node.bias != none) visit(node.bias);
      };
      visit_inputs(graph_.nodes[n]);
      for (const std::uint32_t c : company) visit_inputs(graph_.nodes[c]);
    }
    return !reached;
  }

  /// True if somebody outside of the group reads a member's result.
  bool leaves(std::uint32_t v, std::uint32_t group) const {
    if (graph_.values[v].kind != TENON_VALUE_INTERNAL) return true;
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      const Node& node = graph_.nodes[n];
      if (node.bias != none && graph_.values[node.bias].root == v) return true;
      for (const std::uint32_t input : node.inputs) {
        if (input == none || graph_.values[input].root != v) continue;
        if (group_of_[n] != group || input != v) return true;
      }
    }
    return false;
  }

  Node make(const std::vector<std::uint32_t>& members) const {
    const std::uint32_t id = group_of_[members.front()];
    const Value& space = result(members.front());
    auto group = std::make_shared<ElementwiseGroup>();
    Node node;
    std::vector<std::uint32_t> place_of(graph_.values.size(), none);
    const auto add_place = [&](std::uint32_t v) {
      place_of[v] = static_cast<std::uint32_t>(group->places.size());
      GroupPlace& place = group->places.emplace_back();
      place.dtype = graph_.values[v].dtype;
    };
    const auto is_inside = [&](std::uint32_t v) { return producer_[v] != none && group_of_[producer_[v]] == id; };
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

    // Results that stay inside go through buffers, each used again as soon as its last reader has run, in place where dtypes agree.
    std::vector<std::uint32_t> last_reader(graph_.values.size(), none);
    for (const std::uint32_t m : members) {
      for (const std::uint32_t v : graph_.nodes[m].inputs) last_reader[v] = m;
    }
    std::vector<std::int32_t> idle;
    for (const std::uint32_t m : members) {
      const Node& from = graph_.nodes[m];
      const std::uint32_t out = from.outputs[0];
      std::vector<std::int32_t> freed;
      for (const std::uint32_t v : from.inputs) {
        const GroupPlace& place = group->places[place_of[v]];
        if (place.buffer < 0 || last_reader[v] != m || std::find(freed.begin(), freed.end(), place.buffer) != freed.end()) continue;
        if (place_of[out] == none && place.dtype == graph_.values[out].dtype) {
          const GroupPlace same = place;
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
        // not one that this very member still reads
        std::int32_t buffer = -1;
        for (const std::int32_t candidate : idle) {
          if (std::find(freed.begin(), freed.end(), candidate) == freed.end()) buffer = candidate;
        }
        if (buffer < 0) buffer = static_cast<std::int32_t>(group->buffer_count++);
        idle.erase(std::remove(idle.begin(), idle.end(), buffer), idle.end());
        add_place(out);
        group->places.back().buffer = buffer;
      }
      GroupMember& member = group->members.emplace_back();
      member.op = from.op;
      member.function = from.function;
      member.attributes = from.attributes;
      for (const std::uint32_t v : from.inputs) member.inputs.push_back(place_of[v]);
      member.output = place_of[out];
      node.fused_count += from.fused_count;
    }
    --node.fused_count;  // counted from 1

    group->space = space;
    const std::int64_t work = space.count * static_cast<std::int64_t>(members.size());
    group->slots = std::clamp<std::int64_t>(work / ElementwiseGroup::worth_a_thread, 1,
                                            std::int64_t{2} * std::max<std::uint32_t>(1, graph_.host.thread_count()));

    const Node& last = graph_.nodes[members.back()];
    node.index = last.index;
    node.id = last.id;
    node.row = &group_row;
    node.function = group_row.kernel->functions[TENON_DTYPE_NONE];
    node.attributes = group_attributes(*group);
    node.group = std::move(group);  // whose strides are settled when no pass puts other operands in their places any more
    return node;
  }

  GraphModel& graph_;
  std::vector<std::uint32_t> group_of_;             ///< per node
  std::vector<std::uint32_t> producer_;             ///< per value that is no view
  std::vector<std::vector<std::uint32_t>> groups_;  ///< members in list order; empty: went into another
  std::vector<bool> donated_;
};

}  // namespace

void fuse_elementwise(GraphModel& graph) {
  Grouping grouping(graph);
  grouping.find();
  grouping.replace();
}

}  // namespace tenon::sdk
