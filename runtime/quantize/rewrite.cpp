// SPDX-License-Identifier: Apache-2.0
#include "quantize/rewrite.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/passes.h"
#include "quantize/blocks.h"

namespace tenon::quantize {
namespace {

/// A scale for each index of an axis of a tensor of that rank, as it broadcasts; one scale is a scalar.
Tensor scale_tensor(const std::vector<float>& scales, std::int64_t axis, std::size_t rank) {
  if (axis < 0) return Tensor::scalar(scales[0]);
  Shape shape;
  for (std::size_t i = static_cast<std::size_t>(axis); i < rank; ++i) {
    shape.push_back(i == static_cast<std::size_t>(axis) ? static_cast<std::int64_t>(scales.size()) : 1);
  }
  return Tensor::of(scales, shape);
}

/// Whether integers saturate exactly where a Relu or Clip does: what it maps to a bound has the integer of the bound, which is the lowest
/// or the highest.
bool saturates_like(const Parameters& parameters, const NodeInfo& clip) {
  double low = 0, high = std::numeric_limits<double>::infinity();
  if (clip.op == TENON_OP_Clip) {
    low = clip.attributes.as<tenon_attributes_clip>().low;
    high = clip.attributes.as<tenon_attributes_clip>().high;
  }
  return parameters.unclamped(low) <= static_cast<double>(parameters.lowest()) &&
         parameters.unclamped(high) >= static_cast<double>(parameters.highest());
}

class Rewriter {
 public:
  Rewriter(Graph& graph, const Plan& plan) : graph_(graph), plan_(plan), editor_(graph) {}

  void quantize_values(const std::vector<Parameters>& groups) {
    for (const QuantizedValue& value : plan_.values) quantize(value, groups[value.group]);
  }

  /// `groups`: of the activations, which biases depend on; null: activations and biases stay in f32.
  void quantize_products(const std::vector<Parameters>* groups) {
    for (NodeId id = 0; id < plan_.roles.size(); ++id) {
      if (plan_.roles[id] == Role::product) quantize_product(id, groups);
    }
  }

  void replace_by_blocks(std::int64_t block_size) {
    for (const auto& [id, product] : plan_.weights) {
      const NodeInfo node = editor_.node(id);
      const ValueId w = node.inputs[weight_operand];
      auto known = blocks_.find({w, product.weight_axis});
      if (known == blocks_.end()) {
        const BlockWeights weights = quantize_blocks(finite_constant(w), product.weight_axis == 0, block_size);
        const std::string name = graph_.info(w).name;
        known = blocks_
                    .emplace(std::pair(w, product.weight_axis),
                             std::pair(constant(id, weights.q, name + "_quantized"), constant(id, weights.scales, name + "_scales")))
                    .first;
      }
      std::vector<ValueId> inputs = {node.inputs[activation_operand], known->second.first, known->second.second};
      if (product.has_bias) inputs.insert(inputs.end(), {no_id, row_of(id, node.inputs[bias_operand])});
      tenon_attributes_nbits attributes{};
      attributes.bits = 4;
      attributes.block_size = block_size;
      editor_.replace(id, TENON_OP_MatMulNBits, std::move(inputs), Attributes::of(attributes));
    }
  }

  void finish() { editor_.finish(); }

 private:
  Value value(ValueId id) { return Value(&graph_, id); }

  ValueId constant(NodeId before, const Tensor& tensor, const std::string& name) {
    return editor_.build(before, [&] { return graph_.constant(tensor, name); });
  }
  /// The elements of a constant that becomes integers. Errors  one that is NaN or infinite, by the name of the constant.
  Tensor finite_constant(ValueId id) {
    const ValueInfo& info = graph_.info(id);
    Tensor elements = info.constant.to_host().contiguous();
    if (const auto found = first_not_finite({elements.data<float>(), static_cast<std::size_t>(elements.count())}))
      throw Error(
          fmt::format("quantisation: expected finite weights, but of '{}' {}; check the model, or leave out with --exclude "
                      "(Options::exclude) what reads it",
                      info.name, *found));
    return elements;
  }

  /// A bias (n) or (1, n) as (n).
  ValueId row_of(NodeId before, ValueId bias) {
    const ValueInfo info = graph_.info(bias);
    return info.shape.rank() == 1 ? bias : constant(before, info.constant.reshape({info.shape.count()}), info.name);
  }

  /// A value as integers, and back in f32.
  ValueId round_trip(NodeId before, ValueId of, const Parameters& parameters) {
    return editor_.build(before, [&] {
      const std::string name = graph_.info(of).name;  // creating constants moves the values
      const Value scale = graph_.constant(Tensor::scalar(parameters.scale), name + "_scale");
      const Value zero_point =
          graph_.constant(Tensor::full(parameters.dtype, {}, static_cast<double>(parameters.zero_point)), name + "_zero_point");
      return ops::dequantize_linear(ops::quantize_linear(value(of), scale, zero_point, parameters.dtype), scale, zero_point);
    });
  }

