// SPDX-License-Identifier: Apache-2.0
// The layer of an ONNX file.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

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
  std::string output;
  onnx::ValueType input;
  std::vector<onnx::ValueType> constants;  ///< the other inputs
};

template <class List>
std::vector<std::string> names_of(const List& values) {
  std::vector<std::string> names;
  for (const onnx::ValueType& value : values) names.push_back(value.name);
  return names;
}

/// Errors  name the file, what it has and the key that chooses.
Part part_of(const onnx::Source& source, const Onnx& layer) {
  const auto fail = [&](const std::string& text) { throw Error(fmt::format("{}: {}", source.name(), text)); };
  Part part;
  const std::vector<std::string> outputs = names_of(source.outputs());
  if (layer.output.empty()) {
    if (outputs.size() != 1) fail(fmt::format("expected one output, got {}; choose with `output`", fmt::join(outputs, ", ")));
    part.output = outputs[0];
  } else {
    const std::vector<std::string> values = source.values();
    if (std::ranges::find(values, layer.output) == values.end()) {
      fail(fmt::format("output: expected the name of a value that a node of the graph computes, got '{}'{}", layer.output,
                       yaml::did_you_mean(layer.output, values)));
    }
    part.output = layer.output;
  }
  const std::vector<onnx::ValueType> inputs = source.inputs_of(part.output);
  const std::vector<std::string> names = names_of(inputs);
  const std::string known = inputs.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  const auto expect_input = [&](const char* key, const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) {
      fail(fmt::format("{}: expected an input that '{}' depends on ({}), got '{}'{}", key, part.output, known, name,
                       yaml::did_you_mean(name, names)));
    }
  };
  if (!layer.input.empty()) expect_input("input", layer.input);
  for (const auto& [name, number] : layer.constants) expect_input("constants", name);
  std::vector<onnx::ValueType> open;
  for (const onnx::ValueType& input : inputs) {
    if (layer.constants.contains(input.name) && input.name != layer.input) {
      part.constants.push_back(input);
    } else {
      open.push_back(input);
    }
  }
  if (open.size() != 1 || (!layer.input.empty() && open[0].name != layer.input)) {
    fail(
        fmt::format("expected one input that '{}' depends on, got {}; choose with `input`, and give the others numbers in `constants` "
                    "(an attention mask is 1), or choose another `output`",
                    part.output, known));
  }
  part.input = open[0];
  if (part.input.dtype == DType::none) fail(fmt::format("input '{}': expected numbers, got {}", part.input.name, part.input.type));
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

