// SPDX-License-Identifier: Apache-2.0
#include "layers/onnx_part.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include <tenon/error.h>

#include "yaml/suggest.h"

namespace tenon::layers {
namespace {

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

}  // namespace

std::vector<std::string> names_of(const std::vector<onnx::ValueType>& values) {
  std::vector<std::string> names;
  for (const onnx::ValueType& value : values) names.push_back(value.name);
  return names;
}

OnnxPart part_of(const onnx::Source& source, const Onnx& layer, bool is_model) {
  const auto fail = [&](const std::string& text) { throw Error(fmt::format("{}: {}", source.name(), text)); };
  OnnxPart part{.outputs = outputs_of(source, layer, is_model), .inputs = {}, .constants = {}};
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

}  // namespace tenon::layers
