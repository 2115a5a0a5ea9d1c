// SPDX-License-Identifier: Apache-2.0
// editor.cpp - redirects values and removes dead nodes.
#include <tenon/error.h>
#include <algorithm>

#include "graph/collectives.h"
#include "graph/op.h"
#include "graph/passes.h"

namespace tenon::graph {

GraphEditor::GraphEditor(Graph& graph)
    : graph_(graph), target_(graph.values_.size()), is_output_(graph.values_.size()), is_update_(graph.values_.size()) {
  for (ValueId id = 0; id < target_.size(); ++id) target_[id] = id;
  for (const GraphOutput& output : graph.outputs_) is_output_[output.value] = true;
  for (const GraphUpdate& update : graph.updates_) is_update_[update.value] = true;
}

ValueId GraphEditor::resolve(ValueId id) const {
  while (id != no_id && target_[id] != id) id = target_[id];
  return id;
}

const NodeInfo& GraphEditor::node(NodeId id) {
  NodeInfo& node = graph_.nodes_[id];
  for (ValueId& input : node.inputs) input = resolve(input);
  return node;
}

const NodeInfo* GraphEditor::producer(ValueId id) {
  const NodeId producer = info(id).producer;
  return producer == no_id ? nullptr : &node(producer);
}

bool GraphEditor::redirect(ValueId from, ValueId to) {
  to = resolve(to);
  if (is_update_[from] || (is_output_[from] && info(to).kind != ValueKind::computed)) return false;
  if (info(from).dtype != info(to).dtype || info(from).shape != info(to).shape) {
    throw Error(Status::internal, "a pass replaced '" + info(from).name + "' by '" + info(to).name + "' of another dtype or shape");
  }
  target_[from] = to;
  // values redirected to `from` earlier now follow the same rules through `to`
  if (is_output_[from]) is_output_[to] = true;
  return true;
}

void GraphEditor::rewrite(NodeId id, std::vector<ValueId> inputs, const Attributes& attributes) {
  graph_.nodes_[id].inputs = std::move(inputs);
  graph_.nodes_[id].attributes = attributes;
}

void GraphEditor::replace(NodeId id, tenon_op op, std::vector<ValueId> inputs, const Attributes& attributes) {
  graph_.nodes_[id].op = op;
  graph_.nodes_[id].version = version_of(op);
  rewrite(id, std::move(inputs), attributes);
}

/// Gives a new node the name and device of the node it belongs to.
NodeInfo GraphEditor::made_for(NodeId owner, tenon_op op, std::vector<ValueId> inputs, const Attributes& attributes) {
  NodeInfo node;
  node.op = op;
  node.version = version_of(op);
  node.attributes = attributes;
  node.inputs = std::move(inputs);
  node.name = graph_.free_name(graph_.nodes_[owner].name + "/" + stem_of(op));
  node.device = graph_.nodes_[owner].device;
  node.id = graph_.next_id_++;
  graph_.claim(node.name);
  return node;
}

ValueId GraphEditor::insert(NodeId before, tenon_op op, ValueId input) {
  return insert(before, op, {input}, info(input).dtype, info(input).shape);
}

ValueId GraphEditor::append(ValueInfo info) {
  const ValueId made = static_cast<ValueId>(graph_.values_.size());
  graph_.values_.push_back(std::move(info));
  target_.push_back(made);
  is_output_.push_back(false);
  is_update_.push_back(false);
  return made;
}

ValueId GraphEditor::insert(NodeId before, tenon_op op, std::vector<ValueId> inputs, DType dtype, const Shape& shape,
                            const Attributes& attributes) {
  NodeInfo node = made_for(before, op, std::move(inputs), attributes);
  ValueInfo value;
  value.dtype = dtype;
  value.shape = shape;
  value.name = node.name;
  const ValueId made = append(std::move(value));  // its producer is set when the nodes are renumbered
  node.outputs = {made};
  inserted_.emplace_back(before, std::move(node));
  return made;
}

ValueId GraphEditor::build(NodeId before, const std::function<Value()>& functions) {
  const std::size_t first = node_count();
  std::string scope = graph_.set_scope(graph_.nodes_[before].name);
  std::string device = graph_.set_device(graph_.nodes_[before].device);
  const ValueId result = functions().id();
  graph_.set_scope(std::move(scope));
  graph_.set_device(std::move(device));
  for (NodeId id = static_cast<NodeId>(first); id < node_count(); ++id) inserted_.emplace_back(before, std::move(graph_.nodes_[id]));
  graph_.nodes_.resize(first);
  for (ValueId id = static_cast<ValueId>(target_.size()); id < graph_.values_.size(); ++id) {
    graph_.values_[id].producer = no_id;  // set when the nodes are renumbered
    target_.push_back(id);
    is_output_.push_back(false);
    is_update_.push_back(false);
  }
  return result;
}

ValueId GraphEditor::insert_copy(ValueId result) {
  const NodeId maker = info(result).producer;
  NodeInfo copy = made_for(maker, TENON_OP_Reshape, {result}, {});
  ValueInfo value;
  value.dtype = info(result).dtype;
  value.shape = info(result).shape;
  value.name = copy.name;
  const ValueId made = append(std::move(value));
  copy.outputs = {made};
  inserted_.emplace_back(maker + 1, std::move(copy));
  return made;
}

ValueId GraphEditor::recast(ValueId result, DType dtype) {
  const NodeId maker = info(result).producer;
  ValueInfo value = info(result);
  value.dtype = dtype;
  value.name = graph_.free_name(value.name + "/" + name_of(dtype));
  graph_.claim(value.name);
  const ValueId made = append(std::move(value));
  tenon_attributes_cast back{};
  back.to = static_cast<tenon_dtype>(info(result).dtype);
  NodeInfo cast = made_for(maker, TENON_OP_Cast, {made}, Attributes::of(back));
  cast.outputs = {result};
  graph_.values_[result].output = 0;
  std::vector<ValueId>& outputs = graph_.nodes_[maker].outputs;
  *std::find(outputs.begin(), outputs.end(), result) = made;
  inserted_.emplace_back(maker + 1, std::move(cast));
  return made;
}

ValueId GraphEditor::add_constant(const Tensor& value) {
  ValueInfo info;
  info.kind = ValueKind::constant;
  info.dtype = value.dtype();
  info.shape = value.shape();
  info.name = graph_.free_name("constant");
  info.constant = value;
  graph_.claim(info.name);
  return append(std::move(info));
}

void GraphEditor::set_constant(ValueId id, const Tensor& value) {
  ValueInfo& info = graph_.values_[id];
  info.kind = ValueKind::constant;
  info.constant = value;
}

void GraphEditor::remake(ValueId result, tenon_op op, std::vector<ValueId> inputs, const Attributes& attributes) {
  const NodeId before = info(result).producer;
  NodeInfo node = made_for(before, op, std::move(inputs), attributes);
  node.outputs = {result};
  std::vector<ValueId>& left = graph_.nodes_[before].outputs;
  left.erase(std::find(left.begin(), left.end(), result));
  for (std::size_t i = 0; i < left.size(); ++i) {
    if (left[i] != no_id) graph_.values_[left[i]].output = static_cast<std::uint32_t>(i);
  }
  graph_.values_[result].output = 0;
  inserted_.emplace_back(before, std::move(node));
}

/// Detaches a computed value from its producer. If the node stays for its other results, it keeps a replacement for this one.
ValueInfo& GraphEditor::detach(ValueId id) {
  std::vector<ValueId>& outputs = graph_.nodes_[info(id).producer].outputs;
  *std::find(outputs.begin(), outputs.end(), id) = append(info(id));
  ValueInfo& value = graph_.values_[id];
  value.producer = no_id;
  value.output = 0;
  return value;
}

void GraphEditor::make_parameter(ValueId id) {
  detach(id).kind = ValueKind::parameter;
}

bool GraphEditor::make_constant(ValueId id, const Tensor& value) {
  if (is_output_[id] || is_update_[id]) return false;
  if (value.dtype() != info(id).dtype || value.shape() != info(id).shape) {
    throw Error(Status::internal, "a pass replaced '" + info(id).name + "' by " + value.str() + " of another dtype or shape");
  }
  ValueInfo& constant = detach(id);
  constant.kind = ValueKind::constant;
  constant.constant = value;
  return true;
}

void GraphEditor::weave() {
  for (NodeId id = 0; id < node_count(); ++id) node(id);
  for (auto& [before, node] : inserted_) {
    for (ValueId& input : node.inputs) input = resolve(input);
  }
  for (GraphOutput& output : graph_.outputs_) output.value = resolve(output.value);
  for (GraphUpdate& update : graph_.updates_) update.value = resolve(update.value);
  if (inserted_.empty()) return;
  std::vector<std::vector<NodeInfo>> in_front(node_count() + 1);
  for (auto& [before, node] : inserted_) in_front[before].push_back(std::move(node));
  std::vector<NodeInfo> nodes;
  nodes.reserve(node_count() + inserted_.size());
  for (NodeId id = 0; id < in_front.size(); ++id) {
    for (NodeInfo& node : in_front[id]) nodes.push_back(std::move(node));
    if (id < node_count()) nodes.push_back(std::move(graph_.nodes_[id]));
  }
  graph_.nodes_ = std::move(nodes);
  for (NodeId id = 0; id < node_count(); ++id) {
    for (const ValueId output : graph_.nodes_[id].outputs) {
      if (output != no_id) graph_.values_[output].producer = id;
    }
  }
  inserted_.clear();
}

void GraphEditor::finish(OptionalResults results) {
  weave();
  drop_dead(results);
}

void GraphEditor::drop_dead(OptionalResults results) {
  std::vector<bool> live_values(graph_.values_.size()), live_nodes(graph_.nodes_.size());
  for (const GraphOutput& output : graph_.outputs_) live_values[output.value] = true;
  for (const GraphUpdate& update : graph_.updates_) live_values[update.value] = true;
  for (NodeId id = static_cast<NodeId>(node_count()); id-- > 0;) {
    NodeInfo& node = graph_.nodes_[id];
    live_nodes[id] = node.op == op_broadcast;  // other ranks may need its operands
    for (ValueId output : node.outputs) live_nodes[id] = live_nodes[id] || (output != no_id && live_values[output]);
    if (!live_nodes[id]) continue;
    for (ValueId input : node.inputs) {
      if (input != no_id) live_values[input] = true;
    }
    const std::uint32_t optional = rules_of(node.op).optional_outputs;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      ValueId& output = node.outputs[i];
      if (output == no_id || live_values[output]) continue;
      if (results == OptionalResults::drop && i < 32 && (optional >> i & 1u) != 0)
        output = no_id;
      else
        live_values[output] = true;
    }
  }
  for (ValueId id = 0; id < live_values.size(); ++id) {
    const ValueKind kind = graph_.values_[id].kind;
    if (kind == ValueKind::input || kind == ValueKind::parameter) live_values[id] = true;
  }
  renumber(live_values, live_nodes);
}

