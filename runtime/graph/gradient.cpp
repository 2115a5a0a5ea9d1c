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

Gradient::Gradient(Graph& owner, NodeId node, std::vector<Value> output_gradients, std::vector<bool> wanted)
    : graph(owner),
      attributes(graph.nodes()[node].attributes),
      inputs_(handles(graph, graph.nodes()[node].inputs)),
      outputs_(handles(graph, graph.nodes()[node].outputs)),
      dy_(std::move(output_gradients)),
      result_(inputs_.size()),
      wanted_(std::move(wanted)) {}

void Gradient::set(std::size_t i, Value gradient) {
  const Value x = input(i);
  if (gradient.dtype() != x.dtype() || gradient.shape() != x.shape()) {
    throw Error(Status::internal, fmt::format("the gradient of '{}' is {}{}, wanted {}{}", x.name(), name_of(gradient.dtype()),
                                              gradient.shape().str(), name_of(x.dtype()), x.shape().str()));
  }
  result_[i] = gradient;
}

}  // namespace graph

namespace {

void check_arguments(Value loss, const std::vector<Value>& with_respect_to) {
  if (!loss.present()) throw Error("gradients: the loss is absent");
  if (!is_floating(loss.dtype()) || loss.shape().rank() != 0) {
    throw Error(fmt::format("gradients: wanted a floating scalar as loss, got '{}' {}{}; reduce_mean or reduce_sum makes one", loss.name(),
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
}

/// For each value: whether it changes smoothly with one of `sources`.
std::vector<bool> dependents(const Graph& graph, const std::vector<Value>& sources) {
  std::vector<bool> depends(graph.values().size());
  for (Value x : sources) depends[x.id()] = true;
  for (const NodeInfo& node : graph.nodes()) {
    bool any = false;
    for (ValueId input : node.inputs) any = any || (input != no_id && depends[input]);
    if (!any) continue;
    for (ValueId output : node.outputs) {
      if (output != no_id && is_floating(graph.info(output).dtype)) depends[output] = true;
    }
  }
  return depends;
}

}  // namespace

std::vector<Value> gradients(Value loss, const std::vector<Value>& with_respect_to) {
  check_arguments(loss, with_respect_to);
  Graph& graph = loss.graph();
  // the derivative of an expression that loses digits loses more of them: log(softmax(x)) divides by what may be 0
  graph::stabilize_in_place(graph);
  const std::vector<bool> depends = dependents(graph, with_respect_to);
  const NameScope scope(graph, "gradient");

  // A gradient exists only for values that depend on what is asked for, so that the walk visits exactly the paths to the loss.
  std::vector<Value> gradient(graph.values().size());
  if (depends[loss.id()]) gradient[loss.id()] = graph::scalar(graph, loss.dtype(), 1);
  for (NodeId n = static_cast<NodeId>(graph.nodes().size()); n-- > 0;) {
    const NodeInfo node = graph.nodes()[n];  // a copy: rules append nodes
    std::vector<Value> dy;
    std::vector<bool> wanted;
    bool reached = false, any_wanted = false;
    for (ValueId output : node.outputs) {
      dy.push_back(output == no_id ? Value() : gradient[output]);
      reached = reached || dy.back().present();
    }
    for (ValueId input : node.inputs) {
      wanted.push_back(input != no_id && depends[input]);
      any_wanted = any_wanted || wanted.back();
    }
    if (!reached || !any_wanted) continue;

    const graph::OpRules& rules = graph::rules_of(node.op);
    if (rules.gradient == nullptr) {
      throw Error(Status::unsupported, fmt::format("gradients: the way from the loss '{}' goes through {} '{}', an op without a gradient",
                                                   loss.name(), op_name(node.op), node.name));
    }
    const NameScope node_scope(graph, node.name);
    const DeviceScope device_scope(graph, node.device);
    graph::Gradient at(graph, n, std::move(dy), std::move(wanted));
    rules.gradient(at);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const Value part = at.result()[i];
      if (!part.present() || !at.wants(i)) continue;
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