  /// Makes the node read `to` instead of `from`.
  void reconnect(NodeId reader, ValueId from, ValueId to) {
    const NodeInfo node = editor_.node(reader);
    std::vector<ValueId> inputs = node.inputs;
    std::ranges::replace(inputs, from, to);
    editor_.rewrite(reader, std::move(inputs), node.attributes);
  }

  void quantize(const QuantizedValue& quantized, const Parameters& parameters) {
    ValueId source = quantized.value;
    if (quantized.clip != no_id) {
      const NodeInfo& clip = editor_.node(quantized.clip);
      const ValueId operand = clip.inputs[0];
      if (saturates_like(parameters, clip)) {
        source = operand;
      } else {
        // The operand is rounded by the parameters of the result: the nearest integers of both are the same wherever the clip changes
        // nothing.
        reconnect(quantized.clip, operand, round_trip(quantized.clip, operand, parameters));
      }
    }
    const std::vector<NodeId> nodes = readers_of(quantized.value);
    const ValueId rounded = round_trip(quantized.first_reader, source, parameters);
    for (const NodeId reader : nodes) {
      const Role role = plan_.roles[reader];
      if (quantized.all_readers || (role != Role::none && role != Role::bias)) reconnect(reader, quantized.value, rounded);
    }
    group_of_[rounded] = quantized.group;
  }

  std::vector<NodeId> readers_of(ValueId of) {
    std::vector<NodeId> nodes;
    for (NodeId id = 0; id < editor_.node_count(); ++id) {
      if (std::ranges::find(editor_.node(id).inputs, of) != editor_.node(id).inputs.end()) nodes.push_back(id);
    }
    return nodes;
  }

  /// Integers with scales along an axis, dequantised before a node. Their constants are shared by all nodes that have the same.
  ValueId dequantized(NodeId before, ValueId original, const Tensor& q, const std::vector<float>& scales, std::int64_t axis) {
    return editor_.build(before, [&] {
      Constants& known = constants_[{original, q.dtype(), axis}];
      if (known.scales != scales) {
        const std::string name = graph_.info(original).name;
        known = {scales, graph_.constant(q, name + "_quantized").id(),
                 graph_.constant(scale_tensor(scales, axis, q.shape().rank()), name + "_scale").id()};
      }
      return ops::dequantize_linear(value(known.q), value(known.scale));
    });
  }

  void quantize_product(NodeId id, const std::vector<Parameters>* groups) {
    const NodeInfo node = editor_.node(id);
    std::vector<ValueId> inputs = node.inputs;
    const Product& product = plan_.weights.at(id);
    const ValueId w = inputs[weight_operand];
    const Tensor weights = finite_constant(w);
    const bool quantizes_bias = groups != nullptr && product.has_bias;
    Tensor bias;
    float x_scale = 1;
    if (quantizes_bias) {
      bias = finite_constant(inputs[bias_operand]);
      bias = bias.reshape({bias.count()});
      x_scale = (*groups)[group_of_.at(inputs[activation_operand])].scale;
    }
    const QuantizedWeights of_weights = quantize::quantize_weights(weights, product.weight_axis, bias, x_scale);
    inputs[weight_operand] = dequantized(id, w, of_weights.q, of_weights.scales, product.weight_axis);
    if (quantizes_bias) {
      const QuantizedBias of_bias = quantize_bias(bias, x_scale, of_weights.scales);
      inputs[bias_operand] = dequantized(id, inputs[bias_operand], of_bias.q, of_bias.scales, 0);
    }
    editor_.rewrite(id, std::move(inputs), node.attributes);
  }

  struct Constants {
    std::vector<float> scales;
    ValueId q = no_id, scale = no_id;
  };

  Graph& graph_;
  const Plan& plan_;
  graph::GraphEditor editor_;
  std::map<ValueId, std::size_t> group_of_;  ///< of dequantised activations
  std::map<std::tuple<ValueId, DType, std::int64_t>, Constants> constants_;
  std::map<std::pair<ValueId, std::int64_t>, std::pair<ValueId, ValueId>> blocks_;  ///< by weights and axis of output channels
};

}  // namespace

Graph quantize_activations(Graph graph, const Plan& plan, const std::vector<Parameters>& groups) {
  Rewriter rewriter(graph, plan);
  rewriter.quantize_values(groups);
  rewriter.quantize_products(&groups);
  rewriter.finish();
  return graph;
}

Graph quantize_weights_only(Graph graph, const Plan& plan) {
  Rewriter rewriter(graph, plan);
  rewriter.quantize_products(nullptr);
  rewriter.finish();
  return graph;
}

Graph quantize_weights_in_blocks(Graph graph, const Plan& plan, std::int64_t block_size) {
  Rewriter rewriter(graph, plan);
  rewriter.replace_by_blocks(block_size);
  rewriter.finish();
  return graph;
}

}  // namespace tenon::quantize
