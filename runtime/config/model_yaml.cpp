#include "config/model_yaml.h"

#include <fmt/format.h>
#include <tenon/device_name.h>
#include <tenon/error.h>

#include "config/yaml_reader.h"

namespace tenon::config {
namespace {

const std::vector<Choice<Preset>> presets = {
    {"none", Preset::none}, {"keras", Preset::keras}, {"torch", Preset::torch}, {"gorgonia", Preset::gorgonia}};

const std::vector<Choice<LayerDefinition::Kind>> layer_kinds = {{"flatten", LayerDefinition::Kind::flatten},
                                                                {"dense", LayerDefinition::Kind::dense},
                                                                {"dropout", LayerDefinition::Kind::dropout},
                                                                {"activation", LayerDefinition::Kind::activation},
                                                                {"embedding", LayerDefinition::Kind::embedding}};

const std::vector<Choice<Activation>> activations = {{"linear", Activation::linear},   {"relu", Activation::relu},
                                                     {"sigmoid", Activation::sigmoid}, {"tanh", Activation::tanh},
                                                     {"softmax", Activation::softmax}, {"log_softmax", Activation::log_softmax},
                                                     {"relu6", Activation::relu6},     {"leaky_relu", Activation::leaky_relu},
                                                     {"elu", Activation::elu},         {"softplus", Activation::softplus},
                                                     {"mish", Activation::mish},       {"gelu", Activation::gelu},
                                                     {"silu", Activation::silu}};

const std::vector<Choice<Initializer::Kind>> initializers = {{"zeros", Initializer::Kind::zeros},
                                                             {"ones", Initializer::Kind::ones},
                                                             {"constant", Initializer::Kind::constant},
                                                             {"uniform", Initializer::Kind::uniform},
                                                             {"normal", Initializer::Kind::normal},
                                                             {"glorot_uniform", Initializer::Kind::glorot_uniform},
                                                             {"glorot_normal", Initializer::Kind::glorot_normal},
                                                             {"he_uniform", Initializer::Kind::he_uniform},
                                                             {"he_normal", Initializer::Kind::he_normal},
                                                             {"lecun_uniform", Initializer::Kind::lecun_uniform},
                                                             {"lecun_normal", Initializer::Kind::lecun_normal},
                                                             {"fan_in_uniform", Initializer::Kind::fan_in_uniform},
                                                             {"truncated_normal", Initializer::Kind::truncated_normal},
                                                             {"orthogonal", Initializer::Kind::orthogonal},
                                                             {"identity", Initializer::Kind::identity}};

/// A dense layer's start: (kernel, bias).
std::pair<Initializer, Initializer> default_initializers(Preset preset) {
  std::pair<Initializer, Initializer> both;
  both.first.kind = preset == Preset::torch      ? Initializer::Kind::fan_in_uniform
                    : preset == Preset::gorgonia ? Initializer::Kind::glorot_normal
                                                 : Initializer::Kind::glorot_uniform;
  both.second.kind = preset == Preset::torch ? Initializer::Kind::fan_in_uniform : Initializer::Kind::zeros;
  return both;
}

/// Those whose normal distribution may be cut, as Keras cuts it.
bool may_be_truncated(Initializer::Kind kind) {
  return kind == Initializer::Kind::glorot_normal || kind == Initializer::Kind::he_normal || kind == Initializer::Kind::lecun_normal;
}

Initializer read_initializer(const Value& value, Preset preset) {
  Initializer result;
  const auto choose = [&](const Value& name) {
    result.kind = name.as_choice(initializers);
    result.truncated = preset == Preset::keras && may_be_truncated(result.kind);
  };
  if (!value.is_map()) {
    choose(value);
    return result;
  }
  Section section = value.section();
  choose(section.require_value("name", "the name of an initializer"));
  switch (result.kind) {
    case Initializer::Kind::zeros:
    case Initializer::Kind::ones:
      break;
    case Initializer::Kind::constant:
      result.value = section.require<double>("value", "a number");
      break;
    case Initializer::Kind::uniform:
      result.low = section.get<double>("low", result.low);
      result.high = section.get<double>("high", result.high);
      if (result.low >= result.high) section.fail(fmt::format("low {} is not below high {}", result.low, result.high));
      break;
    case Initializer::Kind::normal:
    case Initializer::Kind::truncated_normal:
      result.mean = section.get<double>("mean", result.mean);
      result.stddev = section.get<double>("stddev", result.stddev, {0});
      break;
    default:
      result.gain = section.get<double>("gain", result.gain, {.lowest = 0, .above_lowest = true});
      if (may_be_truncated(result.kind)) result.truncated = section.get<bool>("truncated", result.truncated);
  }
  section.finish();
  return result;
}

void read_alpha(Section& section, LayerDefinition& out_layer) {
  if (takes_alpha(out_layer.activation)) out_layer.alpha = section.get_optional<double>("alpha", {.lowest = 0});
}

/// A word, or {name: leaky_relu, alpha: 0.2}.
void read_activation(const Value& value, LayerDefinition& out_layer) {
  if (!value.is_map()) {
    out_layer.activation = value.as_choice(activations);
    return;
  }
  Section section = value.section();
  out_layer.activation = section.require_value("name", "the name of an activation").as_choice(activations);
  read_alpha(section, out_layer);
  section.finish();
}

void read_dense(Section& section, Preset preset, LayerDefinition& out_layer) {
  const auto start = default_initializers(preset);
  out_layer.units = section.require<std::int64_t>("units", "an integer from 1 on", {1, 1 << 30});
  if (const auto activation = section.find("activation")) read_activation(*activation, out_layer);
  out_layer.bias = section.get<bool>("bias", true);
  const auto kernel = section.find("kernel_initializer");
  const auto bias = section.find("bias_initializer");
  out_layer.kernel_initializer = kernel ? read_initializer(*kernel, preset) : start.first;
  out_layer.bias_initializer = bias ? read_initializer(*bias, preset) : start.second;
  if (std::optional<Section> regularizer = section.child("kernel_regularizer")) {
    out_layer.kernel_l1 = regularizer->get<double>("l1", 0, {.lowest = 0});
    out_layer.kernel_l2 = regularizer->get<double>("l2", 0, {.lowest = 0});
  }
  if (bias && !out_layer.bias) bias->fail("starts a bias, but the layer has 'bias: false'");
}

void read_embedding(Section& section, Preset preset, LayerDefinition& out_layer) {
  out_layer.rows = section.require<std::int64_t>("rows", "an integer from 1 on", {1, std::int64_t{1} << 40});
  out_layer.dim = section.require<std::int64_t>("dim", "an integer from 1 on", {1, 1 << 30});
  // PyTorch starts from the normal distribution, Keras within 0.05.
  if (preset == Preset::torch) {
    out_layer.embedding_initializer.kind = Initializer::Kind::normal;
    out_layer.embedding_initializer.stddev = 1;
  }
  if (const auto start = section.find("initializer")) out_layer.embedding_initializer = read_initializer(*start, preset);
}

/// The keys of one layer, except `name` and `device`.
void read_layer_keys(Section& section, Preset preset, LayerDefinition& out_layer) {
  switch (out_layer.kind) {
    case LayerDefinition::Kind::flatten:
      break;
    case LayerDefinition::Kind::dense:
      read_dense(section, preset, out_layer);
      break;
    case LayerDefinition::Kind::dropout:
      out_layer.dropout_p = section.require<double>("p", "a number in [0, 1)", {.lowest = 0, .highest = 1, .below_highest = true});
      break;
    case LayerDefinition::Kind::activation:
      // `name` says which activation here; the layer is named after it, as the builder numbers all others.
      out_layer.activation = section.require_value("name", "the name of an activation").as_choice(activations);
      read_alpha(section, out_layer);
      break;
    case LayerDefinition::Kind::embedding:
      read_embedding(section, preset, out_layer);
      break;
  }
}

std::vector<std::string> layer_words() {
  std::vector<std::string> words = words_of(layer_kinds);
  for (const Choice<Activation>& choice : activations) {
    if (choice.value != Activation::linear) words.emplace_back(choice.word);
  }
  return words;
}

LayerDefinition read_layer(const Value& item, Preset preset) {
  LayerDefinition layer;
  if (item.is_map() && item.node().entries.size() != 1) {
    item.fail(
        fmt::format("wanted a map of one key, the layer's type, as in `dense: {{units: 10}}`, got one of {} keys; "
                    "the keys of a layer stand in a map of their own",
                    item.node().entries.size()));
  }
  Node type;  // the word that says which layer it is
  Node keys;
  keys.kind = Node::Kind::map;
  keys.mark = item.mark();
  if (item.is_map()) {
    const Node::Entry& entry = item.node().entries[0];
    type.kind = Node::Kind::scalar;
    type.text = entry.key;
    type.mark = entry.mark;
    if (entry.value.kind != Node::Kind::null) keys = entry.value;
  } else if (item.is_scalar()) {
    type = item.node();
  } else {
    item.fail_wanted("a layer: a word, or a map such as `dense: {units: 10}`");
  }
  const std::vector<std::string> words = layer_words();
  const std::size_t word = Value(type, type.mark, "", item.key()).as_word(words);
  const std::string label = item.key() + " " + words[word];
  layer.where = item.mark().str() + ": " + label;
  layer.kind = word < layer_kinds.size() ? layer_kinds[word].value : LayerDefinition::Kind::activation;

  Section section(keys, label);
  if (word < layer_kinds.size()) {
    read_layer_keys(section, preset, layer);
  } else {
    layer.activation = Value(type, type.mark, "", item.key()).as_choice(activations);
    read_alpha(section, layer);
  }
  if (layer.kind != LayerDefinition::Kind::activation || word >= layer_kinds.size()) {
    if (const auto name = section.find("name")) {
      layer.name = name->as_text("a name");
      if (layer.name.empty()) name->fail_wanted("a name");
    }
  }
  if (const auto device = section.find("device")) {
    layer.device = device->as_text("a device name");
    try {
      parse_device_name(layer.device);
    } catch (const Error& problem) {
      device->fail(problem.what());
    }
  }
  section.finish();
  return layer;
}

DType read_dtype(const Value& value, const std::vector<Choice<DType>>& choices) {
  return value.as_choice(choices);
}

void read_input(Section& top, ModelDefinition& out_model) {
  static const std::vector<Choice<DType>> dtypes = {
      {"float32", DType::f32}, {"float64", DType::f64}, {"uint8", DType::u8}, {"int32", DType::i32}, {"int64", DType::i64},
      {"f32", DType::f32},     {"f64", DType::f64},     {"u8", DType::u8},    {"i32", DType::i32},   {"i64", DType::i64}};
  std::optional<Section> input = top.child("input");
  if (!input) return;
  const Value shape = input->require_value("shape", "a list of integers, the batch axis left out");
  std::vector<std::int64_t> dims;
  for (const Value& dim : shape.items("a list of integers, the batch axis left out")) dims.push_back(dim.as_integer({1, 1 << 30}));
  constexpr std::size_t most_dims = 7;  // the batch axis is the eighth
  if (dims.size() > most_dims) shape.fail(fmt::format("has {} dimensions; wanted at most {}", dims.size(), most_dims));
  out_model.input_shape = dims;
  if (const auto dtype = input->find("dtype")) out_model.input_dtype = read_dtype(*dtype, dtypes);
}

void check_names(const ModelDefinition& model) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const bool same = !model.layers[i].name.empty() && model.layers[i].name == model.layers[j].name;
      if (same) model.layers[i].fail("the name '" + model.layers[i].name + "' is taken by layers[" + std::to_string(j) + "]");
    }
  }
}

}  // namespace

