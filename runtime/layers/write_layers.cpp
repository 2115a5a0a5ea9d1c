// SPDX-License-Identifier: Apache-2.0
#include "layers/write_layers.h"

#include <fmt/core.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <utility>
#include <variant>

#include "layers/activation.h"
#include "layers/defaults.h"
#include "layers/rule.h"

namespace tenon::layers {
namespace {

Json json_of(const Initializer& initializer) {
  static const Initializer usual;
  Json map{{"name", name_of(initializer.kind)}};
  const auto set = [&](const char* key, double value, double usual_value) {
    if (value != usual_value) map[key] = value;
  };
  using Kind = Initializer::Kind;
  switch (initializer.kind) {
    case Kind::zeros:
    case Kind::ones:
      break;
    case Kind::constant:
      map["value"] = initializer.value;
      break;
    case Kind::uniform:
      set("low", initializer.low, usual.low);
      set("high", initializer.high, usual.high);
      break;
    case Kind::normal:
    case Kind::truncated_normal:
      set("mean", initializer.mean, usual.mean);
      set("stddev", initializer.stddev, usual.stddev);
      break;
    default:
      set("gain", initializer.gain, usual.gain);
      if (may_be_truncated(initializer.kind) && initializer.truncated) map["truncated"] = *initializer.truncated;
  }
  return map.size() == 1 ? map["name"] : map;
}

Json json_of(const std::optional<Initializer>& initializer) {
  return initializer ? json_of(*initializer) : Json();
}

Json json_of(const Activation& activation) {
  const char* const name = name_of(activation.function);
  return activation.alpha ? Json{{"name", name}, {"alpha", *activation.alpha}} : Json(name);
}

Json json_of(const Sizes& sizes) {
  return sizes.values.size() == 1 ? Json(sizes.values[0]) : sizes.values.empty() ? Json() : Json(sizes.values);
}

Json json_of(const Padding& padding, int dims) {
  if (padding.fits_stride) return "same";
  if (padding.sides.empty()) return nullptr;
  const auto [before, after] = padding.sides[0];
  if (padding.sides.size() == 1 && before == after) return before;
  const auto [last_before, last_after] = padding.sides.back();
  return dims == 1 ? Json{before, after} : Json{before, last_before, after, last_after};
}

template <class T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

/// The shortest number t with 1 - t == momentum: Keras's momentum of running statistics.
double keras_momentum(double momentum) {
  for (int digits = 1; digits <= std::numeric_limits<double>::max_digits10; ++digits) {
    const double candidate = std::strtod(fmt::format("{:.{}g}", 1 - momentum, digits).c_str(), nullptr);
    if (1 - candidate == momentum) return candidate;
  }
  return 1 - momentum;
}

/// The keys of one layer.
class Keys {
 public:
  Json map = Json::object();
  Preset preset = Preset::none;

