// SPDX-License-Identifier: Apache-2.0
#include "graph/patterns/recognize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "graph/op.h"
#include "graph/passes.h"
#include "graph/patterns/records.h"

namespace tenon::graph {
namespace patterns {
namespace {

/// Replacements can complete other patterns: a folded scale is followed by a shift. Graphs need two or three rounds.
constexpr int max_rounds = 16;

/// Constants are written with six digits or more, and rounded to the dtype.
double tolerance_of(DType dtype) {
  return 3e-6 + 2 * epsilon_of(dtype);
}

/// A record with what its pattern implies.
struct Candidate {
  const Record* record;
  std::set<tenon_op> roots, required;
};

std::set<tenon_op> as_set(const std::vector<tenon_op>& ops) {
  return {ops.begin(), ops.end()};
}

/// All records, those that take the most nodes first where several have a root in common.
const std::vector<Candidate>& candidates() {
  static const std::vector<Candidate> all = [] {
    std::vector<Candidate> list;
    for (const auto* records :
         {&attention_records(), &norm_records(), &rotary_records(), &activation_records(), &channel_records(), &transpose_records()}) {
      for (const Record& record : *records) {
        list.push_back({&record, as_set(roots_of(record.pattern)), as_set(required_ops_of(record.pattern))});
      }
    }
    return list;
  }();
  return all;
}

/// True for a node whose result has the elements of its operand in the same arrangement.
bool changes_nothing(const GraphEditor& editor, const NodeInfo& node) {
  switch (node.op) {
    case TENON_OP_Cast:
    case TENON_OP_Reshape:
    case TENON_OP_Flatten:
    case TENON_OP_Expand:
      break;
    case TENON_OP_Transpose: {
      const std::vector<std::int64_t> axes = axes_of(node);
      if (!std::is_sorted(axes.begin(), axes.end())) return false;
      break;
    }
    default:
      return false;
  }
  const ValueInfo &from = editor.info(node.inputs[0]), &to = editor.info(node.outputs[0]);
  return from.dtype == to.dtype && from.shape == to.shape;
}

/// Removes dead nodes, and ops between the parts of patterns that change nothing.
Graph without_identities(Graph graph) {
  GraphEditor editor(graph);
  for (NodeId n = 0; n < editor.node_count(); ++n) {
    const NodeInfo& node = editor.node(n);
    if (changes_nothing(editor, node)) editor.redirect(node.outputs[0], node.inputs[0]);
  }
  editor.finish(GraphEditor::OptionalResults::keep);
  return graph;
}

/// Goes through a graph without dead nodes once, from the last node to the first, so that the largest expression is found first.
class Round {
 public:
  Round(Graph& graph, PatternCounts& counts)
      : graph_(graph), editor_(graph), net_(editor_), counts_(counts), uses_(graph.values().size()), is_dead_(graph.nodes().size()) {
    for (NodeId n = 0; n < editor_.node_count(); ++n) {
      present_.insert(editor_.node(n).op);
      for (const ValueId input : editor_.node(n).inputs) add_use(input);
    }
    for (const GraphOutput& output : graph.outputs()) add_use(output.value);
    for (const GraphUpdate& update : graph.updates()) add_use(update.value);
  }

  /// Returns whether anything was replaced. The round is over.
  bool run() {
    bool any = false;
    for (NodeId n = static_cast<NodeId>(editor_.node_count()); n-- > 0;) {
      for (const Candidate& candidate : candidates()) {
        if (is_dead_[n]) break;
        if (!is_possible(candidate, n) || !replace(*candidate.record, n)) continue;
        ++counts_.by_name[candidate.record->name];
        any = true;
      }
    }
    editor_.finish(GraphEditor::OptionalResults::keep);
    return any;
  }

 private:
  Graph& graph_;
  GraphEditor editor_;
  Net net_;
  PatternCounts& counts_;
  std::vector<std::uint32_t> uses_;  ///< per value: by nodes that are not dead, outputs and updates
  std::vector<bool> is_dead_;        ///< per node: replaced
  std::set<tenon_op> present_;

