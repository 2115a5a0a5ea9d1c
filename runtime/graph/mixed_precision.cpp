// mixed_precision.cpp - f32 graphs whose products run in 16 bits. Sources: Micikevicius et al., Mixed Precision Training (2018), for what
// has to stay in f32; the lists of torch.autocast and of Keras's mixed policies, for the rest.
#include <algorithm>
#include <cmath>

#include <tenon/functions.h>

#include "graph/op.h"
#include "graph/passes.h"

namespace tenon::graph {

Mixing mixing_of(tenon_op op) {
  switch (op) {
    case TENON_OP_MatMul:
    case TENON_OP_Gemm:
    case TENON_OP_Conv:
    case TENON_OP_ConvInputGrad:
    case TENON_OP_ConvWeightGrad:
    case TENON_OP_ConvTranspose:
    case TENON_OP_RNN:
    case TENON_OP_RNNGrad:
    case TENON_OP_GRU:
    case TENON_OP_GRUGrad:
    case TENON_OP_LSTM:
    case TENON_OP_LSTMGrad:
    case TENON_OP_Attention:
    case TENON_OP_AttentionGrad:
      return Mixing::narrow;
    case TENON_OP_Add:
    case TENON_OP_Sub:
    case TENON_OP_Mul:
    case TENON_OP_Max:
    case TENON_OP_Min:
    case TENON_OP_Where:
    case TENON_OP_Neg:
    case TENON_OP_Abs:
    case TENON_OP_Sign:
    case TENON_OP_Clip:
    case TENON_OP_Relu:
    case TENON_OP_ReluGrad:
    case TENON_OP_Sigmoid:
    case TENON_OP_SigmoidGrad:
    case TENON_OP_Tanh:
    case TENON_OP_TanhGrad:
    case TENON_OP_LeakyRelu:
    case TENON_OP_Elu:
    case TENON_OP_Mish:
    case TENON_OP_Gelu:
    case TENON_OP_Silu:
    case TENON_OP_Dropout:
    case TENON_OP_Reshape:
    case TENON_OP_Flatten:
    case TENON_OP_Transpose:
    case TENON_OP_Expand:
    case TENON_OP_Slice:
    case TENON_OP_Pad:
    case TENON_OP_Concat:
    case TENON_OP_Split:
    case TENON_OP_Gather:
    case TENON_OP_GatherElements:
    case TENON_OP_Im2Col:
    case TENON_OP_Col2Im:
    case TENON_OP_MaxPool:
    case TENON_OP_MaxPoolGrad:
    case TENON_OP_AveragePool:
    case TENON_OP_AveragePoolGrad:
    case TENON_OP_Resize:
    case TENON_OP_ResizeGrad:
    case TENON_OP_BatchNormalization:
    case TENON_OP_BatchNormTrain:
    case TENON_OP_BatchNormTrainGrad:
      return Mixing::follows;
    case TENON_OP_LayerNormalization:
    case TENON_OP_LayerNormalizationGrad:
    case TENON_OP_RMSNormalization:
    case TENON_OP_RMSNormalizationGrad:
    case TENON_OP_LRN:
    case TENON_OP_LRNGrad:
      return Mixing::inside;
    default:
      return Mixing::wide;
  }
}

namespace {

/// The same elements at other places, or repeated: casts may pass.
bool is_view(tenon_op op) {
  return op == TENON_OP_Reshape || op == TENON_OP_Flatten || op == TENON_OP_Transpose || op == TENON_OP_Expand;
}

class Mixer {
 public:
  Mixer(GraphEditor& editor, DType narrow)
      : editor_(editor),
        dtype_(narrow),
        twin_(editor.values().size(), no_id),
        goes_narrow_(editor.values().size()),
        is_able_(editor.values().size()),
        may_follow_(editor.node_count()),
        gives_way_(editor.values().size()),
        wanted_(editor.values().size()) {}

