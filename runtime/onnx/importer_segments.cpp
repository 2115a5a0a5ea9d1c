// SPDX-License-Identifier: Apache-2.0
// onnx/importer_segments.cpp - ends an import at a node that needs computed elements, so that the model runs in segments.
#include <fmt/core.h>

#include <cstddef>
#include <set>

#include <tenon/error.h>

#include "onnx/graph_names.h"
#include "onnx/importer_scope.h"

namespace tenon::onnx {

std::vector<std::string> Importer::boundary(const Scope& scope) const {
  std::set<std::string_view> read;
  for (const ValueRecord& output : graph_.outputs) read.insert(output.name);
  for (const NodeRecord& node : graph_.nodes) {
    if (!is_computed(node)) for_each_read(node, [&](std::string_view name) { read.insert(name); });
  }
  std::vector<std::string> names;
  for (const NodeRecord& node : graph_.nodes) {
    for (const std::string_view name : node.outputs) {
      const Operand* operand = read.contains(name) ? scope.find(name) : nullptr;
      // What is known, or has a recipe, is as cheap to import again, and stays known.
      const bool is_result = operand != nullptr && operand->kind == Operand::Kind::tensor && !operand->is_known() &&
                             operand->recipe == nullptr && target_.graph->info(operand->value.id()).kind == ValueKind::computed;
      if (is_result) names.emplace_back(name);
    }
  }
  return names;
}

void Importer::need_values(const NodeRecord& node, const std::vector<Operand>& operands, const ElementsUnknown& unknown) const {
  if (node.domain.empty() && node.op == "Loop") need_bodies(node, unknown.what());
  ValuesNeeded needed{.values = {}, .results = {}, .problem = unknown.what()};
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (operands[i].is_absent() || operands[i].is_known() || (!unknown.sizes_results && i != unknown.operand)) continue;
    const bool fits =
        operands[i].kind == Operand::Kind::tensor && (unknown.sizes_results || operands[i].shape().count() <= max_specialised_elements);
    if (!fits) throw unknown;
    needed.values.emplace_back(node.inputs[i]);
  }
  if (unknown.sizes_results) {
    for (const std::string_view name : node.outputs) {
      if (!name.empty()) needed.results.emplace_back(name);
    }
  }
  throw needed;
}

void Importer::need_bodies(const NodeRecord& node, const std::string& problem) const {
  ValuesNeeded needed{.values = {}, .results = {}, .problem = problem, .control = &node};
  std::set<std::string_view> seen;
  const auto add = [&](std::string_view name) {
    if (name.empty() || !seen.insert(name).second) return;
    const Operand& operand = *scope_->find(name);
    if (operand.kind != Operand::Kind::tensor) {
      throw Error(Status::unsupported,
                  fmt::format("{}; and the node reads '{}', a sequence or an optional, expected a tensor", problem, name));
    }
    if (operand.is_known() && (fixed_.contains(name) || weights_.name_of(operand.known) != nullptr)) {
      needed.constants[std::string(name)] = operand.known;
    } else {
      needed.values.emplace_back(name);
    }
  };
  for (const std::string_view name : node.inputs) add(name);
  for (const AttributeRecord& attribute : node.attributes) {
    for (const GraphRecord& body : attribute.graphs) {
      const std::set<std::string_view> own = names_of(body);
      const auto add_outer = [&](std::string_view name) {
        if (!own.contains(name) && scope_->find(name) != nullptr) add(name);
      };
      for (const NodeRecord& inner : body.nodes) for_each_read(inner, add_outer);
      for (const ValueRecord& output : body.outputs) add_outer(output.name);
    }
  }
  for (const std::string_view name : node.outputs) {
    if (!name.empty()) needed.results.emplace_back(name);
  }
  throw needed;
}

void Importer::run_bodies(const Node& node, const std::string& problem) const {
  if (is_cut() && control_ != nullptr) throw BodiesNeeded{problem};
  node.unsupported(problem);
}

}  // namespace tenon::onnx
