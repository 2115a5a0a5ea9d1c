// SPDX-License-Identifier: Apache-2.0
// The layer of an ONNX file.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <span>
#include <type_traits>
#include <variant>

#include <tenon/error.h>

#include "layers/definition.h"
#include "layers/rule.h"
#include "layers/sources.h"
#include "yaml/glob.h"
#include "yaml/suggest.h"

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

/// The part of a file that a layer is.
struct Part {
  std::vector<std::string> outputs;
  std::vector<onnx::ValueType> inputs;
  std::vector<onnx::ValueType> constants;  ///< the other inputs
};

template <class List>
std::vector<std::string> names_of(const List& values) {
  std::vector<std::string> names;
  for (const onnx::ValueType& value : values) names.push_back(value.name);
  return names;
}

/// The values that are the outputs. Errors  name the file, what it has and the key that chooses.
std::vector<std::string> outputs_of(const onnx::Source& source, const Onnx& layer, bool is_model) {
  const auto fail = [&](const std::string& text) { throw Error(fmt::format("{}: {}", source.name(), text)); };
  if (!layer.output.empty() && !layer.outputs.empty()) fail("expected one of `output` and `outputs`, got both");
  const bool chooses = !layer.output.empty() || !layer.outputs.empty();
  std::vector<std::string> outputs = names_of(source.outputs());
  if (chooses) outputs = layer.outputs.empty() ? std::vector{layer.output} : layer.outputs;
  if (outputs.empty() || (outputs.size() > 1 && !is_model))
    fail(fmt::format("expected one output, got {}; choose with `output`",
                     outputs.empty() ? "none" : fmt::format("{}", fmt::join(outputs, ", "))));
  if (!chooses) return outputs;
  const char* const key = layer.outputs.empty() ? "output" : "outputs";
  const std::vector<std::string> values = source.values();
  for (auto output = outputs.begin(); output != outputs.end(); ++output) {
    if (std::ranges::find(values, *output) == values.end()) {
      fail(fmt::format("{}: expected the name of a value that a node of the graph computes, got '{}'{}", key, *output,
                       yaml::did_you_mean(*output, values)));
    }
    if (std::find(outputs.begin(), output, *output) != output) fail(fmt::format("{}: '{}' is given twice", key, *output));
  }
  return outputs;
}

/// Errors  name the file, what it has and the key that chooses. `is_model`: the layer may have several inputs and outputs.
Part part_of(const onnx::Source& source, const Onnx& layer, bool is_model) {
  const auto fail = [&](const std::string& text) { throw Error(fmt::format("{}: {}", source.name(), text)); };
  Part part{.outputs = outputs_of(source, layer, is_model), .inputs = {}, .constants = {}};
  const std::vector<onnx::ValueType> inputs = source.inputs_of(part.outputs);
  const std::vector<std::string> names = names_of(inputs);
  const std::string known = inputs.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  const std::string outputs = fmt::format("'{}' {}", fmt::join(part.outputs, "', '"), part.outputs.size() == 1 ? "depends" : "depend");
  const auto expect_input = [&](const char* key, const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) {
      fail(fmt::format("{}: expected an input that {} on ({}), got '{}'{}", key, outputs, known, name, yaml::did_you_mean(name, names)));
    }
  };
  if (!layer.input.empty()) expect_input("input", layer.input);
  for (const auto& [name, number] : layer.constants) expect_input("constants", name);
  for (const onnx::ValueType& input : inputs) {
    (layer.constants.contains(input.name) && input.name != layer.input ? part.constants : part.inputs).push_back(input);
  }
  const bool needs_one = !is_model || !layer.input.empty();
  if (part.inputs.empty() || (needs_one && part.inputs.size() > 1)) {
    fail(
        fmt::format("expected {} that {} on, got {}; choose with `input`, and give the others numbers in `constants` "
                    "(an attention mask is 1), or choose another `output`",
                    needs_one ? "one input" : "at least one input", outputs, known));
  }
  for (const onnx::ValueType& input : part.inputs) {
    if (input.dtype == DType::none) fail(fmt::format("input '{}': expected numbers, got {}", input.name, input.type));
  }
  return part;
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
std::vector<Value> values_of(LayerBuilder& builder, const Part& part, Value x) {
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
  const Part part = part_of(source, layer, builder.is_whole_model());
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
  builder.row().type += " " + std::filesystem::path(layer.file).filename().string();
  builder.row().flops = static_cast<std::int64_t>(added.flops) / std::max<std::int64_t>(1, batch);
  return first.output;
}

}  // namespace

