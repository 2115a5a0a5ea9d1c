// SPDX-License-Identifier: Apache-2.0
// Models and the arguments of compile and fit as text.
#include <tenon/definition_text.h>

#include <fmt/format.h>

#include "config/model_yaml.h"
#include "config/train_blocks.h"
#include "layers/defaults.h"
#include "layers/write_layers.h"
#include "train/program/optimizers.h"

namespace tenon {
namespace {

yaml::Node parse(const std::string& text, const std::string& name) {
  const bool is_empty = text.find_first_not_of(" \t\r\n") == std::string::npos;
  return yaml::parse(is_empty ? "{}" : text, std::make_shared<yaml::Source>(yaml::Source{name, "", Origin::Kind::yaml}));
}

Json input_of(const ModelDefinition& model) {
  Json input = Json::object();
  if (model.input_shape) input["shape"] = *model.input_shape;
  if (!model.input_shapes.empty()) input["shape"] = Json(model.input_shapes);
  if (model.input_dtype != DType::f32) input["dtype"] = name_of(model.input_dtype);
  if (!input.empty() && !input.contains("shape")) {
    throw Error(Status::unsupported, fmt::format("to_yaml: expected the shape of the input too, which model.yaml needs, got the dtype {}",
                                                 name_of(model.input_dtype)));
  }
  return input;
}

std::string line(const char* key, const Json& value) {
  return fmt::format("{}: {}\n", key, yaml::flow(value));
}

}  // namespace

ModelDefinition model_from_yaml(const std::string& text, const std::string& name) {
  return config::model_from_text(text, name);
}

std::string to_yaml(const ModelDefinition& model) {
  ModelDefinition full = model;
  layers::set_defaults(full);
  std::string text;
  if (!full.name.empty()) text += line("name", full.name);
  if (const Json input = input_of(full); !input.empty()) text += line("input", input);
  if (full.dtype != DType::f32) text += line("dtype", name_of(full.dtype));
  if (full.preset != Preset::none) text += line("preset", name_of(full.preset));
  if (full.conformance) {
    Json set = Json::object();
    for (const auto& [key, value] : full.conformance->set) set[key] = value;
    text += line("conformance", {{"batch_size", full.conformance->batch_size}, {"width", full.conformance->width}, {"set", set}});
  }
  text += "layers:\n";
  for (const Json& layer : layers::write_layers(full.layers, full.preset)) {
    // A map of one key needs no braces: `- dense: {units: 10}`.
    const std::string item = yaml::flow(layer);
    text += "  - " + (layer.is_object() ? item.substr(1, item.size() - 2) : item) + "\n";
  }
  return text;
}

CompileDefinition compile_from_yaml(const std::string& text, const std::string& name) {
  const yaml::Node tree = parse(text, name);
  config::Section top(tree);
  CompileDefinition definition;
  config::read_compile_keys(top, definition);
  top.finish();
  return definition;
}

FitDefinition fit_from_yaml(const std::string& text, const std::string& name) {
  const yaml::Node tree = parse(text, name);
  config::Section top(tree);
  FitDefinition definition;
  config::read_fit_keys(top, definition.options);
  definition.options.initial_epoch = top.get_optional<std::int64_t>("initial_epoch", {0, config::max_count});
  config::read_batch_keys(top, definition.options);
  config::check_shuffle_buffer(top, definition.options);
  definition.options.validation_split = top.get<double>("validation_split", 0, config::below_one);
  if (const auto callbacks = top.find("callbacks", "a list of callbacks", "[]"); callbacks && !callbacks->is_null())
    top.attempt([&] { definition.callbacks = config::read_callbacks(*callbacks); });
  top.finish();
  return definition;
}

}  // namespace tenon
