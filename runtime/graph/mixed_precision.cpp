// SPDX-License-Identifier: Apache-2.0
// mixed_precision.cpp - runs the products of f32 graphs in 16 bits. Sources: Micikevicius et al., Mixed Precision Training (2018), for the
// ops that must stay in f32; the lists of torch.autocast and of Keras's mixed policies, for the rest. ops/<family>.cpp states each class.
#include <algorithm>
#include <cmath>

#include <tenon/functions.h>

#include "graph/op.h"
#include "graph/passes.h"

namespace tenon::graph {

namespace {

class Mixer {
 public:
  Mixer(GraphEditor& editor, DType narrow)
      : editor_(editor),
        dtype_(narrow),
        narrow_value_(editor.values().size(), no_id),
        lowered_(editor.values().size()),
        can_lower_(editor.values().size()),
        may_inherit_(editor.node_count()),
        castable_(editor.values().size()),
        requested_(editor.values().size()) {}

  void run() {
    for (ValueId v = 0; v < castable_.size(); ++v) {
      const ValueInfo& info = editor_.info(v);
      castable_[v] = info.kind == ValueKind::parameter || (info.kind == ValueKind::constant && is_f32(v) && survives(info.constant));
    }
    for (NodeId n = 0; n < editor_.node_count(); ++n) find_lowerable(n);
    for (NodeId n = static_cast<NodeId>(editor_.node_count()); n-- > 0;) find_requested(n);
    for (NodeId n = 0; n < editor_.node_count(); ++n) convert(n);
  }

 private:
  GraphEditor& editor_;
  DType dtype_;
  std::vector<ValueId> narrow_value_;  ///< per value: its copy in the narrow dtype, once created
  std::vector<bool> lowered_;          ///< per value: inheriting ops read the narrow copy
  std::vector<bool> can_lower_;        ///< per value: would be narrow if all inheriting ops were lowered
  std::vector<bool> may_inherit_;      ///< per node: the op can inherit, subject to the uses of its result
  std::vector<bool> castable_;         ///< per value: may be cast if another operand is narrow
  std::vector<bool> requested_;        ///< per value: a low-precision op uses it

  /// True for an operand that has the dtype of the op, unlike statistics, which stay f32.
  static bool participates(const NodeInfo& node, std::size_t i) { return node.inputs[i] != no_id && !is_accumulation_operand(node.op, i); }
  bool is_f32(ValueId v) const { return v != no_id && editor_.info(v).dtype == DType::f32; }

  /// Forward over the nodes.
  void find_lowerable(NodeId n) {
    const NodeInfo& node = editor_.node(n);
    switch (rules_of(node.op).precision) {
      case PrecisionClass::low_precision:
        may_inherit_[n] = true;
        break;
      case PrecisionClass::inherits:
        may_inherit_[n] = can_inherit(node, can_lower_);
        if (!may_inherit_[n] && is_view(node.op)) castable_[node.outputs[0]] = castable_[node.inputs[0]];
        break;
      case PrecisionClass::fp32_internal:
        can_lower_[node.outputs[0]] = can_lower_[node.inputs[0]];
        return;
      case PrecisionClass::fp32:
        if (is_widening(node)) can_lower_[node.outputs[0]] = true;
        return;
    }
    for (std::size_t i = 0; may_inherit_[n] && i < node.outputs.size(); ++i) {
      if (is_f32(node.outputs[i]) && !is_accumulation_result(node.op, i)) can_lower_[node.outputs[i]] = true;
    }
  }

  /// Backward over the nodes. An op that cannot be lowered requests nothing of its operands.
  void find_requested(NodeId n) {
    const NodeInfo& node = editor_.node(n);
    if (rules_of(node.op).precision == PrecisionClass::fp32_internal) {
      if (requested_[node.outputs[0]]) requested_[node.inputs[0]] = true;
      return;
    }
    if (may_inherit_[n] && (rules_of(node.op).precision == PrecisionClass::low_precision || is_requested(node))) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (participates(node, i)) requested_[node.inputs[i]] = true;
      }
    }
  }

