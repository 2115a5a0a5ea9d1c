// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "config/model_yaml.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::config;
using namespace tenon::test;

namespace {
std::string model_error(const std::string& text) {
  return message_of([&] { model_from_text(text, "model.yaml"); });
}

/// "flatten, dense, ", as messages list them.
template <class... L>
std::string names_of_kinds(const std::variant<L...>&) {
  return (std::string() + ... + (LayerDefinition(L()).kind_name() + std::string(", ")));
}

/// The first layer of a model.
template <class L>
L first_layer(const std::string& text) {
  return std::get<L>(model_from_text(text).layers.at(0).kind);
}
}  // namespace

TEST_CASE("model: every key of a layer reaches its field") {
  const ModelDefinition model = model_from_text(R"(
name: net
input: {shape: [28, 28], dtype: uint8}
dtype: float64
layers:
  - flatten
  - dense: {units: 128, activation: relu, bias: false, kernel_initializer: he_normal, name: hidden, device: gpu:1}
  - dropout: {p: 0.25}
  - dense:
      units: 10
      kernel_initializer: {name: uniform, low: -0.1, high: 0.1}
      bias_initializer: {name: constant, value: 0.5}
  - activation: {name: log_softmax}
  - tanh
  - sigmoid: {name: squash}
)",
                                                "model.yaml");
  CHECK(model.name == "net");
  CHECK(model.input_shape == std::vector<std::int64_t>{28, 28});
  CHECK(model.input_dtype == DType::u8);
  CHECK(model.dtype == DType::f64);
  REQUIRE(model.layers.size() == 7);
  CHECK(std::holds_alternative<layers::Flatten>(model.layers[0].kind));
  CHECK(model.layers[0].where == "model.yaml:6:5: layers[0] flatten");

  const auto hidden = std::get<layers::Dense>(model.layers[1].kind);
  CHECK(hidden.units == 128);
  CHECK(hidden.activation == Activation::relu);
  CHECK_FALSE(hidden.weights.bias);
  CHECK(hidden.weights.kernel_initializer->kind == Initializer::Kind::he_normal);
  CHECK(model.layers[1].name == "hidden");
  CHECK(model.layers[1].device == "gpu:1");

  CHECK(std::get<layers::Dropout>(model.layers[2].kind).p == 0.25);
  const auto last = std::get<layers::Dense>(model.layers[3].kind);
  CHECK(last.activation == Activation::linear);
  CHECK(last.weights.bias);
  CHECK(last.weights.kernel_initializer->kind == Initializer::Kind::uniform);
  CHECK(last.weights.kernel_initializer->low == -0.1);
  CHECK(last.weights.kernel_initializer->high == 0.1);
  CHECK(last.weights.bias_initializer->kind == Initializer::Kind::constant);
  CHECK(last.weights.bias_initializer->value == 0.5);
  CHECK(std::get<layers::Activation>(model.layers[4].kind) == Activation::log_softmax);
  CHECK(std::get<layers::Activation>(model.layers[5].kind) == Activation::tanh);
  CHECK(std::get<layers::Activation>(model.layers[6].kind) == Activation::sigmoid);
  CHECK(model.layers[6].name == "squash");
  CHECK_ERROR("model.yaml:7:5: layers[1] dense: expected rank 2, got rank 3", model.layers[1].fail("expected rank 2, got rank 3"));
}

TEST_CASE("model: by default a model takes any f32 input and has the initializers of Keras") {
  const ModelDefinition model = model_from_text("layers: [{dense: {units: 3}}]");
  CHECK_FALSE(model.input_shape.has_value());
  CHECK(model.dtype == DType::f32);
  const layers::Weights& weights = std::get<layers::Dense>(model.layers[0].kind).weights;
  CHECK(weights.kernel_initializer->kind == Initializer::Kind::glorot_uniform);
  CHECK(weights.bias_initializer->kind == Initializer::Kind::zeros);
  CHECK(weights.kernel_initializer->gain == 1.0);
  CHECK(model_from_text("{input: {shape: []}, layers: [relu]}").input_shape == std::vector<std::int64_t>{});
}