  void run() {
    for (ValueId v = 0; v < gives_way_.size(); ++v) {
      const ValueInfo& info = editor_.info(v);
      gives_way_[v] = info.kind == ValueKind::parameter || (info.kind == ValueKind::constant && is_wide(v) && survives(info.constant));
    }
    for (NodeId n = 0; n < editor_.node_count(); ++n) find_able(n);
    for (NodeId n = static_cast<NodeId>(editor_.node_count()); n-- > 0;) find_wanted(n);
    for (NodeId n = 0; n < editor_.node_count(); ++n) mix(n);
  }

 private:
  GraphEditor& editor_;
  DType dtype_;
  std::vector<ValueId> twin_;      ///< per value: the same in the narrow dtype, once there is one
  std::vector<bool> goes_narrow_;  ///< per value: ops that follow read the twin
  std::vector<bool> is_able_;      ///< per value: would go narrow if all that can follow did
  std::vector<bool> may_follow_;   ///< per node: so that only what is made of it decides
  std::vector<bool> gives_way_;    ///< per value: an operand that may be read narrow beside one that is
  std::vector<bool> wanted_;       ///< per value: something narrow is made of it

  /// True of an operand whose dtype is that of the op, which statistics keep their own beside.
  static bool takes_part(const NodeInfo& node, std::size_t i) { return node.inputs[i] != no_id && !is_operand_of_sums(node.op, i); }
  bool is_wide(ValueId v) const { return v != no_id && editor_.info(v).dtype == DType::f32; }

  /// From the first node on.
  void find_able(NodeId n) {
    const NodeInfo& node = editor_.node(n);
    switch (mixing_of(node.op)) {
      case Mixing::narrow:
        may_follow_[n] = true;
        break;
      case Mixing::follows:
        may_follow_[n] = can_follow(node, is_able_);
        if (!may_follow_[n] && is_view(node.op)) gives_way_[node.outputs[0]] = gives_way_[node.inputs[0]];
        break;
      case Mixing::inside:
        is_able_[node.outputs[0]] = is_able_[node.inputs[0]];
        return;
      case Mixing::wide:
        if (is_widening(node)) is_able_[node.outputs[0]] = true;
        return;
    }
    for (std::size_t i = 0; may_follow_[n] && i < node.outputs.size(); ++i) {
      if (is_wide(node.outputs[i]) && !is_result_of_sums(node.op, i)) is_able_[node.outputs[i]] = true;
    }
  }

  /// From the last node on. What cannot follow wants nothing of its operands, whatever is made of it.
  void find_wanted(NodeId n) {
    const NodeInfo& node = editor_.node(n);
    if (mixing_of(node.op) == Mixing::inside) {
      if (wanted_[node.outputs[0]]) wanted_[node.inputs[0]] = true;
      return;
    }
    if (may_follow_[n] && (mixing_of(node.op) == Mixing::narrow || is_wanted(node))) {
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        if (takes_part(node, i)) wanted_[node.inputs[i]] = true;
      }
    }
  }