  void add_use(ValueId v) {
    if (v != no_id) ++uses_[v];
  }

  bool is_possible(const Candidate& candidate, NodeId n) {
    const NodeInfo& node = editor_.node(n);
    if (node.outputs.size() != 1 || !candidate.roots.contains(node.op)) return false;
    if (candidate.record->scales_weights && !graph_.updates().empty()) return false;
    return std::includes(present_.begin(), present_.end(), candidate.required.begin(), candidate.required.end());
  }

  /// True if only the match reads its inner values, all of it on one device.
  bool is_closed(const Match& match) {
    std::set<NodeId> inner(match.inner.begin(), match.inner.end());
    inner.insert(match.root);
    for (const NodeId n : inner) {
      if (editor_.node(n).device != editor_.node(match.root).device) return false;
      if (n == match.root) continue;
      for (const ValueId output : editor_.node(n).outputs) {
        if (output != no_id && uses_by(inner, output) != uses_[output]) return false;
      }
    }
    return true;
  }

  std::uint32_t uses_by(const std::set<NodeId>& nodes, ValueId v) {
    std::uint32_t uses = 0;
    for (const NodeId n : nodes) {
      const std::vector<ValueId>& inputs = editor_.node(n).inputs;
      uses += static_cast<std::uint32_t>(std::count(inputs.begin(), inputs.end(), v));
    }
    return uses;
  }

  bool replace(const Record& record, NodeId root) {
    const ValueId result = editor_.node(root).outputs[0];
    const DType dtype = editor_.info(result).dtype;
    Match match(net_, graph_, root);
    Matcher matcher(match, is_floating(dtype) ? tolerance_of(dtype) : 0);
    const auto is_accepted = [&] {
      const std::size_t inner = match.inner.size();
      if (record.accepts(match) && is_closed(match)) return true;
      match.inner.resize(inner);
      return false;
    };
    if (!matcher.matches(record.pattern, result, 1, is_accepted)) return false;

    const ValueId replacement = editor_.build(root, [&] {
      const std::size_t first = graph_.nodes().size();
      const Value value = record.replacement(match);
      uses_.resize(graph_.values().size());
      for (std::size_t n = first; n < graph_.nodes().size(); ++n) {
        for (const ValueId input : graph_.nodes()[n].inputs) add_use(input);
      }
      return value;
    });
    // an output stays a computed value, and an update has a node of its own
    if (!editor_.redirect(result, replacement)) return false;
    uses_[replacement] += uses_[result];
    uses_[result] = 0;
    remove(root);
    return true;
  }

  /// Notes that the results of a node are not read any more.
  void remove(NodeId n) {
    is_dead_[n] = true;
    const std::vector<ValueId> inputs = editor_.node(n).inputs;
    for (const ValueId input : inputs) {
      if (input == no_id || --uses_[input] != 0 || net_.maker(input) == no_id) continue;
      const NodeInfo& maker = net_.node_of(input);
      const bool is_read = std::any_of(maker.outputs.begin(), maker.outputs.end(), [&](ValueId v) { return v != no_id && uses_[v] != 0; });
      if (!is_read) remove(net_.maker(input));
    }
  }
};

}  // namespace
}  // namespace patterns

Graph recognize_patterns(Graph graph, PatternCounts* out_counts) {
  PatternCounts counts;
  graph = patterns::without_identities(std::move(graph));
  for (int round = 0; round < patterns::max_rounds && patterns::Round(graph, counts).run(); ++round) {
  }
  if (out_counts != nullptr) {
    for (const auto& [name, count] : counts.by_name) out_counts->by_name[name] += count;
  }
  return graph;
}

std::string str(const PatternCounts& counts) {
  if (counts.by_name.empty()) return "recognized: nothing";
  std::string text;
  for (const auto& [name, count] : counts.by_name) text += fmt::format("{}{} {}", text.empty() ? "recognized: " : ", ", name, count);
  return text;
}

}  // namespace tenon::graph
