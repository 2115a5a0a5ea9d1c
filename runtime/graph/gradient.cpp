// SPDX-License-Identifier: Apache-2.0
// gradient.cpp - reverse-mode differentiation: walks the nodes from the loss back and lets each op's rule append its gradient.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <tenon/graph.h>

#include "graph/op.h"
#include "graph/passes.h"

namespace tenon {
namespace graph {
namespace {
std::vector<Value> handles(Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<Value> values;
  for (ValueId id : ids) values.push_back(id == no_id ? Value() : Value(&graph, id));
  return values;
}
}  // namespace

Gradient::Gradient(Graph& owner, NodeId node, std::vector<Value> output_gradients, std::vector<bool> needed)
    : graph(owner),
      attributes(graph.nodes()[node].attributes),
      inputs_(handles(graph, graph.nodes()[node].inputs)),
      outputs_(handles(graph, graph.nodes()[node].outputs)),
      dy_(std::move(output_gradients)),
      result_(inputs_.size()),
      needed_(std::move(needed)) {}

void Gradient::set(std::size_t i, Value gradient) {
  const Value x = input(i);
  if (gradient.dtype() != x.dtype() || gradient.shape() != x.shape()) {
    throw Error(Status::internal, fmt::format("the gradient of '{}' is {}{}, expected {}{}", x.name(), name_of(gradient.dtype()),
                                              gradient.shape().str(), name_of(x.dtype()), x.shape().str()));
  }
  result_[i] = gradient;
}

void Gradient::set_needed(const std::vector<Value>& gradients) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    if (needs(i)) set(i, gradients[i]);
  }
}

}  // namespace graph

namespace {

void check_arguments(Value loss, const std::vector<Value>& with_respect_to, const std::vector<Value>& constants) {
  if (!loss.present()) throw Error("gradients: the loss is absent");
  if (!is_floating(loss.dtype()) || loss.shape().rank() != 0) {
    throw Error(fmt::format("gradients: expected a floating scalar as loss, got '{}' {}{}; use reduce_mean or reduce_sum", loss.name(),
                            name_of(loss.dtype()), loss.shape().str()));
  }
  for (Value x : with_respect_to) {
    if (!x.present()) throw Error("gradients: a value to differentiate by is absent");
    if (&x.graph() != &loss.graph())
      throw Error(fmt::format("gradients: '{}' and the loss '{}' belong to different graphs", x.name(), loss.name()));
    if (!is_floating(x.dtype())) {
      throw Error(
          fmt::format("gradients: only floating values have gradients, got '{}' {}{}", x.name(), name_of(x.dtype()), x.shape().str()));
    }
  }
  for (Value x : constants) {
    if (!x.present() || &x.graph() != &loss.graph()) throw Error("gradients: expected constants of the loss's graph, got another value");
  }
}

/// For each value: whether it depends differentiably on one of `sources`, by another way than `constants`.
std::vector<bool> dependents(const Graph& graph, const std::vector<Value>& sources, const std::vector<Value>& constants) {
  std::vector<bool> depends(graph.values().size()), is_constant(graph.values().size());
  for (Value x : sources) depends[x.id()] = true;
  for (Value x : constants) {
    is_constant[x.id()] = true;
    depends[x.id()] = false;
  }
  for (const NodeInfo& node : graph.nodes()) {
    bool any = false;
    for (ValueId input : node.inputs) any = any || (input != no_id && depends[input]);
    if (!any) continue;
    for (ValueId output : node.outputs) {
      if (output != no_id && is_floating(graph.info(output).dtype) && !is_constant[output]) depends[output] = true;
    }
  }
  return depends;
}

}  // namespace

std::vector<Value> gradients(Value loss, const std::vector<Value>& with_respect_to, const std::vector<Value>& constants) {
  check_arguments(loss, with_respect_to, constants);
  Graph& graph = loss.graph();
  // unstable expressions have even less stable derivatives: that of log(softmax(x)) divides by a value that may be 0
  graph::stabilize_in_place(graph);
  const std::vector<bool> depends = dependents(graph, with_respect_to, constants);
  const NameScope scope(graph, "gradient");

  // Only values that depend on a requested one have a gradient, so the loop visits exactly the paths to the loss.
  std::vector<Value> gradient(graph.values().size());
  if (depends[loss.id()]) gradient[loss.id()] = graph::scalar(graph, loss.dtype(), 1);
  for (NodeId n = static_cast<NodeId>(graph.nodes().size()); n-- > 0;) {
    const NodeInfo node = graph.nodes()[n];  // a copy: rules append nodes
    std::vector<Value> dy;
    std::vector<bool> needed;
    bool reached = false, any_requested = false;
    for (ValueId output : node.outputs) {
      dy.push_back(output == no_id ? Value() : gradient[output]);
      reached = reached || dy.back().present();
    }
    for (ValueId input : node.inputs) {
      needed.push_back(input != no_id && depends[input]);
      any_requested = any_requested || needed.back();
    }
    if (!reached || !any_requested) continue;

    const graph::OpRules& rules = graph::rules_of(node.op);
    if (rules.gradient == nullptr) {
      throw Error(Status::unsupported, fmt::format("gradients: the path from the loss '{}' goes through {} '{}', an op without a gradient",
                                                   loss.name(), op_name(node.op), node.name));
    }
    const NameScope node_scope(graph, node.name);
    const DeviceScope device_scope(graph, node.device);
    graph::Gradient at(graph, n, std::move(dy), std::move(needed));
    rules.gradient(at);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value part = at.result()[i];
      if (!part.present() || !at.needs(i)) continue;
      Value& sum = gradient[node.inputs[i]];
      sum = sum.present() ? ops::add(sum, part) : part;
    }
  }

  std::vector<Value> results;
  for (Value x : with_respect_to) {
    Value result = gradient[x.id()];
    if (!result.present()) {
      result = graph::scalar(graph, x.dtype(), 0);
      if (x.shape().rank() != 0) result = ops::expand(result, x.shape());
    }
    results.push_back(result);
  }
  return results;
}

}  // namespace tenon
