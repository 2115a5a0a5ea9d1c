// SPDX-License-Identifier: Apache-2.0
// Lists of layers in model.yaml.
#include <fmt/format.h>

#include <variant>

#include <tenon/device_name.h>
#include <tenon/error.h>

#include "layers/activation.h"
#include "layers/rule.h"

namespace tenon::layers {
namespace {

constexpr const char* repeat_key = "repeat";
constexpr std::int64_t max_repeated_layers = 50'000;

template <class... L>
std::vector<std::string> names_of_kinds(const std::variant<L...>&) {
  return {rule<L>().name...};
}

std::vector<std::string> layer_words() {
  std::vector<std::string> words = names_of_kinds(Any());
  for (const auto& choice : activation_words()) {
    if (choice.value != tenon::Activation::linear) words.emplace_back(choice.word);
  }
  words.emplace_back(repeat_key);
  return words;
}

/// Reads the keys of a layer of type L if that is what the word names.
template <class L>
bool read_if_named(const std::string& word, LayerKeys& keys, Any& out_kind) {
  const Rule<L> own = rule<L>();
  if (word != own.name) return false;
  L& layer = out_kind.emplace<L>();
  if (own.read != nullptr) own.read(keys, layer);
  return true;
}

/// False if the word names no kind of layer.
template <class... L>
bool read_kind(const std::string& word, LayerKeys& keys, std::variant<L...>& out_kind) {
  return (read_if_named<L>(word, keys, out_kind) || ...);
}

/// One item of a list of layers: its type, and its keys as a map.
struct Item {
  yaml::Node word, keys;
};

Item item_of(const yaml::Value& item) {
  if (item.is_map() && item.node().entries.size() != 1) {
    item.fail(
        fmt::format("expected a map of one key, the layer's type, as in `dense: {{units: 10}}`, got one of {} keys; "
                    "put the keys of a layer into a map of their own",
                    item.node().entries.size()));
  }
  Item parts;
  parts.keys.kind = yaml::Node::Kind::map;
  parts.keys.mark = item.mark();
  if (item.is_map()) {
    const yaml::Node::Entry& entry = item.node().entries[0];
    parts.word.kind = yaml::Node::Kind::scalar;
    parts.word.text = entry.key;
    parts.word.mark = entry.mark;
    if (entry.value.kind == yaml::Node::Kind::list && entry.key == rule<Branches>().name) {
      parts.keys.entries.push_back({"parts", entry.mark, entry.value});  // the short form
    } else if (entry.value.kind == yaml::Node::Kind::scalar && entry.key == rule<Onnx>().name) {
      parts.keys.entries.push_back({"file", entry.mark, entry.value});
    } else if (entry.value.kind != yaml::Node::Kind::null) {
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

/// Errors  `dense: 10`: the keys of a layer are no map.
void expect_map(const yaml::Node& keys, const std::string& label) {
  if (keys.kind == yaml::Node::Kind::map) return;
  yaml::Node at;
  at.kind = yaml::Node::Kind::map;
  at.mark = keys.mark;
  yaml::Section(at, label).fail("expected keys and values (a map), as in `dense: {units: 10}`, got " +
                                (keys.kind == yaml::Node::Kind::list ? "a list" : "'" + keys.text + "'"));
}

LayerDefinition read_layer(const yaml::Value& item, const Item& parts, const std::string& word, Preset preset, const std::string& label) {
  LayerDefinition layer;
  layer.where = item.mark().str() + ": " + label;
  expect_map(parts.keys, label);
  LayerKeys keys(parts.keys, preset, label);
  keys.attempt_keys([&] {
    if (!read_kind(word, keys, layer.kind)) {
      layer.kind = read_activation(keys, yaml::Value(parts.word, parts.word.mark, "", item.key()).as_choice(activation_words()));
    }
  });
  if (word != rule<Activation>().name) {  // whose `name` is the function
    if (const auto name = keys.find("name", "a name without '/'")) {
      keys.attempt([&] {
        layer.name = name->as_text("a name");
        if (layer.name.empty() || layer.name.find('/') != std::string::npos) name->fail_expected("a name without '/'");
      });
    }
  }
  if (const auto device = keys.find("device", "a device name", "the model's")) {
    keys.attempt([&] {
      layer.device = device->as_text("a device name");
      try {
        parse_device_name(layer.device);
      } catch (const Error& problem) {
        device->fail(problem.what());
      }
    });
  }
  keys.finish();
  return layer;
}

/// Adds the suffix _<copy> to the names of the second and later copies of a repeated layer.
void number_names(std::vector<LayerDefinition>& layers, std::int64_t copy) {
  for (LayerDefinition& layer : layers) {
    if (!layer.name.empty() && copy > 0) layer.name += fmt::format("_{}", copy);
  }
}

/// Expands `repeat: {times: 3, layers: [...]}`.
void append_repeated(const yaml::Value& item, const Item& parts, Preset preset, const std::string& outer,
                     std::vector<LayerDefinition>& out_layers) {
  const std::string label = joined_label(outer, item.key() + " " + repeat_key);
  LayerKeys keys(parts.keys, preset, label);
  const std::int64_t times = keys.require<std::int64_t>("times", "an integer of at least 1", {1, 10000});
  const yaml::Value list = keys.require_value("layers", "a list of layers");
  const std::vector<LayerDefinition> once = keys.layers(list);
  if (once.empty()) list.fail("is empty; expected at least one layer");
  keys.finish();
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

std::vector<LayerDefinition> read_layers(const yaml::Value& list, Preset preset, const std::string& label) {
  std::vector<LayerDefinition> layers;
  const std::vector<std::string> words = layer_words();
  yaml::Mistakes mistakes;
  for (const yaml::Value& item : list.items("a list of layers")) {
    mistakes.attempt([&] {
      const Item parts = item_of(item);
      const std::string word = words[yaml::Value(parts.word, parts.word.mark, label, item.key()).as_word(words)];
      if (word == repeat_key) {
        append_repeated(item, parts, preset, label, layers);
      } else {
        layers.push_back(read_layer(item, parts, word, preset, joined_label(label, item.key() + " " + word)));
      }
    });
  }
  mistakes.raise();
  return layers;
}

LayerDefinition read_onnx_model(const yaml::Value& value, Preset preset) {
  const std::string word = rule<Onnx>().name;
  yaml::Node entry;
  entry.kind = yaml::Node::Kind::map;
  entry.mark = value.mark();
  entry.entries.push_back({word, value.mark(), value.node()});
  return read_layer(value, item_of(yaml::Value(entry, value.mark(), "", word)), word, preset, word);
}

}  // namespace tenon::layers
