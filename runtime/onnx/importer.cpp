// SPDX-License-Identifier: Apache-2.0
#include "onnx/importer.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tenon/error.h>

#include "onnx/graph_names.h"
#include "onnx/importer_scope.h"

namespace tenon::onnx {

std::int64_t Frame::opset(std::string_view domain) const {
  const auto found = std::ranges::find(opsets, domain, &OpsetRecord::domain);
  return found == opsets.end() ? 0 : found->version;
}

Importer::Importer(const ModelFile& file, Weights& weights, const Evaluate& evaluate, const InputTypes& inputs,
                   const ImportOptions& options, Graph& out_graph)
    : file_(file),
      graph_(options.graph != nullptr ? *options.graph : file.model().graph),
      weights_(weights),
      evaluate_(evaluate),
      input_types_(inputs),
      options_(options) {
  target_.graph = &out_graph;
  auto frame = std::make_shared<Frame>();
  frame->opsets = file.model().opsets;
  frame_ = std::move(frame);
  for (const FunctionRecord& function : file.model().functions) functions_[FunctionKey::of(function)] = &function;
}

void Importer::run() {
  Scope scope;
  const Restore current(scope_, &scope);
  std::vector<std::string> names = options_.outputs;
  if (names.empty()) {
    for (const ValueRecord& output : graph_.outputs) names.emplace_back(output.name);
  }
  const auto is_input = [&](const auto& given) {
    return std::ranges::find(graph_.inputs, given.first, &ValueRecord::name) != graph_.inputs.end();
  };
  is_part_ = !options_.outputs.empty() || !std::ranges::all_of(input_types_, is_input);
  if (is_part_) needed_ = names_behind(graph_, names, input_types_);
  if (options_.mode != nullptr) small_weights_ = weight_operands(graph_);
  for (const auto& [name, tensor] : options_.constants) {
    scope.values[name] = Operand(tensor);
    fixed_.insert(name);
  }
  add_initializers(graph_, scope);
  add_inputs();
  import_nodes(graph_.nodes, scope);
  if (options_.output_boundary) {
    for (std::string& name : boundary(scope)) {
      if (std::ranges::find(names, name) == names.end()) names.push_back(std::move(name));
    }
  }
  std::vector<std::pair<std::string, Value>> outputs;
  for (const std::string& name : names) {
    const Operand* operand = scope.find(name);
    if (operand == nullptr) throw Error(fmt::format("{}: output '{}': no node computes it", file_.name(), name));
    if (operand->kind == Operand::Kind::failed) continue;
    if (operand->kind != Operand::Kind::tensor) {
      problems_.push_back(fmt::format("output '{}' is a sequence or an optional, expected a tensor", name));
      continue;
    }
    outputs.emplace_back(name, value_of(*operand));
  }
  if (!problems_.empty()) {
    const std::size_t others = problems_.size() > 20 ? problems_.size() - 20 : 0;
    if (others > 0) problems_.resize(20);
    throw Error(Status::unsupported,
                fmt::format("{}{}", fmt::join(problems_, "\n"), others > 0 ? fmt::format("\nand {} more", others) : ""));
  }
  for (const auto& [name, value] : outputs) target_.graph->output(name, value);
  for (const auto& [name, next] : next_states_) target_.graph->update(parameters_.at(name), next);
}

void Importer::add_initializers(const GraphRecord& graph, Scope& scope) {
  const auto add = [&](const auto& record, std::string_view name) {
    const Tensor& tensor = weights_.tensor(record);
    weights_.declare(tensor, name, small_weights_.contains(name) ? 1 : 2);
    scope.values[name] = Operand(tensor);
    if (depth_ == 0) fixed_.insert(name);
  };
  for (const TensorRecord& record : graph.initializers) add(record, record.name);
  for (const SparseTensorRecord& record : graph.sparse_initializers) add(record, record.values.name);
}

void Importer::add_inputs() {
  const auto add = [&](const std::string& name, const InputType& type) {
    Operand operand(target_.graph->input(name, type.dtype, type.shape));
    if (type.elements.defined()) {
      operand.known = type.elements.to_host().contiguous();
    } else if (type.shape.count() <= max_specialised_elements) {
      auto recipe = std::make_shared<Recipe>();
      recipe->input = name;
      recipe->needs_inputs = true;
      operand.recipe = std::move(recipe);
    }
    scope_->values[name] = std::move(operand);
  };
  for (const ValueRecord& input : graph_.inputs) {
    if (scope_->values.contains(input.name)) continue;  // an initializer, of which IR version 3 makes an input as well
    const auto given = input_types_.find(std::string(input.name));
    if (given == input_types_.end() && !is_needed(input.name)) continue;
    if (given == input_types_.end()) throw Error(fmt::format("{}: input '{}' is missing", file_.name(), input.name));
    add(given->first, given->second);
  }
  for (const auto& [name, type] : input_types_) {
    if (!scope_->values.contains(name) && is_needed(name)) add(name, type);
  }
}

bool Importer::is_computed(const NodeRecord& node) const {
  return std::ranges::any_of(node.outputs,
                             [&](std::string_view name) { return is_needed(name) && !input_types_.contains(std::string(name)); });
}

void Importer::import_nodes(const std::vector<NodeRecord>& nodes, Scope& scope) {
  const bool is_inner = &nodes != &graph_.nodes;
  for (const NodeRecord* node : sort_nodes(nodes, file_.name())) {
    if (is_inner || is_computed(*node)) import_node(*node, scope);
  }
}

Value Importer::value_of(const Operand& operand) {
  if (operand.value.present() && &operand.value.graph() == target_.graph) return operand.value;
  if (operand.kind == Operand::Kind::failed) throw Failed{};
  if (!operand.is_known()) throw Error(fmt::format("{}: expected a tensor, got a sequence, an optional, or an absent value", file_.name()));
  const Tensor& known = operand.known;
  if (target_.on_host) {
    Value& value = target_.values[{known.address(), known.dtype(), known.shape().str()}];
    if (!value.present()) {
      value = target_.graph->input(fmt::format("operand_{}", target_.inputs.size()), known.dtype(), known.shape());
      target_.inputs.push_back(known);
    }
    return value;
  }
  if (const std::string* name = weights_.name_of(known); name != nullptr) {
    Value& value = parameters_[*name];
    if (!value.present()) value = target_.graph->parameter(*name, known.dtype(), known.shape());
    return value;
  }
  auto& [tensor, value] = constants_[{known.address(), known.dtype(), known.shape().str()}];
  if (!value.present()) {
    tensor = known;
    value = target_.graph->constant(known);
  }
  return value;
}

Value Importer::key() {
  if (!key_.present()) key_ = target_.graph->input(key_input, DType::u64, {2});
  return key_;
}

Value Importer::state(const Operand& weight) {
  const Value before = value_of(weight);
  const std::string& name = *weights_.name_of(weight.known);
  states_.insert(name);
  const auto next = next_states_.find(name);
  return next == next_states_.end() ? before : next->second;
}

void Importer::set_state(const Operand& weight, Value next) {
  next_states_[*weights_.name_of(weight.known)] = next;
}

}  // namespace tenon::onnx
