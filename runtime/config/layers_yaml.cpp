// SPDX-License-Identifier: Apache-2.0
#include "config/layers_yaml.h"

#include <fmt/format.h>
#include <tenon/device_name.h>
#include <tenon/error.h>

#include "train/names.h"

namespace tenon::config {
namespace {

using Kind = LayerDefinition::Kind;

/// The default initializers of a dense layer's kernel and bias.
std::pair<Initializer, Initializer> default_initializers(Preset preset) {
  std::pair<Initializer, Initializer> both;
  both.first.kind = preset == Preset::torch      ? Initializer::Kind::fan_in_uniform
                    : preset == Preset::gorgonia ? Initializer::Kind::glorot_normal
                                                 : Initializer::Kind::glorot_uniform;
  both.second.kind = preset == Preset::torch ? Initializer::Kind::fan_in_uniform : Initializer::Kind::zeros;
  return both;
}

/// True for the initializers whose normal distribution may be truncated, as in Keras.
bool may_be_truncated(Initializer::Kind kind) {
  return kind == Initializer::Kind::glorot_normal || kind == Initializer::Kind::he_normal || kind == Initializer::Kind::lecun_normal;
}

void read_nothing(Section&, const LayerContext&, LayerDefinition&) {}

void read_dense(Section& section, const LayerContext& context, LayerDefinition& out_layer) {
  out_layer.units = section.require<std::int64_t>("units", "an integer of at least 1", from_one);
  if (const auto activation = section.find("activation")) read_activation(*activation, out_layer);
  read_weights(section, context.preset, out_layer);
}

void read_reshape(Section& section, const LayerContext&, LayerDefinition& out_layer) {
  const Value shape = section.require_value("shape", "a list of sizes without the batch axis; one may be -1");
  for (const Value& size : shape.items("a list of sizes")) out_layer.shape.push_back(size.as_integer({-1, 1 << 30}));
  constexpr std::size_t max_dims = 7;  // the batch axis is the eighth
  if (out_layer.shape.size() > max_dims) {
    shape.fail(fmt::format("has {} dimensions; expected at most {}", out_layer.shape.size(), max_dims));
  }
}

void read_dropout(Section& section, const LayerContext&, LayerDefinition& out_layer) {
  out_layer.dropout_p = section.require<double>("p", "a number in [0, 1)", {.lowest = 0, .highest = 1, .below_highest = true});
}

/// Here `name` is the activation; the builder names the layer.
void read_named_activation(Section& section, const LayerContext&, LayerDefinition& out_layer) {
  out_layer.activation = section.require_value("name", "the name of an activation").as_choice(train::activations());
  read_alpha(section, out_layer);
}

void read_embedding(Section& section, const LayerContext& context, LayerDefinition& out_layer) {
  out_layer.rows = section.require<std::int64_t>("rows", "an integer of at least 1", {1, std::int64_t{1} << 40});
  out_layer.dim = section.require<std::int64_t>("dim", "an integer of at least 1", {1, 1 << 30});
  // PyTorch's default is the normal distribution, Keras's is uniform within 0.05.
  if (context.preset == Preset::torch) {
    out_layer.embedding_initializer.kind = Initializer::Kind::normal;
    out_layer.embedding_initializer.stddev = 1;
  }
  if (const auto initializer = section.find("initializer"))
    out_layer.embedding_initializer = read_initializer(*initializer, context.preset);
}

void read_residual(Section& section, const LayerContext& context, LayerDefinition& out_layer) {
  const Value body = section.require_value("body", "a list of layers");
  out_layer.parts.push_back(read_layers(body, context.preset, context.label));
  out_layer.parts.emplace_back();
  if (const auto shortcut = section.find("shortcut"); shortcut && !shortcut->is_null()) {
    out_layer.parts.back() = read_layers(*shortcut, context.preset, context.label);
  }
  if (const auto activation = section.find("activation")) read_activation(*activation, out_layer);
}

void read_branches(Section& section, const LayerContext& context, LayerDefinition& out_layer) {
  const Value parts = section.require_value("parts", "a list of lists of layers");
  for (const Value& part : parts.items("a list of lists of layers")) {
    out_layer.parts.push_back(read_layers(part, context.preset, context.label));
  }
  if (out_layer.parts.empty()) parts.fail("is empty; expected at least one list of layers");
}

constexpr LayerReader readers[] = {
    {Kind::flatten, read_nothing},     {Kind::dense, read_dense},
    {Kind::dropout, read_dropout},     {Kind::activation, read_named_activation},
    {Kind::embedding, read_embedding}, {Kind::reshape, read_reshape},
    {Kind::residual, read_residual},   {Kind::branches, read_branches},
};

constexpr const char* repeat_key = "repeat";
constexpr std::int64_t max_repeated_layers = 50'000;

std::vector<std::string> layer_words() {
  std::vector<std::string> words;
  for (const LayerReader& reader : layer_readers()) words.emplace_back(name_of(reader.kind));
  for (const Choice<Activation>& choice : train::activations()) {
    if (choice.value != Activation::linear) words.emplace_back(choice.word);
  }
  words.emplace_back(repeat_key);
  return words;
}

/// One item of a list of layers: its type, and its keys as a map.
struct Item {
  Node word, keys;
};

Item item_of(const Value& item) {
  if (item.is_map() && item.node().entries.size() != 1) {
    item.fail(
        fmt::format("expected a map of one key, the layer's type, as in `dense: {{units: 10}}`, got one of {} keys; "
                    "put the keys of a layer into a map of their own",
                    item.node().entries.size()));
  }
  Item parts;
  parts.keys.kind = Node::Kind::map;
  parts.keys.mark = item.mark();
  if (item.is_map()) {
    const Node::Entry& entry = item.node().entries[0];
    parts.word.kind = Node::Kind::scalar;
    parts.word.text = entry.key;
    parts.word.mark = entry.mark;
    if (entry.value.kind == Node::Kind::list && entry.key == "branches") {
      parts.keys.entries.push_back({"parts", entry.mark, entry.value});  // the short form
    } else if (entry.value.kind != Node::Kind::null) {
      parts.keys = entry.value;
    }
  } else if (item.is_scalar()) {
    parts.word = item.node();
  } else {
    item.fail_expected("a layer: a name, or a map such as `dense: {units: 10}`");
  }
  return parts;
}

std::string joined_label(const std::string& outer, const std::string& inner) {
  return outer.empty() ? inner : outer + ": " + inner;
}

LayerDefinition read_layer(const Value& item, const Item& parts, const std::string& word, Preset preset, const std::string& outer) {
  LayerDefinition layer;
  const std::string label = joined_label(outer, item.key() + " " + word);
  layer.where = item.mark().str() + ": " + label;
  const LayerReader* reader = nullptr;
  for (const LayerReader& candidate : layer_readers()) {
    if (word == name_of(candidate.kind)) reader = &candidate;
  }
  layer.kind = reader != nullptr ? reader->kind : Kind::activation;

  Section section(parts.keys, label);
  if (reader != nullptr) {
    reader->read(section, {preset, label}, layer);
  } else {
    layer.activation = Value(parts.word, parts.word.mark, "", item.key()).as_choice(train::activations());
    read_alpha(section, layer);
  }
  if (layer.kind != Kind::activation || reader == nullptr) {
    if (const auto name = section.find("name")) {
      layer.name = name->as_text("a name");
      if (layer.name.empty() || layer.name.find('/') != std::string::npos) name->fail_expected("a name without '/'");
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

/// Adds the suffix _<copy> to the names of the second and later copies of a repeated layer.
void number_names(std::vector<LayerDefinition>& layers, std::int64_t copy) {
  for (LayerDefinition& layer : layers) {
    if (!layer.name.empty() && copy > 0) layer.name += fmt::format("_{}", copy);
  }
}

/// Expands `repeat: {times: 3, layers: [...]}`.
void append_repeated(const Value& item, const Item& parts, Preset preset, const std::string& outer,
                     std::vector<LayerDefinition>& out_layers) {
  const std::string label = joined_label(outer, item.key() + " " + repeat_key);
  Section section(parts.keys, label);
  const std::int64_t times = section.require<std::int64_t>("times", "an integer of at least 1", {1, 10000});
  const Value list = section.require_value("layers", "a list of layers");
  const std::vector<LayerDefinition> once = read_layers(list, preset, label);
  if (once.empty()) list.fail("is empty; expected at least one layer");
  section.finish();
  // Nested repeats multiply: a few lines could request more layers than memory holds.
  const auto count = static_cast<std::int64_t>(once.size()) * times;
  if (count > max_repeated_layers) {
    list.fail(fmt::format("repeats {} layers {} times, {} in total; expected at most {}", once.size(), times, count, max_repeated_layers));
  }
  for (std::int64_t copy = 0; copy < times; ++copy) {
    std::vector<LayerDefinition> layers = once;
    number_names(layers, copy);
    out_layers.insert(out_layers.end(), layers.begin(), layers.end());
  }
}

}  // namespace

std::span<const LayerReader> basic_layer_readers() {
  return readers;
}

const std::vector<LayerReader>& layer_readers() {
  static const std::vector<LayerReader> all = [] {
    std::vector<LayerReader> rows;
    for (const auto family : {basic_layer_readers(), image_layer_readers(), norm_layer_readers(), sequence_layer_readers()}) {
      rows.insert(rows.end(), family.begin(), family.end());
    }
    return rows;
  }();
  return all;
}

std::vector<LayerDefinition> read_layers(const Value& list, Preset preset, const std::string& label) {
  std::vector<LayerDefinition> layers;
  const std::vector<std::string> words = layer_words();
  for (const Value& item : list.items("a list of layers")) {
    const Item parts = item_of(item);
    const std::string word = words[Value(parts.word, parts.word.mark, label, item.key()).as_word(words)];
    if (word == repeat_key) {
      append_repeated(item, parts, preset, label, layers);
    } else {
      layers.push_back(read_layer(item, parts, word, preset, label));
    }
  }
  return layers;
}

Initializer read_initializer(const Value& value, Preset preset) {
  Initializer result;
  const auto choose = [&](const Value& name) {
    result.kind = name.as_choice(train::initializers());
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

void read_activation(const Value& value, LayerDefinition& out_layer) {
  if (!value.is_map()) {
    out_layer.activation = value.as_choice(train::activations());
    return;
  }
  Section section = value.section();
  out_layer.activation = section.require_value("name", "the name of an activation").as_choice(train::activations());
  read_alpha(section, out_layer);
  section.finish();
}

void read_weights(Section& section, Preset preset, LayerDefinition& out_layer) {
  const auto defaults = default_initializers(preset);
  out_layer.bias = section.get<bool>("bias", true);
  const auto kernel = section.find("kernel_initializer");
  const auto bias = section.find("bias_initializer");
  out_layer.kernel_initializer = kernel ? read_initializer(*kernel, preset) : defaults.first;
  out_layer.bias_initializer = bias ? read_initializer(*bias, preset) : defaults.second;
  if (std::optional<Section> regularizer = section.child("kernel_regularizer")) {
    out_layer.kernel_l1 = regularizer->get<double>("l1", 0, {.lowest = 0});
    out_layer.kernel_l2 = regularizer->get<double>("l2", 0, {.lowest = 0});
  }
  if (bias && !out_layer.bias) bias->fail("initialises the bias, but the layer has 'bias: false'");
}

}  // namespace tenon::config
