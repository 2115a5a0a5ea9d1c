// SPDX-License-Identifier: Apache-2.0
// onnx/importer_node.cpp - imports one node: by its rule, as a call of a function, or as an op of a vendor.
#include <fmt/core.h>

#include <algorithm>
#include <cstddef>

#include <tenon/error.h>
#include <tenon/vendor_ops.h>

#include "graph/vendor_ops.h"
#include "io/limits.h"
#include "onnx/graph_names.h"
#include "onnx/importer_scope.h"

namespace tenon::onnx {
namespace {

bool runs_bodies(const NodeRecord& node) {
  return node.domain.empty() && (node.op == "If" || node.op == "Loop");
}

}  // namespace

void Importer::import_node(const NodeRecord& node, Scope& scope) {
  static const std::uint64_t most = io::limit(io::Limit::onnx_nodes);
  if (++nodes_ > most) io::fail_limit(file_.name(), io::Limit::onnx_nodes, "more");
  std::vector<Operand> operands;
  bool failed = false;
  for (const std::string_view name : node.inputs) {
    const Operand* operand = name.empty() ? nullptr : scope.find(name);
    if (operand == nullptr && !name.empty()) {
      throw Error(fmt::format("{} reads '{}', which no node computes and is no input", label_of(file_.name(), node), name));
    }
    operands.push_back(operand == nullptr ? Operand() : *operand);
    failed = failed || operands.back().kind == Operand::Kind::failed;
  }
  if (!failed) {
    try {
      const std::int64_t opset = std::max<std::int64_t>(frame_->opset(node.domain), 1);
      if (const Rule* rule = find_rule(node.domain, node.op, opset); rule != nullptr) {
        try {
          const Restore control(control_, depth_ > 0 ? control_ : runs_bodies(node) ? &node : nullptr);
          return apply_rule(*rule, node, opset, operands, scope);
        } catch (const ElementsUnknown& unknown) {
          if (!is_cut()) throw;
          if (depth_ == 0) need_values(node, operands, unknown);
          if (control_ != nullptr) throw BodiesNeeded{unknown.what()};
          throw;
        } catch (const BodiesNeeded& needed) {
          if (depth_ > 0) throw;
          need_bodies(node, needed.problem);
        }
      }
      if (const auto function = functions_.find(FunctionKey::of(node)); function != functions_.end()) {
        return inline_function(*function->second, node, std::move(operands), scope);
      }
      if (!node.domain.empty() && graph::find_vendor_op(node.domain, node.op) != nullptr) {
        return set_results(node, apply_vendor_op(node, operands), scope);
      }
      const char* refusal = refusal_of(node.domain, node.op);
      Node(*this, node, opset, std::move(operands)).unsupported(refusal != nullptr ? refusal : "Tenon has no such operator");
    } catch (const Failed&) {
    } catch (const Error& error) {
      // Errors of ops do not know the node that they belong to.
      std::string text = error.what();
      if (!text.starts_with(file_.name())) text = fmt::format("{}: {}", label_of(file_.name(), node), text);
      if (error.status() != Status::unsupported) throw Error(error.status(), text);
      problems_.push_back(std::move(text));
    }
  }
  Operand result;
  result.kind = Operand::Kind::failed;
  set_results(node, std::vector<Operand>(node.outputs.size(), result), scope);
}

void Importer::apply_rule(const Rule& rule, const NodeRecord& node, std::int64_t opset, std::vector<Operand> operands, Scope& scope) {
  if (std::vector<Operand> results = fold(rule, node, operands); !results.empty()) {
    const bool literal = node.op == "Constant" && node.domain.empty();
    if (literal && results[0].is_known()) {
      if (depth_ == 0) fixed_.insert(node.outputs[0]);
      weights_.declare(results[0].known, node.outputs[0], small_weights_.contains(node.outputs[0]) ? 1 : 2);
    }
    return set_results(node, std::move(results), scope);
  }
  std::vector<Operand> results;
  {
    Graph& graph = *target_.graph;
    std::string before = graph.scope();
    if (!target_.on_host) graph.set_scope((before.empty() ? "" : before + "/") + scope_name(node));
    struct Leave {
      Graph& graph;
      std::string scope;
      ~Leave() { graph.set_scope(std::move(scope)); }
    } const leave{graph, std::move(before)};
    Node context(*this, node, opset, operands);
    rule.apply(context);
    results = std::move(context.results());
  }
  add_recipes(rule, node, operands, results);
  set_results(node, std::move(results), scope);
}

std::vector<Operand> Importer::apply_vendor_op(const NodeRecord& node, const std::vector<Operand>& operands) {
  std::vector<Value> inputs;
  for (const Operand& operand : operands) inputs.push_back(operand.is_absent() ? Value() : value_of(operand));
  AttributeValues attributes;
  for (const AttributeRecord& attribute : node.attributes) {
    AttributeValue& value = attributes[std::string(attribute.name)];
    switch (attribute.type) {
      case AttributeRecord::Type::i:
        value = attribute.integer;
        break;
      case AttributeRecord::Type::f:
        value = static_cast<double>(attribute.number);
        break;
      case AttributeRecord::Type::s:
        value = std::string(attribute.text);
        break;
      case AttributeRecord::Type::ints:
        value = attribute.integers;
        break;
      case AttributeRecord::Type::floats:
        value = std::vector<double>(attribute.numbers.begin(), attribute.numbers.end());
        break;
      default:
        Node(*this, node, 1, {})
            .unsupported(fmt::format("attribute '{}': a vendor's op takes numbers, texts and lists of numbers", attribute.name));
    }
  }
  const std::vector<Value> results = ops::call(fmt::format("{}.{}", node.domain, node.op), inputs, attributes);
  return {results.begin(), results.end()};
}

void Importer::set_results(const NodeRecord& node, std::vector<Operand> results, Scope& scope) {
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (depth_ == 0 && scope.values.contains(node.outputs[i]) && input_types_.contains(std::string(node.outputs[i]))) continue;
    Operand result = i < results.size() ? std::move(results[i]) : Operand();
    if (!scope.values.insert_or_assign(node.outputs[i], std::move(result)).second) {
      throw Error(fmt::format("{} computes '{}', which has a value already: expected one node for each value", label_of(file_.name(), node),
                              node.outputs[i]));
    }
  }
}

}  // namespace tenon::onnx