void GraphEditor::renumber(const std::vector<bool>& live_values, const std::vector<bool>& live_nodes) {
  std::vector<ValueId> new_value(live_values.size(), no_id);
  std::vector<NodeId> new_node(live_nodes.size(), no_id);
  std::vector<ValueInfo> values;
  std::vector<NodeInfo> nodes;
  for (NodeId id = 0; id < live_nodes.size(); ++id) {
    if (!live_nodes[id]) continue;
    new_node[id] = static_cast<NodeId>(nodes.size());
    nodes.push_back(std::move(graph_.nodes_[id]));
  }
  for (ValueId id = 0; id < live_values.size(); ++id) {
    if (!live_values[id]) continue;
    new_value[id] = static_cast<ValueId>(values.size());
    values.push_back(std::move(graph_.values_[id]));
    NodeId& producer = values.back().producer;
    if (producer != no_id) producer = new_node[producer];
  }
  const auto rename = [&](ValueId& id) {
    if (id != no_id) id = new_value[id];
  };
  for (NodeInfo& node : nodes) {
    for (ValueId& input : node.inputs) rename(input);
    for (ValueId& output : node.outputs) rename(output);
  }
  for (GraphOutput& output : graph_.outputs_) rename(output.value);
  for (GraphUpdate& update : graph_.updates_) {
    rename(update.parameter);
    rename(update.value);
  }
  graph_.values_ = std::move(values);
  graph_.nodes_ = std::move(nodes);
}

}  // namespace tenon::graph