  void add(const char* key, Json value) { map[key] = std::move(value); }
  void add(const Activation& activation) { add("activation", json_of(activation)); }
  void add(const Weights& weights) {
    add("bias", weights.bias);
    add("kernel_initializer", json_of(weights.kernel_initializer));
    if (weights.bias) add("bias_initializer", json_of(weights.bias_initializer));
    add("kernel_regularizer", Json{{"l1", weights.kernel_l1}, {"l2", weights.kernel_l2}});
  }
  void add(const Affine& affine) {
    add("scale", affine.scale);
    add("center", affine.center);
    if (affine.scale) add("gamma_initializer", json_of(affine.gamma_initializer));
    if (affine.center) add("beta_initializer", json_of(affine.beta_initializer));
  }
};

// One function for each kind of layer, with the keys that its reader knows: a kind without one does not compile.

void write(Keys&, const Flatten&) {}
void write(Keys&, const GLU&) {}
void write(Keys&, const GlobalAveragePooling&) {}
void write(Keys&, const GlobalMaxPooling&) {}
void write(Keys&, const MeanOverTime&) {}

void write(Keys& keys, const Reshape& layer) {
  keys.add("shape", layer.shape);
}
void write(Keys& keys, const Permute& layer) {
  keys.add("order", layer.order);
}
void write(Keys& keys, const Dropout& layer) {
  keys.add("p", layer.p);
}
void write(Keys& keys, const PadChannels& layer) {
  keys.add("channels", layer.channels);
}
void write(Keys& keys, const SinusoidalPosition& layer) {
  keys.add("wavelength", layer.wavelength);
}

void write(Keys& keys, const Activation& layer) {
  keys.add("alpha", json_of(layer.alpha));
}

void write(Keys& keys, const PReLU& layer) {
  keys.add("start", layer.start);
  keys.add("shared", layer.shared);
}

void write(Keys& keys, const Dense& layer) {
  keys.add("units", layer.units);
  keys.add(layer.activation);
  keys.add(layer.weights);
  keys.add("tied", layer.tied);
}

void write(Keys& keys, const Embedding& layer) {
  keys.add("rows", layer.rows);
  keys.add("dim", layer.dim);
  keys.add("initializer", json_of(layer.initializer));
  keys.add("padding_index", json_of(layer.padding_index));
}

void write(Keys& keys, const PositionEmbedding& layer) {
  keys.add("length", layer.length);
  keys.add("initializer", json_of(layer.initializer));
}

void write(Keys& keys, const Residual& layer) {
  keys.add("body", write_layers(layer.body, keys.preset));
  if (!layer.shortcut.empty()) keys.add("shortcut", write_layers(layer.shortcut, keys.preset));
  keys.add(layer.activation);
}

void write(Keys& keys, const Branches& layer) {
  Json parts = Json::array();
  for (const auto& part : layer.parts) parts.push_back(write_layers(part, keys.preset));
  keys.add("parts", parts);
}

template <class L>
void write_convolution(Keys& keys, const L& layer, int dims) {
  if constexpr (requires { layer.filters; }) keys.add("filters", layer.filters);
  if constexpr (requires { layer.multiplier; }) keys.add("multiplier", layer.multiplier);
  keys.add("kernel_size", json_of(layer.kernel_size));
  keys.add("strides", json_of(layer.strides));
  keys.add("padding", json_of(layer.padding, dims));
  keys.add("dilation", json_of(layer.dilation));
  if constexpr (requires { layer.groups; }) keys.add("groups", layer.groups);
  if constexpr (requires { layer.output_padding; }) keys.add("output_padding", json_of(layer.output_padding));
  keys.add(layer.activation);
  keys.add(layer.weights);
}
template <int dims>
void write(Keys& keys, const Conv<dims>& layer) {
  write_convolution(keys, layer, dims);
}
void write(Keys& keys, const DepthwiseConv2D& layer) {
  write_convolution(keys, layer, 2);
}
void write(Keys& keys, const Conv2DTranspose& layer) {
  write_convolution(keys, layer, 2);
}

template <template <int> class Pooling, int dims>
requires requires(Pooling<dims> layer) {
  layer.pool_size;
}
void write(Keys& keys, const Pooling<dims>& layer) {
  keys.add("pool_size", json_of(layer.pool_size));
  keys.add("strides", json_of(layer.strides));
  keys.add("padding", json_of(layer.padding, dims));
  keys.add("ceil_mode", layer.ceil_mode);
  if constexpr (requires { layer.dilation; }) keys.add("dilation", json_of(layer.dilation));
  if constexpr (requires { layer.count_include_pad; }) keys.add("count_include_pad", layer.count_include_pad);
  if constexpr (requires { layer.divisor; }) keys.add("divisor", json_of(layer.divisor));
  if constexpr (requires { layer.p; }) keys.add("p", layer.p);
}

void write(Keys& keys, const AdaptiveAveragePooling& layer) {
  keys.add("size", json_of(layer.size));
}
void write(Keys& keys, const AdaptiveMaxPooling& layer) {
  keys.add("size", json_of(layer.size));
}

void write(Keys& keys, const UpSampling2D& layer) {
  keys.add("size", json_of(layer.size));
  keys.add("interpolation", layer.bilinear ? "bilinear" : "nearest");
}

void write(Keys& keys, const BatchNorm& layer) {
  // Two fields have no key: they follow from the key preset.
  const bool as_keras = layer.biased.value_or(false);
  if (layer.channels_last.value_or(false) != as_keras) {
    throw Error(Status::unsupported,
                "batch_norm: expected `biased` and `channels_last` both as in Keras or both as in PyTorch, which model.yaml can say");
  }
  keys.add("preset", as_keras ? "keras" : "tenon");
  if (layer.momentum) keys.add("momentum", as_keras ? keras_momentum(*layer.momentum) : *layer.momentum);
  keys.add("epsilon", json_of(layer.epsilon));
  keys.add("axis", json_of(layer.axis));
  keys.add("mode", layer.per_activation ? "per_activation" : "spatial");
  keys.add(layer.affine);
}

void write(Keys& keys, const LayerNorm& layer) {
  keys.add("axis", layer.axis);
  keys.add("epsilon", layer.epsilon);
  keys.add(layer.affine);
}
void write(Keys& keys, const GroupNorm& layer) {
  keys.add("groups", layer.groups);
  keys.add("epsilon", layer.epsilon);
  keys.add(layer.affine);
}
void write(Keys& keys, const InstanceNorm& layer) {
  keys.add("epsilon", layer.epsilon);
  keys.add(layer.affine);
}

void write(Keys& keys, const RMSNorm& layer) {
  keys.add("axis", layer.axis);
  keys.add("epsilon", layer.epsilon);
  keys.add("scale", layer.scale);
  if (layer.scale) keys.add("gamma_initializer", json_of(layer.gamma_initializer));
}

void write(Keys& keys, const LRN& layer) {
  keys.add("size", layer.size);
  keys.add("alpha", layer.alpha);
  keys.add("beta", layer.beta);
  keys.add("bias", layer.bias);
}

void write(Keys& keys, const LSTMCell& cell) {
  keys.add("forget_bias", json_of(cell.forget_bias));
}
void write(Keys& keys, const GRUCell& cell) {
  keys.add("linear_before_reset", cell.linear_before_reset);
}
void write(Keys& keys, const SimpleRNNCell& cell) {
  keys.add("activation", cell.relu ? "relu" : "tanh");
}
template <class Cell>
void write(Keys& keys, const Recurrent<Cell>& layer) {
  keys.add("units", layer.units);
  keys.add("num_layers", layer.num_layers);
  keys.add("bidirectional", layer.bidirectional);
  keys.add("dropout", layer.dropout);
  keys.add("return_sequences", layer.return_sequences);
  write(keys, layer.cell);
  keys.add(layer.weights);
  keys.add("recurrent_initializer", json_of(layer.recurrent_initializer));
}

void write(Keys& keys, const Attention& layer) {
  keys.add("heads", layer.heads);
  keys.add("causal", layer.causal);
  keys.add("kv_heads", layer.kv_heads == 0 ? Json() : Json(layer.kv_heads));
  keys.add("window", layer.window == 0 ? Json() : Json(layer.window));
  keys.add("rotary", layer.rotary);
  keys.add("rotary_base", layer.rotary_base);
  keys.add("dropout", layer.dropout);
  keys.add("memory", layer.memory);
  keys.add(layer.weights);
}

void write(Keys& keys, const VendorOp& layer) {
  Json attributes = Json::object();
  for (const auto& [name, value] : layer.attributes) {
    std::visit([&, &key = name](const auto& given) { attributes[key] = given; }, value);
  }
  keys.add("op", layer.op);
  keys.add("version", layer.version);
  keys.add("attributes", attributes);
}

void write(Keys& keys, const Onnx& layer) {
  keys.add("file", layer.file);
  keys.add("output", layer.output);
  keys.add("outputs", layer.outputs);
  keys.add("input", layer.input);
  keys.add("constants", layer.constants.empty() ? Json::object() : Json(layer.constants));
  keys.add("frozen", layer.frozen);
}

/// A layer of that kind as its reader makes it if no key is given.
template <class L>
L default_layer(Preset preset) {
  ModelDefinition model;
  model.preset = preset;
  model.layers.emplace_back(L{});
  set_defaults(model);
  return std::get<L>(model.layers[0].kind);
}

/// Keys that a reader requires even if their value is that of a new struct.
bool is_required(const std::string& word, const std::string& key) {
  return (word == rule<GroupNorm>().name && key == "groups") || (word == rule<Residual>().name && key == "body") ||
         (word == rule<Branches>().name && key == "parts") || (word == rule<Dropout>().name && key == "p") ||
         (word == rule<Reshape>().name && key == "shape");
}

template <class L>
Json keys_of(const L& layer, Preset preset) {
  const std::string word = rule<L>().name;
  Keys keys, usual;
  keys.preset = usual.preset = preset;
  write(keys, layer);
  write(usual, default_layer<L>(preset));
  if constexpr (std::is_same_v<L, BatchNorm>) {
    // The defaults of momentum and epsilon are those of the key preset, which is given if it is not the model's.
    if (keys.map["preset"] != usual.map["preset"]) usual.map.erase("momentum"), usual.map.erase("epsilon");
  }
  Json kept = Json::object();
  for (const auto& [key, value] : keys.map.items()) {
    const bool is_usual = value.is_null() || (usual.map.contains(key) && usual.map[key] == value);
    if (!is_usual || is_required(word, key)) kept[key] = value;
  }
  return kept;
}

Json write_layer(const LayerDefinition& layer, Preset preset) {
  std::string word = layer.kind_name();
  Json keys = std::visit([&](const auto& kind) { return keys_of(kind, preset); }, layer.kind);
  if (const auto* activation = std::get_if<Activation>(&layer.kind)) {
    if (activation->function == tenon::Activation::linear) {
      if (!layer.name.empty()) layer.fail("expected no name for a linear activation, which model.yaml cannot give it");
      keys["name"] = "linear";
    } else {
      word = name_of(activation->function);
    }
  }
  if (!layer.name.empty()) keys["name"] = layer.name;
  if (!layer.device.empty()) keys["device"] = layer.device;
  return keys.empty() ? Json(word) : Json{{word, keys}};
}

}  // namespace

Json write_layers(const std::vector<LayerDefinition>& layers, Preset preset) {
  Json list = Json::array();
  for (const LayerDefinition& layer : layers) list.push_back(write_layer(layer, preset));
  return list;
}

}  // namespace tenon::layers
