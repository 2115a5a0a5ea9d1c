// SPDX-License-Identifier: Apache-2.0
#include "layers/interface.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <type_traits>
#include <variant>

#include <tenon/error.h>

#include "layers/definition.h"
#include "layers/onnx_part.h"
#include "layers/sources.h"
#include "yaml/suggest.h"

namespace tenon::layers {
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
OnnxPart part_of(const LayerDefinition& layer, Sources& sources, bool is_model) {
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
    const OnnxPart part = part_of(first, sources, is_model);
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
    if (names.size() == 1) definition.input_shape = shape;
  }
  return interface;
}

}  // namespace tenon::layers
