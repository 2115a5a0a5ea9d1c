// SPDX-License-Identifier: Apache-2.0
#include "operands.h"

#include <tenon/sdk/op_versions.h>

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "counted.h"
#include "vendor_node.h"

namespace tenon::sdk {
namespace {

struct Listed {
  tenon_op op;
  std::uint32_t version;
  std::uint32_t attributes_size;
  Indexing indexing;
  std::string_view schema;
};
constexpr Listed listed[] = {
#define TENON_OP(id, name, version, stem, family, type_operand, dtypes, attributes, indexing, schema) \
  {id, version, sizeof(tenon_attributes_##attributes), Indexing::indexing, schema},
#include <tenon/ops.def>
#undef TENON_OP
};

const Listed* find(tenon_op op, std::uint32_t version) {
  for (const Listed& line : listed) {
    if (line.op == op && line.version == version) return &line;
  }
  return nullptr;
}

/// "name:types?" of a schema.
struct Rule {
  std::string_view name, types;
  bool optional = false;
  std::uint32_t group = 0;  ///< which repetition, counted from 1; 0: outside of groups
};

/// One side of a schema: fixed operands, then a group that repeats.
struct Side {
  std::vector<Rule> fixed, group;
};

Side parse(std::string_view text) {
  Side side;
  bool in_group = false;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    std::string_view word = text.substr(0, space);
    text.remove_prefix(space == text.npos ? text.size() : space + 1);
    if (word.empty()) continue;
    if (word.front() == '(') {
      in_group = true;
      word.remove_prefix(1);
    }
    const bool ends_group = word.size() > 2 && word.substr(word.size() - 2) == ")*";
    if (ends_group) word.remove_suffix(2);
    Rule rule;
    rule.optional = word.back() == '?';
    if (rule.optional) word.remove_suffix(1);
    rule.name = word.substr(0, word.find(':'));
    rule.types = word.substr(rule.name.size() + 1);
    (in_group ? side.group : side.fixed).push_back(rule);
    if (ends_group) in_group = false;
  }
  return side;
}

std::vector<Rule> without_optional(const std::vector<Rule>& rules) {
  std::vector<Rule> rest;
  for (const Rule& rule : rules) {
    if (!rule.optional) rest.push_back(rule);
  }
  return rest;
}

/// How often the group of `side` repeats after the fixed operands to make `count`; no_count if it does not. 1 for a side without a group.
constexpr std::size_t no_count = ~std::size_t{0};
std::size_t repetitions(std::size_t count, const Side& side) {
  if (side.group.empty()) return 1;
  if (count < side.fixed.size() || (count - side.fixed.size()) % side.group.size() != 0) return no_count;
  return (count - side.fixed.size()) / side.group.size();
}

/// The rules of a node's operands: both sides, and how often their groups repeat.
struct Rules {
  Side inputs, outputs;
  std::size_t input_groups = 1, output_groups = 1;
  bool whole_groups = true;
};

Rules rules_of(const Node& node, const Listed& line) {
  const std::string_view operands = line.schema.substr(0, line.schema.find(';'));
  const std::size_t arrow = operands.find(" -> ");
  Rules rules{parse(operands.substr(0, arrow)), parse(operands.substr(arrow + 4))};
  Side &in = rules.inputs, &out = rules.outputs;
  if (in.group.empty() && out.group.empty()) return rules;
  // The optional members of a group are present in all groups or in none.
  for (const bool all : {true, false}) {
    if (!all) {
      in.group = without_optional(in.group);
      out.group = without_optional(out.group);
    }
    rules.input_groups = repetitions(node.inputs.size(), in);
    rules.output_groups = repetitions(node.outputs.size(), out);
    if (rules.input_groups == no_count || rules.output_groups == no_count) continue;
    if (!in.group.empty() && !out.group.empty() && rules.input_groups != rules.output_groups) continue;
    return rules;
  }
  rules.whole_groups = false;
  return rules;
}

std::size_t rule_count(const Side& side, std::size_t groups) {
  return side.fixed.size() + groups * side.group.size();
}
/// The rule of operand i, its group counted from 1.
Rule rule_at(const Side& side, std::size_t i) {
  if (i < side.fixed.size()) return side.fixed[i];
  const std::size_t rest = i - side.fixed.size();
  Rule rule = side.group[rest % side.group.size()];
  rule.group = static_cast<std::uint32_t>(rest / side.group.size()) + 1;
  return rule;
}

/// The type S of a schema: sums of 16-bit types are accumulated in f32.
tenon_dtype accumulation_dtype(tenon_dtype selected) {
  return selected == TENON_DTYPE_F16 || selected == TENON_DTYPE_BF16 ? tenon_dtype{TENON_DTYPE_F32} : selected;
}

/// "i32|i64" allows i64; T allows the selected dtype, S that of its sums, U any real one.
bool allows(std::string_view types, tenon_dtype dtype, tenon_dtype selected) {
  if (types == "U") return (TENON_DTYPES_MOVE & TENON_DTYPE_BIT(dtype)) != 0;
  if (types == "T") return dtype == selected;
  if (types == "S") return dtype == accumulation_dtype(selected);
  while (!types.empty()) {
    const std::size_t bar = types.find('|');
    if (types.substr(0, bar) == name_of(dtype)) return true;
    types.remove_prefix(bar == types.npos ? types.size() : bar + 1);
  }
  return false;
}

std::string in_words(std::string_view types, tenon_dtype selected) {
  if (types == "T") return name_of(selected);
  if (types == "S") return name_of(accumulation_dtype(selected));
  if (types == "U") return "a real dtype";
  std::string words(types);
  for (std::size_t bar; (bar = words.find('|')) != words.npos;) words.replace(bar, 1, " or ");
  return words;
}

Diagnostic check_side(const GraphModel& graph, const std::vector<std::uint32_t>& operands, const Side& rules, std::size_t groups,
                      const char* side, tenon_dtype selected) {
  const std::size_t count = rule_count(rules, groups);
  if (operands.size() > count) {
    return {TENON_REASON_SHAPE, "expected at most " + counted(count, side) + ", got " + std::to_string(operands.size())};
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Rule rule = rule_at(rules, i);
    const std::string what = std::string(side) + ' ' + std::string(rule.name);
    const std::uint32_t v = i < operands.size() ? operands[i] : TENON_NO_INDEX;
    if (v == TENON_NO_INDEX) {
      // A step over several tensors may leave out results of a group; a single result is mandatory.
      const bool may_miss = rule.optional || (rule.group != 0 && side[0] == 'o');
      if (!may_miss) return {TENON_REASON_SHAPE, what + " is absent"};
      continue;
    }
    const tenon_dtype dtype = graph.values[v].dtype;
    if (!allows(rule.types, dtype, selected)) {
      return {TENON_REASON_DTYPE, what + " is " + name_of(dtype) + ", expected " + in_words(rule.types, selected)};
    }
  }
  return {};
}

std::string shape_text(const Value& value) {
  std::string text = "(";
  for (std::uint32_t d = 0; d < value.rank; ++d) text += (d == 0 ? "" : ",") + std::to_string(value.shape[d]);
  return text + ")";
}

bool is_permutation_of_shape(const Value& x, const Value& y, const tenon_attributes_axes& attributes) {
  if (x.rank != y.rank || attributes.count != x.rank) return false;
  std::uint32_t seen = 0;
  for (std::uint32_t d = 0; d < x.rank; ++d) {
    const std::int64_t from = attributes.axes[d];
    if (from < 0 || from >= x.rank || y.shape[d] != x.shape[from]) return false;
    seen |= 1u << from;
  }
  return seen == (1u << x.rank) - 1;
}

bool broadcasts(const Value& x, const Value& y) {
  if (x.rank > y.rank) return false;
  for (std::uint32_t d = 0; d < x.rank; ++d) {
    if (x.shape[d] != 1 && x.shape[d] != y.shape[d + y.rank - x.rank]) return false;
  }
  return true;
}

/// Shape ops become views without a kernel that checks their shapes, so they are checked here.
bool shapes_fit(const GraphModel& graph, const Node& node) {
  const Value& x = graph.values[node.inputs[0]];
  const Value& y = graph.values[node.outputs[0]];
  switch (indexing_of(node)) {
    case Indexing::reshape:
      return x.count == y.count;
    case Indexing::transpose:
      return is_permutation_of_shape(x, y, *reinterpret_cast<const tenon_attributes_axes*>(node.attributes.data()));
    case Indexing::expand:
      return broadcasts(x, y);
    default:
      return true;
  }
}

}  // namespace

Indexing indexing_of(const Node& node) {
  const Listed* line = std::find_if(std::begin(listed), std::end(listed), [&](const Listed& l) { return l.op == node.op; });
  return line == std::end(listed) || attributes_size(node.op, node.version) == 0 ? Indexing::other : line->indexing;
}

std::uint32_t attributes_size(tenon_op op, std::uint32_t version) {
  if (const OlderVersion* older = find_older(op, version)) return older->attributes_size;
  const Listed* line = find(op, version);
  return line == nullptr ? 0 : line->attributes_size;
}

Diagnostic check_operands(const GraphModel& graph, const Node& node, tenon_dtype selected) {
  if (node.row != nullptr && node.row->vendor_op != nullptr) return check_vendor_node(graph, node);
  const Listed* line = find(node.op, node.version);
  if (line == nullptr) return {};
  const Rules rules = rules_of(node, *line);
  if (!rules.whole_groups) {
    return {TENON_REASON_SHAPE,
            counted(node.inputs.size(), "input") + " and " + counted(node.outputs.size(), "output") + " do not form whole groups"};
  }
  Diagnostic diagnostic = check_side(graph, node.inputs, rules.inputs, rules.input_groups, "input", selected);
  if (diagnostic.reason == TENON_REASON_NONE) {
    diagnostic = check_side(graph, node.outputs, rules.outputs, rules.output_groups, "output", selected);
  }
  if (diagnostic.reason == TENON_REASON_NONE && !shapes_fit(graph, node)) {
    diagnostic = {TENON_REASON_SHAPE,
                  "x " + shape_text(graph.values[node.inputs[0]]) + " cannot become y " + shape_text(graph.values[node.outputs[0]])};
  }
  return diagnostic;
}

bool updates_in_place(const Node& node, std::size_t input, std::size_t output) {
  const Listed* line = find(node.op, node.version);
  if (line == nullptr) return false;
  const Rules rules = rules_of(node, *line);
  if (!rules.whole_groups || input >= rule_count(rules.inputs, rules.input_groups)) return false;
  if (output >= rule_count(rules.outputs, rules.output_groups)) return false;
  const Rule from = rule_at(rules.inputs, input), to = rule_at(rules.outputs, output);
  return from.name == to.name && from.group == to.group;
}

}  // namespace tenon::sdk
