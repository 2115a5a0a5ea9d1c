// SPDX-License-Identifier: Apache-2.0
// fuse_epilogues.cpp - bias, residual and activation of a product as part of its kernel.
#include <utility>

#include "passes/graph_uses.h"
#include "passes/passes.h"

namespace tenon::sdk {
namespace {

/// True for a value with one element for each index of the last dimension.
bool is_bias(const Value& b, const Value& result) {
  return b.dense && b.dtype == result.dtype && b.rank >= 1 && b.shape[b.rank - 1] == result.shape[result.rank - 1] &&
         b.count == b.shape[b.rank - 1];
}

/// A kernel that works on images adds a bias only to channels, so they must be the last dimension of its result.
bool takes_bias(const Node& node, const Value& result) {
  const ChannelsLast& images = node.row->kernel->traits.channels_last;
  return (images.outputs & 1) == 0 || !is_image(result) || node.channels_last;
}

/// The only reader of a value, the view of all its elements that it reads, or the value itself, and the conversions around the reader if
/// the value has 16 bits and the reader computes in f32.
struct Follower {
  std::uint32_t node = none, read = none, widening = none, narrowing = none;
};

/// The activation that an op is.
Activation activation_of(const Node& node) {
  if (node.is(TENON_OP_Relu)) return Activation::relu;
  if (node.is(TENON_OP_Sigmoid)) return Activation::sigmoid;
  if (node.is(TENON_OP_Tanh)) return Activation::tanh;
  if (node.is(TENON_OP_Silu)) return Activation::silu;
  if (node.is(TENON_OP_Gelu) && node.attr<tenon_attributes_gelu>().approximate_tanh == 0) return Activation::gelu;
  if (!node.is(TENON_OP_Clip)) return Activation::none;
  const auto& bounds = node.attr<tenon_attributes_clip>();
  Activation clip = Activation::clip;
  clip.low = static_cast<float>(bounds.low);
  clip.high = static_cast<float>(bounds.high);
  return clip;
}

/// The nodes that each product computes besides its own.
class EpilogueFusion {
 public:
  explicit EpilogueFusion(GraphModel& graph)
      : graph_(graph), uses_(graph), made_by_(uses_.producers), absorbed_(graph.nodes.size(), false) {}

  void run() {
    for (std::uint32_t n = 0; n < graph_.nodes.size(); ++n) {
      Node& product = graph_.nodes[n];
      if (absorbed_[n] || !product.row->kernel->traits.epilogue || product.outputs.empty() || product.outputs[0] == none) continue;
      if (value(product.outputs[0]).rank == 0) continue;
      if (is_quantized_attention(product)) {
        quantize(product, product.outputs[0]);
      } else if (!product.row->kernel->traits.dequantize || dequantize(product)) {
        extend(product, n);
      }
    }
    remove_nodes(graph_, absorbed_);
  }

 private:
  const Value& value(std::uint32_t v) const { return graph_.values[v]; }
  std::uint32_t result_of(std::uint32_t n) const { return graph_.nodes[n].outputs[0]; }
  std::uint32_t result_after(const Follower& next) const { return result_of(next.narrowing == none ? next.node : next.narrowing); }

  /// The only reader of an internal value, and the value that it reads: this one, or a view of all its elements in order. None if it reads
  /// another view, or if its result overwrites a donated input.
  Read next_reader(std::uint32_t v) const {
    const Read* const only = uses_.only_reader(v);
    if (only == nullptr || absorbed_[only->node]) return {none, none};  // absorbed by the product that makes its other operand
    const auto [n, read] = *only;
    const Node& reader = graph_.nodes[n];
    if (!value(read).dense || value(read).count != value(v).count) return {none, none};
    if (reader.outputs.size() != 1 || reader.outputs[0] == none || uses_.donated[reader.outputs[0]]) return {none, none};
    return {n, read};
  }
  Follower follower(std::uint32_t v) const {
    const auto [n, read] = next_reader(v);
    if (n == none) return {};
    if (same_layout(value(read), value(result_of(n)))) return {n, read, none, none};
    if (!is_widening(graph_, graph_.nodes[n])) return {};
    const std::uint32_t wide = next_reader(result_of(n)).node;
    if (wide == none || !same_layout(value(result_of(n)), value(result_of(wide)))) return {};
    const std::uint32_t narrowing = next_reader(result_of(wide)).node;
    if (narrowing == none || !graph_.nodes[narrowing].is(TENON_OP_Cast)) return {};
    if (!same_layout(value(read), value(result_of(narrowing)))) return {};
    return {wide, read, n, narrowing};
  }
  bool fits(const Node& into, const Follower& next) const {
    const Value& result = value(result_after(next));
    return result.kind == TENON_VALUE_INTERNAL || same_layout(value(into.outputs[0]), result);
  }
  void absorb(Node& into, const Follower& next) {
    const std::uint32_t result = result_after(next);
    if (same_layout(value(into.outputs[0]), value(result))) {
      into.outputs[0] = result;
    } else {
      for (Value& view : graph_.values) {  // its views, and itself
        if (view.root == result) view.root = into.outputs[0];
      }
      made_by_[into.outputs[0]] = made_by_[result];
    }
    for (const std::uint32_t n : {next.node, next.widening, next.narrowing}) {
      if (n != none) absorb(into, n);
    }
  }
  void absorb(Node& into, std::uint32_t n) {
    into.fused_count += graph_.nodes[n].fused_count;
    absorbed_[n] = true;
  }