TEST_CASE("model: a preset changes the initializers, and a layer's own keys win") {
  const auto start = [](const std::string& preset, const std::string& more) {
    const auto weights = first_layer<layers::Dense>("preset: " + preset + "\nlayers: [{dense: {units: 3" + more + "}}]").weights;
    return std::string(name_of(weights.kernel_initializer->kind)) + " " + name_of(weights.bias_initializer->kind);
  };
  CHECK(start("none", "") == "glorot_uniform zeros");
  CHECK(start("keras", "") == "glorot_uniform zeros");
  CHECK(start("torch", "") == "fan_in_uniform fan_in_uniform");
  CHECK(start("gorgonia", "") == "glorot_normal zeros");
  CHECK(start("torch", ", bias_initializer: ones") == "fan_in_uniform ones");
}

TEST_CASE("model: an error has file, line, layer and key") {
  struct Row {
    const char* text;
    std::string message;
  };
  const std::string all_words =
      names_of_kinds(layers::Any()) +
      "relu, sigmoid, tanh, softmax, log_softmax, relu6, leaky_relu, elu, softplus, mish, gelu, silu, gelu_tanh, selu, hard_swish, repeat";
  const Row rows[] = {
      {"layers:\n  - flatten\n  - relu\n  - dense: {unit: 3}\n",
       "model.yaml:4:13: layers[2] dense: unknown key 'unit'; did you mean 'units'?"},
      {"layers:\n  - dense:\n      units: 3\n      bais: true\n",
       "model.yaml:4:7: layers[0] dense: unknown key 'bais'; did you mean 'bias'?"},
      {"layers: [{dense: {units: 0}}]", "model.yaml:1:26: layers[0] dense: key 'units': expected an integer in [1, 1073741824], got '0'"},
      {"layers: [{dense: {units: many}}]",
       "model.yaml:1:26: layers[0] dense: key 'units': expected an integer in [1, 1073741824], got 'many'"},
      {"layers: [{dense: {}}]", "model.yaml:1:18: layers[0] dense: key 'units' is missing; expected an integer of at least 1"},
      {"layers:\n  - dense:\n", "model.yaml:2:5: layers[0] dense: key 'units' is missing; expected an integer of at least 1"},
      {"layers: [dense]", "model.yaml:1:10: layers[0] dense: key 'units' is missing; expected an integer of at least 1"},
      {"layers: [{dense: 128}]",
       "model.yaml:1:18: layers[0] dense: expected keys and values (a map), as in `dense: {units: 10}`, got '128'"},
      {"layers: [{dense: {units: 3, activation: rellu}}]",
       "model.yaml:1:41: layers[0] dense: key 'activation': expected one of linear, relu, sigmoid, tanh, softmax, log_softmax, relu6, "
       "leaky_relu, elu, softplus, mish, gelu, silu, gelu_tanh, selu, hard_swish, got 'rellu'; "
       "did you "
       "mean 'relu'?"},
      {"layers: [{dense: {units: 3, bias: false, bias_initializer: ones}}]",
       "model.yaml:1:60: layers[0] dense: key 'bias_initializer': initialises the bias, but the layer has 'bias: false'"},
      {"layers: [{dense: {units: 3, kernel_initializer: glorot}}]",
       "model.yaml:1:49: layers[0] dense: key 'kernel_initializer': expected one of zeros, ones, constant, uniform, normal, "
       "glorot_uniform, "
       "glorot_normal, he_uniform, he_normal, lecun_uniform, lecun_normal, fan_in_uniform, truncated_normal, orthogonal, identity, got "
       "'glorot'; did you mean 'glorot_uniform'?"},
      {"layers: [{dense: {units: 3, kernel_initializer: {name: uniform, low: 2, high: 1}}}]",
       "model.yaml:1:49: layers[0] dense: kernel_initializer: low 2 is not below high 1"},
      {"layers: [{dense: {units: 3, kernel_initializer: {name: zeros, gain: 1}}}]",
       "model.yaml:1:63: layers[0] dense: kernel_initializer: unknown key 'gain'; known keys: name"},
      {"layers: [{dense: {units: 3, kernel_initializer: {name: he_normal, gain: 0}}}]",
       "model.yaml:1:73: layers[0] dense: kernel_initializer: key 'gain': expected a number above 0, got '0'"},
      {"layers: [{dropout: {p: 1}}]", "model.yaml:1:24: layers[0] dropout: key 'p': expected a number in [0, 1), got '1'"},
      {"layers: [dropout]", "model.yaml:1:10: layers[0] dropout: key 'p' is missing; expected a number in [0, 1)"},
      {"layers: [{activation: {name: soft_max}}]",
       "model.yaml:1:30: layers[0] activation: key 'name': expected one of linear, relu, sigmoid, tanh, softmax, log_softmax, relu6, "
       "leaky_relu, elu, softplus, mish, gelu, silu, gelu_tanh, selu, hard_swish, got "
       "'soft_max'; did "
       "you mean 'softmax'?"},
      {"layers: [{flatten: {units: 3}}]", "model.yaml:1:21: layers[0] flatten: unknown key 'units'; known keys: name, device"},
      {"layers: [{dense: {units: 3, device: 'gpu:'}}]",
       "model.yaml:1:37: layers[0] dense: key 'device': device 'gpu:': the index after ':' is missing; expected auto, cpu, gpu, cpu:N, "
       "gpu:N, "
       "<backend>:N, <backend>:uuid=..., <backend>:pci=... or a TensorFlow name such as /device:GPU:0"},
      {"layers: [dens]", "model.yaml:1:10: key 'layers[0]': expected one of " + all_words + ", got 'dens'; did you mean 'dense'?"},
      {"layers: [{desne: {units: 3}}]",
       "model.yaml:1:11: key 'layers[0]': expected one of " + all_words + ", got 'desne'; did you mean 'dense'?"},
      {"layers:\n  - dense:\n    units: 3\n",
       "model.yaml:2:5: key 'layers[0]': expected a map of one key, the layer's type, as in `dense: {units: 10}`, got one of 2 keys; put "
       "the keys of a layer into a map of their own"},
      {"layers: [[dense]]",
       "model.yaml:1:10: key 'layers[0]': expected a layer: a name, or a map such as `dense: {units: 10}`, got a list"},
      {"layers: []", "model.yaml:1:9: key 'layers': is empty; expected at least one layer"},
      {"layers: {dense: {units: 3}}", "model.yaml:1:9: key 'layers': expected a list of layers, got a map"},
      {"name: x\n", "model.yaml:1:1: key 'layers' is missing; expected a list of layers"},
      {"layer: [relu]\n", "model.yaml:1:1: unknown key 'layer'; did you mean 'layers'?"},
      {"layers: [{dense: {units: 1, name: a}}, {dense: {units: 1, name: a}}]",
       "model.yaml:1:40: layers[1] dense: the name 'a' is already used by layers[0]"},
      {"{input: {shape: [28, 0]}, layers: [relu]}",
       "model.yaml:1:22: key 'input.shape[1]': expected an integer in [1, 1073741824], got '0'"},
      {"{input: {shape: 28}, layers: [relu]}",
       "model.yaml:1:17: key 'input.shape': expected a list of integers without the batch axis, got '28'"},
      {"{input: {shape: [1, 1, 1, 1, 1, 1, 1, 1]}, layers: [relu]}",
       "model.yaml:1:17: key 'input.shape': has 8 dimensions; expected at most 7"},
      {"{input: {shpe: [28]}, layers: [relu]}", "model.yaml:1:10: unknown key 'input.shpe'; did you mean 'input.shape'?"},
      {"{dtype: float16, layers: [relu]}",
       "model.yaml:1:9: key 'dtype': expected one of float32, float64, f32, f64, got 'float16'; did you mean 'float32'?"},
      {"{preset: pytorch, layers: [relu]}",
       "model.yaml:1:10: key 'preset': expected one of none, keras, torch, gorgonia, got 'pytorch'; did you mean 'torch'?"},
      {"- dense\n", "model.yaml:1:1: expected keys and values (a map), got a list"},
      {"", "model.yaml:1:1: the file is empty; expected keys and values"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(model_error(row.text) == row.message);
  }
}

TEST_CASE("model: further activations, with alpha where they have one") {
  const ModelDefinition model = model_from_text(R"(
layers:
  - dense: {units: 3, activation: {name: leaky_relu, alpha: 0.2}}
  - dense: {units: 3, activation: gelu}
  - elu: {alpha: 0.5}
  - activation: {name: leaky_relu, alpha: 0.1}
  - relu6
  - softplus
  - mish
  - silu
  - leaky_relu
)");
  const std::vector<LayerDefinition>& list = model.layers;
  CHECK(std::get<layers::Dense>(list[0].kind).activation == layers::Activation{Activation::leaky_relu, 0.2});
  CHECK(std::get<layers::Dense>(list[1].kind).activation == Activation::gelu);
  const layers::Activation expected[] = {
      {Activation::elu, 0.5}, {Activation::leaky_relu, 0.1}, Activation::relu6, Activation::softplus, Activation::mish,
      Activation::silu,       Activation::leaky_relu};
  for (std::size_t i = 0; i < std::size(expected); ++i) CHECK(std::get<layers::Activation>(list[i + 2].kind) == expected[i]);
  CHECK(model_error("layers: [{gelu: {alpha: 1}}]") == "model.yaml:1:18: layers[0] gelu: unknown key 'alpha'; known keys: name, device");
}

TEST_CASE("model: embedding takes rows and dim") {
  const LayerDefinition layer = model_from_text("layers: [{embedding: {rows: 100, dim: 8, name: words}}]").layers[0];
  CHECK(layer.name == "words");
  const auto embedding = std::get<layers::Embedding>(layer.kind);
  CHECK(embedding.rows == 100);
  CHECK(embedding.dim == 8);
  CHECK(embedding.initializer->kind == Initializer::Kind::uniform);
  const auto torch = first_layer<layers::Embedding>("preset: torch\nlayers: [{embedding: {rows: 100, dim: 8}}]");
  CHECK(torch.initializer->kind == Initializer::Kind::normal);
  CHECK(torch.initializer->stddev == 1);
  CHECK(model_error("layers: [{embedding: {rows: 100}}]") ==
        "model.yaml:1:22: layers[0] embedding: key 'dim' is missing; expected an integer of at least 1");
}

TEST_CASE("model: truncated, orthogonal and identity initializers") {
  const auto start = [](const std::string& preset, const std::string& text) {
    return first_layer<layers::Dense>("preset: " + preset + "\nlayers: [{dense: {units: 3, kernel_initializer: " + text + "}}]")
        .weights.kernel_initializer.value();
  };
  CHECK(start("none", "{name: truncated_normal, stddev: 0.1}").stddev == 0.1);
  CHECK(start("none", "{name: orthogonal, gain: 2}").gain == 2);
  CHECK(start("none", "identity").kind == Initializer::Kind::identity);
  CHECK(start("keras", "glorot_normal").truncated == true);
  CHECK(start("keras", "{name: he_normal}").truncated == true);
  CHECK(start("keras", "{name: he_normal, truncated: false}").truncated == false);
  CHECK(start("keras", "glorot_uniform").truncated == false);
  CHECK(start("none", "glorot_normal").truncated == false);
  CHECK(start("none", "{name: lecun_normal, truncated: true}").truncated == true);
}

TEST_CASE("model: overrides are applied before the model is read") {
  const std::string text = "layers:\n  - flatten\n  - dense: {units: 3}\n";
  const ModelDefinition model = model_from_text(text, "m", {{"layers.1.dense.units", "64"}, {"dtype", "float64"}});
  CHECK(std::get<layers::Dense>(model.layers[1].kind).units == 64);
  CHECK(model.dtype == DType::f64);
  CHECK_ERROR("--set dtype=f16: key 'dtype': expected one of float32, float64, f32, f64, got 'f16'",
              model_from_text(text, "m", {{"dtype", "f16"}}));
  CHECK_ERROR("--set layers.2.dense.units=1: key 'layers.2.dense.units': index '2' is out of range for a list of 2",
              model_from_text(text, "m", {{"layers.2.dense.units", "1"}}));
}