  bool is_widening(const NodeInfo& node) const {
    return node.op == TENON_OP_Cast && editor_.info(node.inputs[0]).dtype == dtype_ && is_f32(node.outputs[0]);
  }
  bool is_requested(const NodeInfo& node) const {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != no_id && !is_accumulation_result(node.op, i) && requested_[node.outputs[i]]) return true;
    }
    return false;
  }

  /// True if x rounds to a normal number of the narrow dtype, or is 0, infinite or NaN.
  bool survives(double x) const {
    const double lowest = dtype_ == DType::f16 ? 0x1p-14 : 0x1p-126, highest = dtype_ == DType::f16 ? 65504.0 : 0x1.FEp127;
    const double size = std::abs(x);
    return size == 0 || !std::isfinite(x) || (size >= lowest && size <= highest);
  }
  /// The constant, with finite elements that would overflow clamped to the largest finite value of the narrow dtype.
  ValueId within_range(ValueId v) {
    const Tensor constant = editor_.info(v).constant;
    const float max_finite = dtype_ == DType::f16 ? 65504.0f : 0x1.FEp127f;
    const float* const values = constant.data<float>();
    const auto is_beyond = [max_finite](float x) { return std::isfinite(x) && std::abs(x) > max_finite; };
    if (std::none_of(values, values + constant.count(), is_beyond)) return v;
    Tensor bounded = Tensor::empty(DType::f32, constant.shape());
    std::transform(values, values + constant.count(), bounded.data<float>(),
                   [&](float x) { return is_beyond(x) ? std::copysign(max_finite, x) : x; });
    return editor_.add_constant(bounded);
  }
  bool survives(const Tensor& constant) const {
    const float* values = constant.data<float>();
    for (std::int64_t i = 0; i < constant.count(); ++i) {
      if (!survives(static_cast<double>(values[i]))) return false;
    }
    return true;
  }
  /// Numeric attributes are rounded too.
  bool attributes_survive(const NodeInfo& node) const {
    if (node.op == TENON_OP_Pad) return survives(node.attributes.as<tenon_attributes_pad>().value);
    if (node.op != TENON_OP_Clip) return true;
    const auto& bounds = node.attributes.as<tenon_attributes_clip>();
    return survives(bounds.low) && survives(bounds.high);
  }

  /// True if every participating operand is narrow or castable, and at least one is narrow.
  bool can_inherit(const NodeInfo& node, const std::vector<bool>& is_narrow) const {
    if (!attributes_survive(node)) return false;
    bool any = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (!participates(node, i) || !is_f32(v)) continue;
      if (!is_narrow[v] && !castable_[v]) return false;
      any = any || is_narrow[v];
    }
    return any;
  }

  void convert(NodeId n) {
    const NodeInfo node = editor_.node(n);  // a copy: it is rewritten
    switch (rules_of(node.op).precision) {
      case PrecisionClass::low_precision:
        return lower_node(n, node);
      case PrecisionClass::inherits:
        if (is_requested(node) && can_inherit(node, lowered_)) return lower_node(n, node);
        if (is_view(node.op)) castable_[node.outputs[0]] = castable_[node.inputs[0]];
        return;
      case PrecisionClass::fp32_internal:
        lowered_[node.outputs[0]] = lowered_[node.inputs[0]];
        return;
      case PrecisionClass::fp32:
        if (is_widening(node)) {
          narrow_value_[node.outputs[0]] = node.inputs[0];
          lowered_[node.outputs[0]] = true;
        }
        return;
    }
  }

  void lower_node(NodeId n, const NodeInfo& node) {
    std::vector<ValueId> inputs = node.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (participates(node, i) && is_f32(inputs[i])) inputs[i] = narrow_copy_of(inputs[i], n);
    }
    editor_.rewrite(n, std::move(inputs), node.attributes);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId v = node.outputs[i];
      if (!is_f32(v) || is_accumulation_result(node.op, i)) continue;
      narrow_value_[v] = editor_.recast(v, dtype_);
      lowered_[v] = true;
    }
  }

  /// The value in the narrow dtype, for node `before` and those after it.
  ValueId narrow_copy_of(ValueId v, NodeId before) {
    if (narrow_value_[v] != no_id) return narrow_value_[v];
    const NodeInfo* maker = editor_.producer(v);
    const Shape shape = editor_.info(v).shape;
    if (maker != nullptr && is_view(maker->op)) {
      const NodeInfo view = *maker;
      const ValueId source = narrow_copy_of(view.inputs[0], before);
      return narrow_value_[v] = editor_.insert(before, view.op, {source}, dtype_, shape, view.attributes);
    }
    tenon_attributes_cast to{};
    to.to = static_cast<tenon_dtype>(dtype_);
    // For example, a mask of -1e9 must stay finite.
    const ValueId from = editor_.info(v).kind == ValueKind::constant ? within_range(v) : v;
    return narrow_value_[v] = editor_.insert(before, TENON_OP_Cast, {from}, dtype_, shape, Attributes::of(to));
  }
};

}  // namespace

Graph mix_precision(Graph graph, DType narrow) {
  GraphEditor editor(graph);
  Mixer(editor, narrow).run();
  editor.finish();
  return graph;
}

void skip_updates(Graph& graph, std::size_t first, Value skip) {
  std::vector<ValueId> kept;
  for (std::size_t i = first; i < graph.updates().size(); ++i) {
    const GraphUpdate update = graph.updates()[i];
    const ValueInfo& info = graph.info(update.value);
    const DeviceScope device(graph, info.producer == no_id ? graph.device() : graph.nodes()[info.producer].device);
    kept.push_back(ops::where(skip, Value(&graph, update.parameter), Value(&graph, update.value)).id());
  }
  GraphEditor editor(graph);
  for (std::size_t i = 0; i < kept.size(); ++i) editor.set_update(first + i, kept[i]);
}

}  // namespace tenon::graph