  bool is_widening(const NodeInfo& node) const {
    return node.op == TENON_OP_Cast && editor_.info(node.inputs[0]).dtype == dtype_ && is_wide(node.outputs[0]);
  }
  bool is_wanted(const NodeInfo& node) const {
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.outputs[i] != no_id && !is_result_of_sums(node.op, i) && wanted_[node.outputs[i]]) return true;
    }
    return false;
  }

  /// True of numbers that are no less, and no more, than their own rounding errors away from themselves in the narrow dtype.
  bool survives(double x) const {
    const double lowest = dtype_ == DType::f16 ? 0x1p-14 : 0x1p-126, highest = dtype_ == DType::f16 ? 65504.0 : 0x1.FEp127;
    const double size = std::abs(x);
    return size == 0 || !std::isfinite(x) || (size >= lowest && size <= highest);
  }
  /// A constant whose finite numbers stay finite when they are rounded: itself, or one of the largest numbers there are.
  ValueId within_range(ValueId v) {
    const Tensor constant = editor_.info(v).constant;
    const float most = dtype_ == DType::f16 ? 65504.0f : 0x1.FEp127f;
    const float* const values = constant.data<float>();
    const auto is_beyond = [most](float x) { return std::isfinite(x) && std::abs(x) > most; };
    if (std::none_of(values, values + constant.count(), is_beyond)) return v;
    Tensor bounded = Tensor::empty(DType::f32, constant.shape());
    std::transform(values, values + constant.count(), bounded.data<float>(),
                   [&](float x) { return is_beyond(x) ? std::copysign(most, x) : x; });
    return editor_.add_constant(bounded);
  }
  bool survives(const Tensor& constant) const {
    const float* values = constant.data<float>();
    for (std::int64_t i = 0; i < constant.count(); ++i) {
      if (!survives(static_cast<double>(values[i]))) return false;
    }
    return true;
  }
  /// Numbers among the attributes are rounded like any other.
  bool attributes_survive(const NodeInfo& node) const {
    if (node.op == TENON_OP_Pad) return survives(node.attributes.as<tenon_attributes_pad>().value);
    if (node.op != TENON_OP_Clip) return true;
    const auto& bounds = node.attributes.as<tenon_attributes_clip>();
    return survives(bounds.low) && survives(bounds.high);
  }

  /// True if every operand that takes part is narrow, or gives way, and one is narrow.
  bool can_follow(const NodeInfo& node, const std::vector<bool>& is_narrow) const {
    if (!attributes_survive(node)) return false;
    bool any = false;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueId v = node.inputs[i];
      if (!takes_part(node, i) || !is_wide(v)) continue;
      if (!is_narrow[v] && !gives_way_[v]) return false;
      any = any || is_narrow[v];
    }
    return any;
  }

  void mix(NodeId n) {
    const NodeInfo node = editor_.node(n);  // a copy: it is rewritten
    switch (mixing_of(node.op)) {
      case Mixing::narrow:
        return make_narrow(n, node);
      case Mixing::follows:
        if (is_wanted(node) && can_follow(node, goes_narrow_)) return make_narrow(n, node);
        if (is_view(node.op)) gives_way_[node.outputs[0]] = gives_way_[node.inputs[0]];
        return;
      case Mixing::inside:
        goes_narrow_[node.outputs[0]] = goes_narrow_[node.inputs[0]];
        return;
      case Mixing::wide:
        if (is_widening(node)) {
          twin_[node.outputs[0]] = node.inputs[0];
          goes_narrow_[node.outputs[0]] = true;
        }
        return;
    }
  }

  void make_narrow(NodeId n, const NodeInfo& node) {
    std::vector<ValueId> inputs = node.inputs;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (takes_part(node, i) && is_wide(inputs[i])) inputs[i] = narrowed(inputs[i], n);
    }
    editor_.rewrite(n, std::move(inputs), node.attributes);
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const ValueId v = node.outputs[i];
      if (!is_wide(v) || is_result_of_sums(node.op, i)) continue;
      twin_[v] = editor_.recast(v, dtype_);
      goes_narrow_[v] = true;
    }
  }

  /// The value in the narrow dtype, for node `before` and those after it.
  ValueId narrowed(ValueId v, NodeId before) {
    if (twin_[v] != no_id) return twin_[v];
    const NodeInfo* maker = editor_.producer(v);
    const Shape shape = editor_.info(v).shape;
    if (maker != nullptr && is_view(maker->op)) {
      const NodeInfo view = *maker;
      const ValueId seen = narrowed(view.inputs[0], before);
      return twin_[v] = editor_.insert(before, view.op, {seen}, dtype_, shape, view.attributes);
    }
    tenon_attributes_cast to{};
    to.to = static_cast<tenon_dtype>(dtype_);
    // A mask of -1e9 is to stay a number.
    const ValueId from = editor_.info(v).kind == ValueKind::constant ? within_range(v) : v;
    return twin_[v] = editor_.insert(before, TENON_OP_Cast, {from}, dtype_, shape, Attributes::of(to));
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