Preset read_preset(Section& section) {
  return section.choice("preset", Preset::none, presets);
}

ModelDefinition read_model(const Node& tree, const std::string& context) {
  static const std::vector<Choice<DType>> dtypes = {
      {"float32", DType::f32}, {"float64", DType::f64}, {"f32", DType::f32}, {"f64", DType::f64}};
  Section top(tree, context);
  ModelDefinition model;
  model.name = top.get("name", "");
  read_input(top, model);
  if (const auto dtype = top.find("dtype")) model.dtype = read_dtype(*dtype, dtypes);
  model.preset = read_preset(top);
  const Value layers = top.require_value("layers", "a list of layers");
  for (const Value& item : layers.items("a list of layers")) model.layers.push_back(read_layer(item, model.preset));
  if (model.layers.empty()) layers.fail("is empty; wanted at least one layer");
  top.finish();
  check_names(model);
  return model;
}

void apply_overrides(Node& tree, const std::vector<ConfigOverride>& overrides) {
  for (const ConfigOverride& change : overrides) {
    const std::string name = change.text.empty() ? fmt::format("--set {}={}", change.key, change.value) : change.text;
    assign(tree, change.key, change.value, std::make_shared<Source>(Source{name, "", Origin::Kind::command_line}), change.literal);
  }
}

ModelDefinition load_model(const std::string& path, const std::vector<ConfigOverride>& overrides) {
  Node tree = load_yaml(path);
  apply_overrides(tree, overrides);
  ModelDefinition model = read_model(tree);
  model.file = path;
  return model;
}

ModelDefinition model_from_text(const std::string& text, const std::string& name, const std::vector<ConfigOverride>& overrides) {
  Node tree = parse_yaml(text, std::make_shared<Source>(Source{name, "", Origin::Kind::yaml}));
  apply_overrides(tree, overrides);
  return read_model(tree);
}

}  // namespace tenon::config

namespace tenon {

const char* name_of(Preset preset) {
  return config::word_of(config::presets, preset);
}
const char* name_of(Initializer::Kind kind) {
  return config::word_of(config::initializers, kind);
}
const char* name_of(Activation activation) {
  return config::word_of(config::activations, activation);
}
const char* name_of(LayerDefinition::Kind kind) {
  return config::word_of(config::layer_kinds, kind);
}

}  // namespace tenon