/// An input that is the same number in all batches.
Value constant_input(LayerBuilder& builder, const onnx::ValueType& input, double number, const onnx::ValueType& x_type, const Shape& x) {
  Shape shape;
  if (input.shape.empty()) builder.fail(fmt::format("has the constant input {}: expected one with a batch axis", input.str()));
  for (std::size_t i = 0; i < input.shape.size(); ++i) {
    const onnx::Dimension& size = input.shape[i];
    const auto same = std::ranges::find_if(
        x_type.shape, [&](const onnx::Dimension& other) { return !size.symbol.empty() && other.symbol == size.symbol; });
    const bool is_named = same != x_type.shape.end();
    const bool is_like_x = is_named || (size.symbol.empty() && i < x.rank());
    if (i > 0 && !size.is_fixed() && !is_like_x) {
      builder.fail(fmt::format("has the constant input {}: expected fixed sizes, or those of the input {}", input.str(), x_type.str()));
    }
    shape.push_back(i == 0 ? x[0] : size.is_fixed() ? size.size : x[is_named ? static_cast<std::size_t>(same - x_type.shape.begin()) : i]);
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

/// Tells the builder what losses and later layers ask of a result.
void describe_result(LayerBuilder& builder, Value y) {
  const Graph& graph = builder.graph();
  builder.features_last = y.shape().rank() > 2 && has_features_last(y);
  const NodeId producer = graph.info(y.id()).producer;
  if (producer == no_id) return;
  const NodeInfo& node = graph.nodes()[producer];
  const auto last = static_cast<std::int64_t>(y.shape().rank()) - 1;
  const bool is_softmax = node.op == TENON_OP_Softmax && node.attributes.as<tenon_attributes_axis>().axis == last;
  if (!is_softmax && node.op != TENON_OP_Sigmoid) return;
  builder.set_scores(Value(&builder.graph(), node.inputs[0]), is_softmax ? tenon::Activation::softmax : tenon::Activation::sigmoid);
}

Value build_onnx(LayerBuilder& builder, const Onnx& layer, Value x) {
  const BuildOptions& options = builder.options();
  if (options.context == nullptr || options.sources == nullptr) builder.fail("imports a file, for which a model has to be compiled");
  onnx::Source& source = options.sources->open(layer.file);
  const Part part = part_of(source, layer);
  expect_fitting(builder, part.input, x);
  const std::int64_t batch = x.shape()[0];
  std::map<std::string, Value> inputs{{part.input.name, x}};
  for (const onnx::ValueType& input : part.constants) {
    inputs[input.name] = constant_input(builder, input, layer.constants.at(input.name), part.input, x.shape());
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
  const bool other_batch = part.input.ranked && part.input.shape.at(0).is_fixed() && part.input.shape[0].size != batch;
  const auto fail_batch = [&](const std::string& reason) {
    builder.fail(
        fmt::format("imports {}, whose input {} is fixed to a batch of {}, and cannot be built for one of {} ({}); export it with an "
                    "open first axis (dynamic_axes or dynamic_shapes in PyTorch)",
                    source.name(), part.input.str(), part.input.shape[0].size, batch, reason));
  };
  onnx::Source::Added added;
  try {
    added = source.add_to(builder.graph(), inputs, part.output, pass);
  } catch (const Error& problem) {
    if (!other_batch) throw;
    fail_batch(problem.what());
  }
  Value y = added.output;
  const std::string result = fmt::format("'{}' is {}{}", part.output, tenon::name_of(y.dtype()), y.shape().str());
  if (y.shape().rank() == 0 || y.shape()[0] != batch) {
    if (other_batch) fail_batch(result);
    builder.fail(fmt::format("imports {}, whose output {}: expected the batch of {} as its first axis", source.name(), result, batch));
  }
  if (!is_floating(y.dtype())) {
    builder.fail(
        fmt::format("imports {}, whose output {}: expected floats, such as the scores of classes; choose an earlier value with "
                    "`output`",
                    source.name(), result));
  }
  for (const std::string& glob : layer.frozen) {
    if (std::ranges::any_of(weights, [&](const std::string& name) { return yaml::glob_matches(glob, name); })) continue;
    builder.fail(fmt::format("has `frozen: {}`, which matches no weight of {}; expected a glob of {}", glob, source.name(),
                             fmt::join(weights, ", ")));
  }
  if (y.dtype() != builder.dtype()) y = ops::cast(y, builder.dtype());
  describe_result(builder, y);
  builder.row().type += " " + std::filesystem::path(layer.file).filename().string();
  builder.row().flops = static_cast<std::int64_t>(added.flops) / std::max<std::int64_t>(1, batch);
  return y;
}

}  // namespace

TENON_LAYER(Onnx, "onnx", read_onnx, build_onnx);

void complete_input(ModelDefinition& definition, Sources& sources) {
  const LayerDefinition& first = definition.layers.at(0);
  const auto* const layer = std::get_if<Onnx>(&first.kind);
  if (layer == nullptr) return;
  onnx::ValueType input;
  try {
    input = part_of(sources.open(layer->file), *layer).input;
  } catch (const Error& problem) {
    first.fail(problem.what());
  }
  if (!is_floating(input.dtype) && is_floating(definition.input_dtype)) definition.input_dtype = input.dtype;
  if (definition.input_shape || !input.ranked || input.shape.empty()) return;
  std::vector<std::int64_t> sample;
  for (std::size_t i = 1; i < input.shape.size(); ++i) sample.push_back(input.shape[i].size);
  if (std::ranges::all_of(sample, [](std::int64_t size) { return size >= 0; })) definition.input_shape = sample;
}

}  // namespace tenon::layers