TENON_LAYER(Onnx, "onnx", read_onnx, build_onnx);

namespace {

/// The shape of a sample, if the file fixes it.
std::optional<Shape> sample_of(const onnx::ValueType& input) {
  if (!input.ranked || input.shape.empty()) return std::nullopt;
  Shape sample;
  for (std::size_t i = 1; i < input.shape.size(); ++i) {
    if (!input.shape[i].is_fixed()) return std::nullopt;
    sample.push_back(input.shape[i].size);
  }
  return sample;
}

tenon::Activation final_activation_of(const std::string& op) {
  if (op == "Softmax") return tenon::Activation::softmax;
  return op == "Sigmoid" ? tenon::Activation::sigmoid : tenon::Activation::linear;
}

tenon::Activation final_activation_of(const LayerDefinition& layer) {
  const tenon::Activation function = std::visit(
      []<class L>(const L& kind) {
        if constexpr (std::is_same_v<L, Activation>) {
          return kind.function;
        } else if constexpr (requires { kind.activation; }) {
          return kind.activation.function;
        } else {
          return tenon::Activation::linear;
        }
      },
      layer.kind);
  const bool has_scores = function == tenon::Activation::softmax || function == tenon::Activation::sigmoid;
  return has_scores ? function : tenon::Activation::linear;
}

/// What the file of a layer says, and the layer.
Part part_of(const LayerDefinition& layer, Sources& sources, bool is_model) {
  const Onnx& file = std::get<Onnx>(layer.kind);
  try {
    return part_of(sources.open(file.file), file, is_model);
  } catch (const Error& problem) {
    layer.fail(problem.what());
  }
}

}  // namespace

Interface complete_interface(ModelDefinition& definition, Sources& sources) {
  const LayerDefinition &first = definition.layers.at(0), &last = definition.layers.back();
  Interface interface {
    .inputs = {{.name = "x"}}, .outputs = { {"y", final_activation_of(last)} }
  };
  const bool is_model = is_one_file(definition);
  if (std::holds_alternative<Onnx>(first.kind)) {
    const Part part = part_of(first, sources, is_model);
    const onnx::ValueType& x = part.inputs[0];
    if (part.inputs.size() == 1) {
      if (!is_floating(x.dtype) && is_floating(definition.input_dtype)) definition.input_dtype = x.dtype;
      if (const auto sample = sample_of(x); sample && !definition.input_shape) definition.input_shape = {sample->begin(), sample->end()};
    }
    if (is_model) {
      interface.inputs.clear();
      for (const onnx::ValueType& input : part.inputs) interface.inputs.push_back({input.name, input.dtype, sample_of(input)});
    }
  }
  if (const auto* const file = std::get_if<Onnx>(&last.kind)) {
    interface.outputs.clear();
    for (const std::string& output : part_of(last, sources, is_model).outputs)
      interface.outputs.push_back({is_model ? output : "y", final_activation_of(sources.open(file->file).operator_of(output))});
  }
  if (interface.inputs.size() == 1) {
    interface.inputs[0].dtype = input_dtype(definition);
    if (const auto& shape = definition.input_shape) interface.inputs[0].sample = Shape(std::span<const std::int64_t>(*shape));
  }
  std::vector<std::string> names;
  for (const ModelInput& input : interface.inputs) names.push_back(input.name);
  if (definition.input_shape && names.size() > 1)
    first.fail(fmt::format("input.shape: expected a map with a shape for each of {}, got one shape", fmt::join(names, ", ")));
  for (const auto& [name, shape] : definition.input_shapes) {
    const auto found = std::ranges::find(names, name);
    if (found == names.end()) {
      first.fail(fmt::format("input.shape: expected the name of an input ({}), got '{}'{}", fmt::join(names, ", "), name,
                             yaml::did_you_mean(name, names)));
    }
    interface.inputs[static_cast<std::size_t>(found - names.begin())].sample = Shape(std::span<const std::int64_t>(shape));
  }
  return interface;
}

}  // namespace tenon::layers
