// SPDX-License-Identifier: Apache-2.0
#include "config/model_yaml.h"

#include <fmt/format.h>
#include <tenon/device_name.h>
#include <tenon/error.h>

#include "layers/defaults.h"
#include "layers/keys.h"
#include "train/names.h"

namespace tenon::config {
namespace {

void read_input(Section& top, ModelDefinition& out_model) {
  static const std::vector<Choice<DType>> dtypes = {
      {"float32", DType::f32}, {"float64", DType::f64}, {"uint8", DType::u8}, {"int32", DType::i32}, {"int64", DType::i64},
      {"f32", DType::f32},     {"f64", DType::f64},     {"u8", DType::u8},    {"i32", DType::i32},   {"i64", DType::i64}};
  std::optional<Section> input = top.child("input");
  if (!input) return;
  input->attempt([&] {
    const char* const expected = "a list of integers without the batch axis";
    const auto read_shape = [&](const Value& shape) {
      std::vector<std::int64_t> dims;
      for (const Value& dim : shape.items(expected)) dims.push_back(dim.as_integer({1, 1 << 30}));
      constexpr std::size_t max_dims = 7;  // the batch axis is the eighth
      if (dims.size() > max_dims) shape.fail(fmt::format("has {} dimensions; expected at most {}", dims.size(), max_dims));
      return dims;
    };
    const Value shape = input->require_value("shape", expected);
    if (!shape.is_map()) {
      out_model.input_shape = read_shape(shape);
    } else {
      for (const auto& [name, of_input] : shape.entries()) out_model.input_shapes[name] = read_shape(of_input);
    }
  });
  out_model.input_dtype = input->choice("dtype", out_model.input_dtype, dtypes);
}

/// `conformance: {batch_size: 2, set: {input.shape: [1, 14, 14]}}`
std::optional<ConformanceCut> read_conformance(Section& top) {
  std::optional<Section> section = top.child("conformance");
  if (!section) return std::nullopt;
  ConformanceCut cut;
  cut.batch_size = section->get<std::int64_t>("batch_size", cut.batch_size, {1, 1 << 20});
  cut.width = section->get<double>("width", cut.width, {.lowest = 0, .highest = 1, .above_lowest = true});
  if (const auto set = section->find("set"); set && !set->is_null()) {
    for (const auto& [key, value] : set->entries("a map of keys of this file")) {
      std::string text;
      if (value.is_list()) {
        for (const Value& item : value.items()) text += (text.empty() ? "[" : ", ") + item.as_text();
        text += "]";
      } else {
        text = value.as_text("a value or a list of values");
      }
      cut.set.emplace_back(key, text);
    }
  }
  return cut;
}

void check_names(const ModelDefinition& model) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = !model.layers[i].name.empty() && model.layers[i].name == model.layers[j].name;
      if (same) model.layers[i].fail("the name '" + model.layers[i].name + "' is already used by layers[" + std::to_string(j) + "]");
    }
  }
}

}  // namespace

Preset read_preset(Section& section) {
  return section.choice("preset", Preset::none, train::presets());
}

ModelDefinition read_model(const Node& tree, const std::string& context) {
  static const std::vector<Choice<DType>> dtypes = {
      {"float32", DType::f32}, {"float64", DType::f64}, {"f32", DType::f32}, {"f64", DType::f64}};
  Section top(tree, context);
  ModelDefinition model;
  model.name = top.get("name", "");
  top.attempt([&] { read_input(top, model); });
  model.dtype = top.choice("dtype", model.dtype, dtypes);
  model.preset = read_preset(top);
  top.attempt([&] {
    const auto file = top.find("onnx", "the path of an ONNX file, or a map of the keys of the layer onnx: in place of layers", "none");
    if (file && !file->is_null()) {
      if (top.find("layers")) file->fail("expected one of onnx and layers, got both; a layer of the list may be `onnx: {file: ...}`");
      model.layers = {layers::read_onnx_model(*file, model.preset)};
      return;
    }
    const Value list = top.require_value("layers", "a list of layers");
    model.layers = layers::read_layers(list, model.preset);
    if (model.layers.empty()) list.fail("is empty; expected at least one layer");
  });
  top.attempt([&] { model.conformance = read_conformance(top); });
  top.finish();
  check_names(model);
  layers::set_defaults(model);
  return model;
}

void apply_overrides(Node& tree, const std::vector<ConfigOverride>& overrides) {
  for (const ConfigOverride& change : overrides) {
    const std::string name = change.text.empty() ? fmt::format("--set {}={}", change.key, change.value) : change.text;
    yaml::assign(tree, change.key, change.value, std::make_shared<Source>(Source{name, "", Origin::Kind::command_line}), change.literal);
  }
}

ModelDefinition load_model_file(Files& files, const std::string& path, const std::vector<ConfigOverride>& overrides) {
  Node tree = files.load(path);
  apply_overrides(tree, overrides);
  ModelDefinition model = read_model(tree);
  model.file = path;
  return model;
}

ModelDefinition model_from_text(const std::string& text, const std::string& name, const std::vector<ConfigOverride>& overrides) {
  Node tree = yaml::parse(text, std::make_shared<Source>(Source{name, "", Origin::Kind::yaml}));
  apply_overrides(tree, overrides);
  return read_model(tree);
}

}  // namespace tenon::config