  /// Bias, residual and activation, and QuantizeLinear after them.
  void extend(Node& product, std::uint32_t n) {
    const Value result = value(product.outputs[0]);
    std::uint32_t last = product.outputs[0];  // the last value that the product computes
    Follower next = follower(last);
    while (next.node != none && graph_.nodes[next.node].is(TENON_OP_Add) && fits(product, next) && take_addend(product, n, result, next)) {
      last = result_after(next);
      absorb(product, next);
      next = follower(last);
    }
    const Activation activation = next.node == none || !fits(product, next) ? Activation() : activation_of(graph_.nodes[next.node]);
    const std::uint32_t known =
        product.row->kernel->traits.activations & (result.dtype == TENON_DTYPE_F64 ? basic_activations : all_activations);
    if ((known & activation_bit(activation.kind)) != 0) {
      product.activation = activation;
      last = result_after(next);
      absorb(product, next);
    }
    if (product.scale != none) quantize(product, last);
  }

  /// Makes the other operand of the sum that follows product n, whose own result is `result`, its bias or residual, if it can be one.
  bool take_addend(Node& product, std::uint32_t n, const Value& result, const Follower& next) {
    const Node& add = graph_.nodes[next.node];
    const std::uint32_t own = next.widening == none ? next.read : result_of(next.widening);
    const std::uint32_t other = add.inputs[add.inputs[0] == own ? 1 : 0];
    std::uint32_t from = other;  // the value that the kernel reads: before the conversion
    if (next.widening != none) {
      if (made_by_[other] == none || !is_widening(graph_, graph_.nodes[made_by_[other]])) return false;
      from = graph_.nodes[made_by_[other]].inputs[0];
    }
    const Value addend = value(from), read = value(next.read);
    // The producer of the addend may be listed after the product: the order is set later, and the addend cannot depend on a result that
    // only this sum reads. It can depend on another result of the product.
    const std::uint32_t maker = made_by_[addend.root];
    if (product.outputs.size() > 1 && maker != none && maker >= n) return false;
    if (product.bias == none && takes_bias(product, result) && is_bias(addend, result) && is_bias(addend, read)) {
      product.bias = from;
    } else if (product.residual == none && product.row->kernel->traits.residual && same_layout(addend, read)) {
      product.residual = from;
      if (!same_layout(addend, result)) {
        Value view = result;
        view.kind = TENON_VALUE_INTERNAL;
        view.binding = none;
        view.root = addend.root;
        product.residual = static_cast<std::uint32_t>(graph_.values.size());
        graph_.values.push_back(view);
      }
    } else {
      return false;
    }
    if (from != other && uses_.only_reader(other) != nullptr) absorb(product, made_by_[other]);
    return true;
  }

  /// The only reader of `v`, the last value that a product computes, if it has this op and converts all elements, in the product's shape;
  /// that of an attention does not matter, whose epilogue has no columns.
  std::uint32_t converter(const Node& product, std::uint32_t v, tenon_op op) const {
    const auto [n, read] = next_reader(v);
    if (n == none || !graph_.nodes[n].is(op) || graph_.nodes[n].inputs[0] != read) return none;
    const bool fits_shape = is_quantized_attention(product) || same_shape(value(product.outputs[0]), value(result_of(n)));
    return fits_shape ? n : none;
  }
  void convert(Node& product, std::uint32_t n) {
    product.outputs[0] = result_of(n);
    ++product.fused_count;
    absorbed_[n] = true;
  }
  bool dequantize(Node& product) {
    const std::uint32_t n = converter(product, product.outputs[0], TENON_OP_DequantizeLinear);
    if (n == none || value(result_of(n)).dtype != TENON_DTYPE_F32) return false;
    const Node& node = graph_.nodes[n];
    if (node.inputs.size() > 2 && node.inputs[2] != none) return false;
    const Value& scale = value(node.inputs[1]);
    if (!scale.dense || (scale.count != 1 && !is_bias(scale, value(result_of(n))))) return false;
    product.scale = node.inputs[1];
    convert(product, n);
    return true;
  }
  void quantize(Node& product, std::uint32_t last) {
    const std::uint32_t n = converter(product, last, TENON_OP_QuantizeLinear);
    if (n == none || size_of(value(result_of(n)).dtype) != 1) return;
    const Node& node = graph_.nodes[n];
    for (std::size_t i = 1; i < node.inputs.size(); ++i) {
      if (node.inputs[i] != none && value(node.inputs[i]).count != 1) return;
    }
    product.y_scale = node.inputs[1];
    if (node.inputs.size() > 2) product.y_zero_point = node.inputs[2];
    convert(product, n);
  }

  GraphModel& graph_;
  const GraphUses uses_;
  std::vector<std::uint32_t> made_by_;  ///< of a product that was continued: the last node that it computes
  std::vector<bool> absorbed_;
};

}  // namespace

void fuse_epilogues(GraphModel& graph) {
  EpilogueFusion(graph).run();
}

}  // namespace tenon::sdk
