// SPDX-License-Identifier: Apache-2.0
// graph.cpp - building a graph: names, operands, shape rules.
#include <tenon/graph.h>

#include <fmt/format.h>

#include <tenon/error.h>

#include "graph/op.h"

namespace tenon {

Graph& Value::graph() const {
  if (!present()) throw Error("an absent value (a default-constructed tenon::Value) was used; expected a value of a graph");
  return *graph_;
}
DType Value::dtype() const {
  return graph().info(id_).dtype;
}
Shape Value::shape() const {
  return graph().info(id_).shape;
}
std::string Value::name() const {
  return graph().info(id_).name;
}

Value Graph::add_value(ValueInfo info) {
  values_.push_back(std::move(info));
  return {this, static_cast<ValueId>(values_.size() - 1)};
}

std::string Graph::free_name(const std::string& requested) const {
  const auto taken = names_.find(requested);
  if (taken == names_.end()) return requested;
  for (std::uint32_t suffix = taken->second;; ++suffix) {
    std::string name = requested + "_" + std::to_string(suffix);
    if (!names_.contains(name)) return name;
  }
}

void Graph::claim(const std::string& name) {
  names_.try_emplace(name, 1u);
  // if "softmax_7" is used, the next search for "softmax" starts after it
  const std::size_t dash = name.rfind('_');
  if (dash == std::string::npos || dash + 1 == name.size() || name.find_first_not_of("0123456789", dash + 1) != std::string::npos) return;
  const auto base = names_.find(name.substr(0, dash));
  if (base != names_.end() && name == base->first + "_" + std::to_string(base->second)) ++base->second;
}

void Graph::check_own(Value value, const char* what) const {
  if (!value.present()) throw Error(fmt::format("{}: the value is absent, expected a value of this graph", what));
  if (&value.graph() != this) throw Error(fmt::format("{}: '{}' belongs to another graph", what, value.name()));
}

Value Graph::add_bound(ValueKind kind, const std::string& name, DType dtype, const Shape& shape) {
  const char* what = kind == ValueKind::input ? "input" : "parameter";
  if (name.empty()) throw Error(fmt::format("graph: the name of the {} is empty; it is bound by name", what));
  if (dtype == DType::none) throw Error(fmt::format("{} '{}': the dtype is none, expected an element type", what, name));
  for (const ValueInfo& other : values_) {
    if ((other.kind == ValueKind::input || other.kind == ValueKind::parameter) && other.name == name) {
      throw Error(fmt::format("{} '{}': the name is already used by an {}; expected a unique name, since values are bound by name", what,
                              name, other.kind == ValueKind::input ? "input" : "parameter"));
    }
  }
  claim(name);
  ValueInfo info;
  info.kind = kind;
  info.dtype = dtype;
  info.shape = shape;
  info.name = name;
  return add_value(std::move(info));
}

Value Graph::input(const std::string& name, DType dtype, const Shape& shape, std::span<const std::int64_t> strides) {
  if (!strides.empty() && strides.size() != shape.rank()) {
    throw Error(fmt::format("input '{}': expected a stride for each axis of {}, got {}", name, shape.str(), strides.size()));
  }
  const Value value = add_bound(ValueKind::input, name, dtype, shape);
  values_[value.id()].strides.assign(strides.begin(), strides.end());
  return value;
}

Value Graph::parameter(const std::string& name, DType dtype, const Shape& shape) {
  return add_bound(ValueKind::parameter, name, dtype, shape);
}

Value Graph::constant(const Tensor& tensor, const std::string& name) {
  if (!tensor.defined()) throw Error(fmt::format("constant '{}': the tensor is undefined, expected one with elements", name));
  ValueInfo info;
  info.kind = ValueKind::constant;
  info.dtype = tensor.dtype();
  info.shape = tensor.shape();
  info.name = free_name(name.empty() ? "constant" : name);
  info.constant = tensor.to_host();
  claim(info.name);
  return add_value(std::move(info));
}

std::vector<Value> Graph::apply(tenon_op op, const std::vector<Value>& inputs, const Attributes& attributes, const NodeOptions& options) {
  const graph::OpRules& rules = graph::rules_of(op);
  graph::check_attributes(op, attributes);

  NodeInfo node;
  node.op = op;
  node.version = graph::version_of(op);
  node.attributes = attributes;
  node.name = free_name((scope_.empty() ? "" : scope_ + "/") + (options.name.empty() ? graph::stem_of(op) : options.name));
  node.device = device_;
  std::vector<const ValueInfo*> operands;
  for (Value value : inputs) {
    if (value.present()) check_own(value, graph::stem_of(op));
    node.inputs.push_back(value.id());
    operands.push_back(value.present() ? &values_[value.id()] : nullptr);
  }
  graph::Inference inference(op, node.name, std::move(operands), node.attributes, options);
  rules.infer(inference);

  claim(node.name);
  node.id = next_id_++;
  std::vector<Value> results;
  for (const graph::Inference::Output& output : inference.outputs) {
    ValueInfo info;
    info.dtype = output.dtype;
    info.shape = output.shape;
    info.name = results.empty() ? node.name : fmt::format("{}.{}", node.name, results.size());
    info.producer = static_cast<NodeId>(nodes_.size());
    info.output = static_cast<std::uint32_t>(results.size());
    results.push_back(add_value(std::move(info)));
    node.outputs.push_back(results.back().id());
  }
  nodes_.push_back(std::move(node));
  return results;
}

void Graph::output(const std::string& name, Value value) {
  if (name.empty()) throw Error("graph: the name of the output is empty; it is bound by name");
  check_own(value, ("output '" + name + "'").c_str());
  for (const GraphOutput& other : outputs_) {
    if (other.name == name)
      throw Error(fmt::format("output '{}': the name is already used by another output; expected a unique name", name));
  }
  outputs_.push_back({name, value.id()});
}

void Graph::update(Value parameter, Value value) {
  check_own(parameter, "update");
  check_own(value, "update");
  const ValueInfo& target = info(parameter.id());
  const ValueInfo& source = info(value.id());
  if (target.kind != ValueKind::parameter) throw Error(fmt::format("update: '{}' is not a parameter", target.name));
  if (target.dtype != source.dtype || target.shape != source.shape) {
    throw Error(fmt::format("update of parameter '{}': expected {}{}, got '{}' {}{}", target.name, name_of(target.dtype),
                            target.shape.str(), source.name, name_of(source.dtype), source.shape.str()));
  }
  for (const GraphUpdate& other : updates_) {
    if (other.parameter == parameter.id()) throw Error(fmt::format("update: parameter '{}' already has an update", target.name));
  }
  updates_.push_back({parameter.id(), value.id()});
}

}  // namespace tenon
