// SPDX-License-Identifier: Apache-2.0
// The layer of an ONNX file.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include <tenon/error.h>

#include "layers/onnx_part.h"
#include "layers/rule.h"
#include "layers/sources.h"
#include "platform/path.h"
#include "yaml/glob.h"

namespace tenon::layers {
namespace {

void read_onnx(LayerKeys& keys, Onnx& out_layer) {
  keys.attempt([&] { out_layer.file = keys.require_value("file", "the path of an ONNX file").as_path(); });
  out_layer.output = keys.get("output", "");
  if (const auto outputs = keys.find("outputs", "names of values", "the file's"); outputs && !outputs->is_null()) {
    keys.attempt([&] { out_layer.outputs = outputs->as_names(); });
  }
  out_layer.input = keys.get("input", "");
  if (const auto constants = keys.find("constants", "a map of inputs and numbers", "none"); constants && !constants->is_null()) {
    keys.attempt([&] {
      for (const auto& [name, value] : constants->entries("a map of inputs and numbers")) out_layer.constants[name] = value.as_number();
    });
  }
  if (const auto frozen = keys.find("frozen", "true, or globs of names of weights in the file", "false"); frozen && !frozen->is_null()) {
    keys.attempt([&] {
      out_layer.frozen = frozen->as_names();
      if (out_layer.frozen == std::vector<std::string>{"true"}) out_layer.frozen = {"*"};
      if (out_layer.frozen == std::vector<std::string>{"false"}) out_layer.frozen = {};
    });
  }
}

void expect_fitting(LayerBuilder& builder, const onnx::ValueType& input, Value x) {
  const Shape shape = x.shape();
  bool fits = !input.ranked || input.shape.size() == shape.rank();
  for (std::size_t i = 1; fits && input.ranked && i < shape.rank(); ++i) {
    fits = !input.shape[i].is_fixed() || input.shape[i].size == shape[i];
  }
  if (!fits || (is_floating(x.dtype()) && !is_floating(input.dtype))) {
    builder.fail(fmt::format("expects its input {}, got {}{}", input.str(), tenon::name_of(x.dtype()), shape.str()));
  }
}

/// An input that is the same number in all batches. Its open axes have the sizes of axes of that name in `inputs`, or those of x.
Value constant_input(LayerBuilder& builder, const onnx::ValueType& input, double number, const std::vector<onnx::ValueType>& inputs,
                     const std::vector<Value>& values) {
  const Shape x = values[0].shape();
  Shape shape;
  if (input.shape.empty()) builder.fail(fmt::format("has the constant input {}: expected one with a batch axis", input.str()));
  for (std::size_t i = 0; i < input.shape.size(); ++i) {
    const onnx::Dimension& size = input.shape[i];
    std::optional<std::int64_t> found;
    if (size.symbol.empty() && i < x.rank()) found = x[i];
    for (std::size_t k = 0; k < inputs.size() && !size.symbol.empty() && !found; ++k) {
      const auto& axes = inputs[k].shape;
      const auto same = std::ranges::find(axes, size.symbol, &onnx::Dimension::symbol);
      if (same != axes.end()) found = values[k].shape()[static_cast<std::size_t>(same - axes.begin())];
    }
    if (i > 0 && !size.is_fixed() && !found) {
      builder.fail(fmt::format("has the constant input {}: expected fixed sizes, or those of the input {}", input.str(), inputs[0].str()));
    }
    shape.push_back(i == 0 ? x[0] : size.is_fixed() ? size.size : *found);
  }
  return builder.graph().constant(Tensor::full(input.dtype, shape, number));
}

/// Whether the last axis holds the features: the last op before the value that mixes features or channels says so.
bool has_features_last(Value y) {
  const Graph& graph = y.graph();
  for (ValueId v = y.id(); graph.info(v).producer != no_id;) {
    const NodeInfo& node = graph.nodes()[graph.info(v).producer];
    switch (node.op) {
      case TENON_OP_MatMul:
      case TENON_OP_Gemm:
      case TENON_OP_LayerNormalization:
      case TENON_OP_RMSNormalization:
      case TENON_OP_Attention:
      case TENON_OP_Gather:
      case TENON_OP_LSTM:
      case TENON_OP_GRU:
      case TENON_OP_RNN:
        return true;
      case TENON_OP_Conv:
      case TENON_OP_ConvTranspose:
      case TENON_OP_BatchNormalization:
      case TENON_OP_BatchNormTrain:
      case TENON_OP_MaxPool:
      case TENON_OP_AveragePool:
        return false;
      case TENON_OP_Transpose:
        return y.shape().rank() == 3;
      default:
        break;
    }
    const auto computed =
        std::ranges::find_if(node.inputs, [&](ValueId input) { return input != no_id && graph.info(input).producer != no_id; });
    if (computed == node.inputs.end()) break;
    v = *computed;
  }
  return y.shape().rank() == 3;
}

/// A result with what losses and later layers ask of it.
ForwardOutput described(Graph& graph, const std::string& name, Value y) {
  ForwardOutput output{.name = name, .output = y, .logits = y};
  output.features_last = y.shape().rank() > 2 && has_features_last(y);
  const NodeId producer = graph.info(y.id()).producer;
  if (producer == no_id) return output;
  const NodeInfo& node = graph.nodes()[producer];
  const auto last = static_cast<std::int64_t>(y.shape().rank()) - 1;
  const bool is_softmax = node.op == TENON_OP_Softmax && node.attributes.as<tenon_attributes_axis>().axis == last;
  if (!is_softmax && node.op != TENON_OP_Sigmoid) return output;
  output.logits = Value(&graph, node.inputs[0]);
  output.final_activation = is_softmax ? tenon::Activation::softmax : tenon::Activation::sigmoid;
  return output;
}

/// The values of the part's inputs: x for an only one, else those of the model by name.
std::vector<Value> values_of(LayerBuilder& builder, const OnnxPart& part, Value x) {
  if (part.inputs.size() == 1) return {x};
  std::vector<Value> values;
  for (const onnx::ValueType& input : part.inputs) {
    const auto found = std::ranges::find(builder.inputs(), input.name, &NamedValues::value_type::first);
    if (found == builder.inputs().end()) {
      builder.fail(fmt::format("has the inputs {}; expected a value for each, got none for '{}'", fmt::join(names_of(part.inputs), ", "),
                               input.name));
    }
    values.push_back(found->second);
    const Shape first = values[0].shape(), shape = found->second.shape();
    if (shape.rank() > 0 && first.rank() > 0 && shape[0] == first[0]) continue;
    builder.fail(fmt::format("expects inputs of one batch size, got '{}' {} and '{}' {}", part.inputs[0].name, first.str(), input.name,
                             shape.str()));
  }
  return values;
}

Value build_onnx(LayerBuilder& builder, const Onnx& layer, Value x) {
  const BuildOptions& options = builder.options();
  if (options.context == nullptr || options.sources == nullptr) builder.fail("imports a file, for which a model has to be compiled");
  onnx::Source& source = options.sources->open(layer.file);
  const OnnxPart part = part_of(source, layer, builder.is_whole_model());
  const std::vector<Value> values = values_of(builder, part, x);
  const std::int64_t batch = x.shape()[0];
  std::map<std::string, Value> inputs;
  for (std::size_t i = 0; i < values.size(); ++i) {
    expect_fitting(builder, part.inputs[i], values[i]);
    inputs[part.inputs[i].name] = values[i];
  }
  for (const onnx::ValueType& input : part.constants) {
    inputs[input.name] = constant_input(builder, input, layer.constants.at(input.name), part.inputs, values);
  }

  const auto is_frozen = [&](const std::string& weight) {
    return std::ranges::any_of(layer.frozen, [&](const std::string& glob) { return yaml::glob_matches(glob, weight); });
  };
  std::vector<std::string> weights;
  std::map<std::string, Value> states;
  const onnx::SourcePass pass{
      .context = *options.context,
      .dtype = builder.dtype(),
      .key = builder.key(),
      .learns = [&](const std::string& weight) { return !is_frozen(weight) && builder.learns(weight); },
      .weight =
          [&](const onnx::SourceWeight& weight) {
            weights.push_back(weight.name);
            if (!weight.is_state) return builder.parameter(weight.name, weight.initial, is_frozen(weight.name));
            return states[weight.name] = builder.state(weight.name, weight.initial);
          },
      .keep = [&](const std::string& weight, Value next) { builder.keep(states.at(weight), next); },
  };
  // Files that were exported for one batch size often have it in their shapes in other places as well.
  const auto fixed = std::ranges::find_if(part.inputs, [&](const onnx::ValueType& input) {
    return input.ranked && input.shape.at(0).is_fixed() && input.shape[0].size != batch;
  });
  const bool other_batch = fixed != part.inputs.end();
  const auto fail_batch = [&](const std::string& reason) {
    builder.fail(
        fmt::format("imports {}, whose input {} is fixed to a batch of {}, and cannot be built for one of {} ({}); export it with an "
                    "open first axis (dynamic_axes or dynamic_shapes in PyTorch)",
                    source.name(), fixed->str(), fixed->shape[0].size, batch, reason));
  };
  onnx::Source::Added added;
  try {
    added = source.add_to(builder.graph(), inputs, part.outputs, pass);
  } catch (const Error& problem) {
    if (!other_batch) throw;
    fail_batch(problem.what());
  }
  std::vector<ForwardOutput> outputs;
  for (std::size_t i = 0; i < added.outputs.size(); ++i) {
    Value y = added.outputs[i];
    const std::string result = fmt::format("'{}' is {}{}", part.outputs[i], tenon::name_of(y.dtype()), y.shape().str());
    if (y.shape().rank() == 0 || y.shape()[0] != batch) {
      if (other_batch) fail_batch(result);
      builder.fail(fmt::format("imports {}, whose output {}: expected the batch of {} as its first axis", source.name(), result, batch));
    }
    if (!is_floating(y.dtype()) && part.outputs.size() == 1) {
      builder.fail(
          fmt::format("imports {}, whose output {}: expected floats, such as the scores of classes; choose an earlier value with "
                      "`output`",
                      source.name(), result));
    }
    if (is_floating(y.dtype()) && y.dtype() != builder.dtype()) y = ops::cast(y, builder.dtype());
    outputs.push_back(described(builder.graph(), part.outputs[i], y));
  }
  for (const std::string& glob : layer.frozen) {
    if (std::ranges::any_of(weights, [&](const std::string& name) { return yaml::glob_matches(glob, name); })) continue;
    builder.fail(fmt::format("has `frozen: {}`, which matches no weight of {}; expected a glob of {}", glob, source.name(),
                             fmt::join(weights, ", ")));
  }
  const ForwardOutput first = outputs[0];
  builder.features_last = first.features_last;
  if (first.final_activation != tenon::Activation::linear) builder.set_scores(first.logits, first.final_activation);
  if (builder.is_whole_model()) builder.set_outputs(std::move(outputs));
  builder.row().type += " " + platform::text_of(platform::path_of(layer.file).filename());
  builder.row().flops = static_cast<std::int64_t>(added.flops) / std::max<std::int64_t>(1, batch);
  return first.output;
}

}  // namespace

TENON_LAYER(Onnx, "onnx", read_onnx, build_onnx);

}  // namespace tenon::layers
