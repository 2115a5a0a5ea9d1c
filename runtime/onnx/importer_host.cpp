// SPDX-License-Identifier: Apache-2.0
// onnx/importer_host.cpp - evaluates nodes on the host while a graph is imported: constants, and elements that rules ask for.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include <tenon/error.h>

#include "core/log.h"
#include "exec/immediate.h"
#include "exec/oracle.h"
#include "onnx/graph_names.h"
#include "onnx/importer_scope.h"

namespace tenon::onnx {
namespace {

/// Larger operands are not evaluated on the host unless a rule asks for their elements.
constexpr std::int64_t max_host_elements = std::int64_t{1} << 16;
/// Of recipes that depend on each other, since they are evaluated recursively.
constexpr int max_recipe_depth = 2000;

template <class Test>
bool all_tensors(const std::vector<Operand>& operands, const Test& test) {
  return std::ranges::all_of(operands, [&](const Operand& operand) {
    if (operand.kind == Operand::Kind::list) return all_tensors(operand.list, test);
    return operand.is_absent() || test(operand);
  });
}

std::int64_t count_elements(const std::vector<Operand>& operands) {
  std::int64_t count = 0;
  for (const Operand& operand : operands) {
    if (operand.kind == Operand::Kind::list) count += count_elements(operand.list);
    if (operand.kind == Operand::Kind::tensor) count += operand.shape().count();
  }
  return count;
}

/// The inputs of the model that a value depends on.
void collect_inputs(const Operand& operand, std::set<std::string>& out_inputs, std::set<const Recipe*>& seen) {
  const Recipe* recipe = operand.recipe.get();
  if (operand.is_known() || recipe == nullptr || !recipe->needs_inputs || !seen.insert(recipe).second) return;
  if (!recipe->input.empty()) out_inputs.insert(recipe->input);
  for (const Operand& other : recipe->operands) collect_inputs(other, out_inputs, seen);
}

bool has_subgraph(const NodeRecord& node) {
  return std::ranges::any_of(node.attributes, [](const AttributeRecord& attribute) { return !attribute.graphs.empty(); });
}

}  // namespace

Evaluate evaluate_on_host(const Context& context, const Device& device) {
  const std::string oracle = exec::oracle_device(context);
  const Device host = oracle.empty() ? device : context.device(oracle);
  return [context, host](const Graph& graph, std::span<const Tensor> inputs) {
    std::vector<Tensor> results = exec::run_immediately(context, host, graph, inputs);
    for (Tensor& result : results) result = result.to_host().contiguous();
    return results;
  };
}

std::vector<Operand> Importer::fold(const Rule& rule, const NodeRecord& node, const std::vector<Operand>& operands) {
  const auto is_constant = [&](const Operand& operand) { return operand.is_known() && weights_.name_of(operand.known) == nullptr; };
  // The nodes of a subgraph are evaluated one by one.
  if (has_subgraph(node) || !all_tensors(operands, is_constant) || count_elements(operands) > max_host_elements) return {};
  try {
    return evaluate(rule, node, operands, true);
  } catch (const Error& error) {
    // Where the host lacks an op, the graph may have it; other errors occur there again.
    log::info("{} is not evaluated on the host: {}", label_of(file_.name(), node), error.what());
    return {};
  }
}

void Importer::add_recipes(const Rule& rule, const NodeRecord& node, const std::vector<Operand>& operands,
                           std::vector<Operand>& results) const {
  if (has_subgraph(node) || !all_tensors(operands, [](const Operand& o) { return o.is_known() || o.recipe != nullptr; })) return;
  int depth = 0;
  bool needs_inputs = false;
  for (const Operand& operand : operands) {
    if (operand.is_known() || operand.recipe == nullptr) continue;
    depth = std::max(depth, operand.recipe->depth + 1);
    needs_inputs = needs_inputs || operand.recipe->needs_inputs;
  }
  if (depth >= max_recipe_depth) return;
  const auto memo = std::make_shared<std::vector<Tensor>>();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (results[i].kind != Operand::Kind::tensor || results[i].is_known() || results[i].recipe != nullptr) continue;
    auto recipe = std::make_shared<Recipe>();
    recipe->node = &node;
    recipe->rule = &rule;
    recipe->frame = frame_;
    recipe->operands = operands;
    recipe->output = i;
    recipe->needs_inputs = needs_inputs;
    recipe->depth = depth;
    recipe->results = memo;
    results[i].recipe = std::move(recipe);
  }
}

std::vector<Operand> Importer::evaluate(const Rule& rule, const NodeRecord& node, const std::vector<Operand>& operands, bool limited) {
  Graph graph;
  Target target;
  target.graph = &graph;
  target.on_host = true;
  const Restore<Target> host(target_, std::move(target));
  Node context(*this, node, std::max<std::int64_t>(frame_->opset(node.domain), 1), operands);
  rule.apply(context);
  std::vector<Operand> results = std::move(context.results());
  const std::int64_t most = std::max(max_host_elements, count_elements(operands));
  std::vector<Operand*> computed;
  const auto resolve = [&](auto&& self, std::vector<Operand>& list) -> bool {
    for (Operand& result : list) {
      if (result.kind == Operand::Kind::list && !self(self, result.list)) return false;
      if (!result.value.present() || result.is_known()) continue;
      if (limited && result.shape().count() > most) return false;
      const ValueInfo& info = graph.info(result.value.id());
      if (info.kind == ValueKind::constant) {
        result.known = info.constant;
      } else if (info.kind == ValueKind::input) {
        // Inputs are the operands in the order of target_.inputs; other values lie between them.
        std::size_t position = 0;
        for (ValueId v = 0; v < result.value.id(); ++v) position += graph.info(v).kind == ValueKind::input ? 1U : 0U;
        result.known = target_.inputs.at(position);
      } else {
        graph.output(fmt::format("result_{}", computed.size()), result.value);
        computed.push_back(&result);
      }
    }
    return true;
  };
  if (!resolve(resolve, results)) return {};
  if (!computed.empty()) {
    const std::vector<Tensor> values = evaluate_(graph, target_.inputs);
    for (std::size_t i = 0; i < computed.size(); ++i) computed[i]->known = values[i];
  }
  const auto forget = [&](auto&& self, std::vector<Operand>& list) -> void {
    for (Operand& result : list) {
      self(self, result.list);
      result.value = {};
      result.recipe = {};
    }
  };
  forget(forget, results);
  return results;
}

Tensor Importer::evaluate(const Recipe& recipe) {
  if (recipe.results->empty()) {
    std::vector<Operand> operands = recipe.operands;
    for (Operand& operand : operands) {
      if (operand.kind != Operand::Kind::tensor || operand.is_known()) continue;
      operand = Operand(elements_of(operand, true));
      if (!operand.is_known()) return {};
    }
    const Restore<std::shared_ptr<const Frame>> frame(frame_, recipe.frame);
    for (const Operand& result : evaluate(*recipe.rule, *recipe.node, operands, false)) recipe.results->push_back(result.known);
  }
  return recipe.output < recipe.results->size() ? (*recipe.results)[recipe.output] : Tensor();
}

Tensor Importer::elements_of(const Operand& operand, bool needed) {
  if (operand.kind == Operand::Kind::failed) throw Failed{};
  if (operand.is_known() || operand.recipe == nullptr) return operand.known;
  if (operand.recipe->needs_inputs) {
    if (!needed) return {};
    ElementsNeeded inputs;
    std::set<const Recipe*> seen;
    collect_inputs(operand, inputs.inputs, seen);
    throw inputs;
  }
  return evaluate(*operand.recipe);
}

}  // namespace tenon::onnx
