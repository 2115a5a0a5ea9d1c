// SPDX-License-Identifier: Apache-2.0
#include "train/head.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <variant>

#include <tenon/error.h>

#include "yaml/suggest.h"

namespace tenon::train {
namespace {

/// The names of the layers: those given, else as LayerBuilder chooses them.
std::vector<std::string> names_of_layers(const ModelDefinition& definition) {
  std::vector<std::string> names;
  std::map<std::string, int> next_index;
  for (const LayerDefinition& layer : definition.layers) {
    const int index = layer.name.empty() ? next_index[layer.kind_name()]++ : 0;
    names.push_back(!layer.name.empty() ? layer.name : index == 0 ? layer.kind_name() : fmt::format("{}_{}", layer.kind_name(), index));
  }
  return names;
}

}  // namespace

std::size_t cut_after(ModelDefinition& definition, const std::string& after, layers::Sources& sources) {
  std::vector<std::string> names = names_of_layers(definition);
  const auto keep = [&](std::size_t count) {
    definition.layers.resize(count);
    return count;
  };
  if (const auto found = std::ranges::find(names, after); found != names.end())
    return keep(static_cast<std::size_t>(found - names.begin()) + 1);
  const std::string layers = fmt::format("{}", fmt::join(names, ", "));
  for (std::size_t i = definition.layers.size(); i-- > 0;) {
    auto* const file = std::get_if<layers::Onnx>(&definition.layers[i].kind);
    if (file == nullptr) continue;
    onnx::Source& source = sources.open(file->file);
    const std::vector<std::string> values = source.values();
    names.insert(names.end(), values.begin(), values.end());
    if (std::ranges::find(values, after) == values.end()) continue;
    file->output = after;
    file->outputs.clear();
    const std::vector<onnx::ValueType> inputs = source.inputs_of({&after, 1});
    const auto is_left_out = [&](const std::string& input) {
      return std::ranges::find(inputs, input, &onnx::ValueType::name) == inputs.end();
    };
    std::erase_if(file->constants, [&](const auto& constant) { return is_left_out(constant.first); });
    if (is_left_out(file->input)) file->input.clear();
    return keep(i + 1);
  }
  throw Error(fmt::format("replace_head: expected the name of a layer ({}), or of a value in the file of a layer onnx, got '{}'{}", layers,
                          after, yaml::did_you_mean(after, names)));
}

std::vector<std::string> names_of_layers(std::span<const LayerSummary> layers) {
  std::vector<std::string> names;
  for (const LayerSummary& layer : layers) {
    if (layer.name.find('/') == std::string::npos) names.push_back(layer.name);
  }
  return names;
}

}  // namespace tenon::train
