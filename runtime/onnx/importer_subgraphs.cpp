// SPDX-License-Identifier: Apache-2.0
// onnx/importer_subgraphs.cpp - functions and subgraphs, whose nodes become a part of the graph that is imported.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include <tenon/error.h>

#include "onnx/graph_names.h"
#include "onnx/importer_scope.h"
#include "text/counted.h"

namespace tenon::onnx {
namespace {

/// Of functions and subgraphs in each other.
constexpr int max_depth = 128;

}  // namespace

void Importer::inline_function(const FunctionRecord& function, const NodeRecord& node, std::vector<Operand> operands, Scope& scope) {
  if (depth_ >= max_depth) {
    throw Error(
        fmt::format("{}: expected functions and subgraphs at most {} deep, got a deeper one", label_of(file_.name(), node), max_depth));
  }
  auto frame = std::make_shared<Frame>();
  frame->opsets = function.opsets.empty() ? frame_->opsets : function.opsets;
  frame->caller = frame_;
  for (const AttributeRecord& attribute : function.attributes_defaults) frame->attributes[attribute.name] = &attribute;
  for (const AttributeRecord& attribute : node.attributes) {
    const AttributeRecord* given = &attribute;
    if (!attribute.reference.empty()) {
      const auto bound = frame_->attributes.find(attribute.reference);
      given = bound == frame_->attributes.end() ? nullptr : bound->second;
    }
    if (given != nullptr) frame->attributes[attribute.name] = given;
  }
  Scope inner;
  for (std::size_t i = 0; i < function.inputs.size(); ++i) inner.values[function.inputs[i]] = i < operands.size() ? operands[i] : Operand();
  std::vector<Operand> results;
  {
    const Restore<std::shared_ptr<const Frame>> new_frame(frame_, std::move(frame));
    const Restore current(scope_, &inner);
    const Restore depth(depth_, depth_ + 1);
    import_nodes(function.nodes, inner);
    for (std::size_t i = 0; i < std::min(function.outputs.size(), node.outputs.size()); ++i) {
      const Operand* result = inner.find(function.outputs[i]);
      if (result == nullptr && !node.outputs[i].empty()) {
        throw Error(fmt::format("{}: function {}.{}: no node computes its output '{}'", file_.name(), function.domain, function.name,
                                function.outputs[i]));
      }
      results.push_back(result == nullptr ? Operand() : *result);
    }
  }
  set_results(node, std::move(results), scope);
}

std::vector<Operand> Importer::run_graph(const GraphRecord& graph, std::vector<Operand> inputs) {
  if (depth_ >= max_depth)
    throw Error(fmt::format("{}: graph '{}': expected functions and subgraphs at most {} deep, got a deeper one", file_.name(), graph.name,
                            max_depth));
  if (inputs.size() > graph.inputs.size()) {
    throw Error(
        fmt::format("{}: graph '{}': expected {}, got {}", file_.name(), graph.name, counted(graph.inputs.size(), "input"), inputs.size()));
  }
  Scope scope;
  scope.parent = scope_;
  const Restore current(scope_, &scope);
  const Restore depth(depth_, depth_ + 1);
  add_initializers(graph, scope);
  for (std::size_t i = 0; i < inputs.size(); ++i) scope.values[graph.inputs[i].name] = std::move(inputs[i]);
  import_nodes(graph.nodes, scope);
  std::vector<Operand> results;
  for (const ValueRecord& output : graph.outputs) {
    const Operand* result = scope.find(output.name);
    if (result == nullptr)
      throw Error(fmt::format("{}: graph '{}': no node computes its output '{}'", file_.name(), graph.name, output.name));
    if (result->kind == Operand::Kind::failed) throw Failed{};
    results.push_back(*result);
  }
  return results;
}

void Importer::count_iterations(const Node& node, std::int64_t iterations) {
  iterations_ += std::min(iterations, options_.max_unrolled_iterations + 1);
  if (iterations_ > options_.max_unrolled_iterations) {
    node.unsupported(
        fmt::format("expected at most {} iterations of loops in the model, which are unrolled; got more "
                    "(LoadOptions::max_unrolled_iterations)",
                    options_.max_unrolled_iterations));
  }
}

}  // namespace tenon::onnx
