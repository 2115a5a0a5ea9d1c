// SPDX-License-Identifier: Apache-2.0
// Models and the arguments of compile and fit as text.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <string>

#include <nlohmann/json.hpp>

#include <tenon/definition_text.h>

#include "layers/keys.h"
#include "rooted.h"
#include "testing.h"
#include "yaml/reader.h"
#include "yaml/write.h"

using namespace tenon;
using namespace tenon::test;

namespace {

// Every kind of layer with every key, none at its default.
const char* const every_key = R"(
name: all of it
input: {shape: [4, 8, 8], dtype: u8}
dtype: f64
conformance: {batch_size: 3, width: 0.5, set: {"input.shape": [1, 2, 3], name: "x, y"}}
layers:
  - flatten
  - reshape: {shape: [-1, 4], name: re, device: "cpu:1"}
  - permute: {order: [2, 1]}
  - dense: {units: 12, activation: {name: leaky_relu, alpha: 0.2}, bias: true, kernel_initializer: {name: normal, mean: 0.1, stddev: 0.3}, bias_initializer: {name: constant, value: 0.5}, kernel_regularizer: {l1: 0.001, l2: 0.25}, tied: table}
  - dense: {units: 3, bias: false, kernel_initializer: {name: he_normal, gain: 2, truncated: true}}
  - dropout: {p: 0.25}
  - embedding: {rows: 100, dim: 8, initializer: {name: uniform, low: -1, high: 2}, padding_index: 0, name: table}
  - conv1d: {filters: 2, kernel_size: 3, strides: 2, padding: [1, 2], dilation: 2, groups: 2, activation: relu, bias: false, kernel_initializer: ones, kernel_regularizer: {l1: 0, l2: 1}}
  - conv2d: {filters: 2, kernel_size: [3, 5], strides: [1, 2], padding: [1, 2, 3, 4], dilation: [2, 1], groups: 2, activation: tanh, bias_initializer: ones, kernel_initializer: {name: identity, gain: 3}, kernel_regularizer: {l1: 1, l2: 0}}
  - depthwise_conv2d: {multiplier: 2, kernel_size: 3, strides: 2, padding: same, dilation: 2, activation: elu, bias: false, kernel_initializer: zeros, kernel_regularizer: {l1: 1, l2: 1}}
  - conv2d_transpose: {filters: 2, kernel_size: 3, strides: 2, padding: 1, output_padding: 1, dilation: 2, groups: 2, activation: mish, bias_initializer: {name: truncated_normal, stddev: 1}, kernel_initializer: orthogonal, kernel_regularizer: {l1: 2, l2: 1}}
  - max_pool1d: {pool_size: 2, strides: 1, padding: 1, ceil_mode: true, dilation: 2}
  - max_pool2d: {pool_size: [2, 3], strides: 1, padding: [1, 0], ceil_mode: true, dilation: 2}
  - average_pool1d: {pool_size: 2, strides: 1, padding: 1, ceil_mode: true, count_include_pad: false, divisor: 3}
  - average_pool2d: {pool_size: 2, strides: 1, padding: 1, ceil_mode: true, count_include_pad: false, divisor: 3.5}
  - lp_pool1d: {pool_size: 2, p: 3, strides: 1, padding: 1, ceil_mode: true}
  - lp_pool2d: {pool_size: 2, p: 1, strides: 1, padding: 1, ceil_mode: true}
  - global_average_pool
  - global_max_pool
  - adaptive_average_pool: {size: [3, 4]}
  - adaptive_max_pool: {size: 5}
  - upsample2d: {size: [3, 2], interpolation: bilinear}
  - pad_channels: {channels: 9}
  - batch_norm: {preset: keras, momentum: 0.75, epsilon: 0.01, axis: -1, scale: false, center: true, beta_initializer: ones}
  - batch_norm: {momentum: 0.25, epsilon: 0.02, mode: per_activation, scale: true, gamma_initializer: {name: constant, value: 2}, center: false}
  - layer_norm: {axis: -2, epsilon: 0.1, scale: true, gamma_initializer: {name: normal, stddev: 0.1}, center: true, beta_initializer: ones}
  - layer_norm: {scale: false, center: false}
  - rms_norm: {axis: -2, epsilon: 0.1, gamma_initializer: zeros}
  - rms_norm: {scale: false}
  - group_norm: {groups: 1, epsilon: 0.1, scale: false, center: false}
  - group_norm: {groups: 4, gamma_initializer: zeros, beta_initializer: ones}
  - instance_norm: {epsilon: 0.1, scale: false, center: false}
  - instance_norm: {gamma_initializer: zeros, beta_initializer: ones}
  - lrn: {size: 3, alpha: 0.1, beta: 0.5, bias: 2}
  - lstm: {units: 4, num_layers: 2, bidirectional: true, dropout: 0.5, return_sequences: true, forget_bias: 1, recurrent_initializer: glorot_uniform, bias: false, kernel_initializer: lecun_normal, kernel_regularizer: {l1: 0, l2: 0.5}}
  - gru: {units: 4, num_layers: 2, bidirectional: true, dropout: 0.5, return_sequences: true, linear_before_reset: false, recurrent_initializer: zeros, bias_initializer: ones, kernel_initializer: lecun_uniform, kernel_regularizer: {l1: 1, l2: 0.5}}
  - rnn: {units: 4, num_layers: 2, bidirectional: true, dropout: 0.5, return_sequences: true, activation: relu, recurrent_initializer: ones, bias: false, kernel_initializer: fan_in_uniform, kernel_regularizer: {l1: 1, l2: 1}}
  - attention: {heads: 2, causal: true, kv_heads: 1, window: 5, rotary: true, rotary_base: 500, dropout: 0.1, memory: re, bias: false, kernel_initializer: he_uniform, kernel_regularizer: {l1: 1, l2: 2}}
  - position_embedding: {length: 7, initializer: {name: glorot_normal, gain: 0.5}}
  - sinusoidal_position: {wavelength: 100}
  - mean_over_time
  - vendor_op: {op: com.example.SoftClip, version: 3, attributes: {limit: 3.0, count: 2, mode: "7", axes: [1, 2], scales: [1.5, 2.0]}}
  - residual: {body: [{dense: {units: 3}}, relu], shortcut: [{dropout: {p: 0}}], activation: silu}
  - residual: {body: []}
  - branches: [[relu, flatten], [{branches: [[glu], []]}]]
  - leaky_relu: {alpha: 0.3, name: named}
  - softmax
  - activation: {name: linear}
  - prelu: {start: 0.5, shared: true}
  - glu
  - onnx: {file: /tmp/some net.onnx, output: "y:0", input: x, constants: {mask: 1, scale: 0.5}, frozen: ["a*", "*/b"]}
)";

const char* const preset_text = R"(
preset: keras
layers:
  - dense: {units: 3}
  - batch_norm
  - batch_norm: {preset: torch}
  - batch_norm: {momentum: 0.1}
  - lstm: {units: 4, forget_bias: 0}
  - dense: {units: 3, kernel_initializer: {name: glorot_normal, truncated: false}}
)";

/// A map's keys, and those of the maps in it.
void collect(const yaml::Node& node, std::multiset<std::string>& out_keys) {
  for (const yaml::Node& item : node.items) collect(item, out_keys);
  for (const auto& entry : node.entries) {
    out_keys.insert(entry.key);
    collect(entry.value, out_keys);
  }
}
std::multiset<std::string> keys_of(const std::string& text) {
  std::multiset<std::string> keys;
  collect(yaml::parse(text, std::make_shared<yaml::Source>()), keys);
  return keys;
}

}  // namespace

TEST_CASE("definition text: a model with every key of every layer is written with these keys and reads back the same") {
  const ModelDefinition model = model_from_yaml(every_key);
  const std::string text = to_yaml(model);
  INFO(text);
  const ModelDefinition again = model_from_yaml(text);
  CHECK(to_yaml(again) == text);
  CHECK(again.name == "all of it");
  CHECK(*again.input_shape == std::vector<std::int64_t>{4, 8, 8});
  CHECK(again.input_dtype == DType::u8);
  CHECK(again.dtype == DType::f64);
  REQUIRE(again.conformance);
  CHECK(again.conformance->set == model.conformance->set);
  CHECK(again.layers.size() == model.layers.size());
  CHECK(std::get<layers::BatchNorm>(again.layers[23].kind).momentum == 0.25);
  CHECK(*std::get<layers::BatchNorm>(again.layers[23].kind).channels_last);
  CHECK(std::get<layers::VendorOp>(again.layers[41].kind).attributes == std::get<layers::VendorOp>(model.layers[41].kind).attributes);
  // Each key of the text is in what is written as often, but for those that say what is the default and short forms.
  const std::multiset<std::string> given = keys_of(every_key), written = keys_of(text);
  std::set<std::string> missing;
  for (const std::string& key : given) {
    if (written.count(key) < given.count(key)) missing.insert(key);
  }
  // `bias: true`, `scale: true` and `center: true` are defaults; `name` is also that of an initializer, which alone is a text.
  for (const char* usual : {"bias", "scale", "center", "shortcut", "activation"}) missing.erase(usual);
  CHECK(missing == std::set<std::string>{});
}

TEST_CASE("definition text: the test above has every key that a reader of layers knows") {
  const std::multiset<std::string> given = keys_of(every_key);
  yaml::KeyRecorder recorder;
  static_cast<void>(model_from_yaml(every_key));
  for (const yaml::KnownKey& known : recorder.keys) {
    if (known.owner.rfind("layers[", 0) != 0) continue;
    const std::string key = known.path.substr(known.path.find_last_of('.') + 1);
    const bool elsewhere = key == "outputs" || key == "parts";  // in a model of that layer alone; the short form has no key
    CHECK_MESSAGE((given.contains(key) || elsewhere), known.owner << ": " << key);
  }
}

TEST_CASE("definition text: what a preset gives is left out, what differs from it is not") {
  const ModelDefinition model = model_from_yaml(preset_text);
  const std::string text = to_yaml(model);
  INFO(text);
  CHECK(text.rfind("preset: keras\nlayers:\n  - dense: {units: 3}\n  - batch_norm\n", 0) == 0);
  const ModelDefinition again = model_from_yaml(text);
  CHECK(to_yaml(again) == text);
  const auto& torch = std::get<layers::BatchNorm>(again.layers[2].kind);
  CHECK(torch.momentum == 0.1);
  CHECK_FALSE(*torch.channels_last);
  CHECK(text.find("batch_norm: {momentum: 0.1}") != std::string::npos);
  CHECK(std::get<layers::BatchNorm>(again.layers[3].kind).momentum == 0.9);
  CHECK(std::get<layers::LSTM>(again.layers[4].kind).cell.forget_bias == 0.0);
  CHECK(*std::get<layers::Dense>(again.layers[5].kind).weights.kernel_initializer->truncated == false);
}

TEST_CASE("definition text: models of the tree read back the same, and as JSON too") {
  for (const auto& entry : std::filesystem::directory_iterator(TENON_SOURCE_DIRECTORY "/models")) {
    const std::string path = entry.path().string() + "/model.yaml";
    if (!std::filesystem::exists(path)) continue;
    CAPTURE(path);
    const std::string text = to_yaml(load_definition(path).model);
    CHECK(to_yaml(model_from_yaml(text)) == text);
  }
  const ModelDefinition json = model_from_yaml(R"({"layers": [{"dense": {"units": 3, "name": "a b"}}, "relu"]})");
  CHECK(to_yaml(json) == "layers:\n  - dense: {units: 3, name: \"a b\"}\n  - relu\n");
  const ModelDefinition file = model_from_yaml("onnx: {file: /tmp/net.onnx, outputs: [a, b], frozen: true}");
  CHECK(to_yaml(file) ==
        "layers:\n  - onnx: {file: " + nlohmann::json(rooted("/tmp/net.onnx")).dump() + ", outputs: [a, b], frozen: [\"*\"]}\n");
}

TEST_CASE("definition text: a tree that was read is written as what reads the same") {
  const std::string text = R"({a: 1.0e-8, b: "1.5", c: [true, "true", null, x y, "a: b", -3], "d e": {}, f: "", g: 'it''s'})";
  const auto source = std::make_shared<yaml::Source>();
  const std::string written = yaml::flow(yaml::parse(text, source));
  CHECK(written == R"({a: 1.0e-8, b: "1.5", c: [true, "true", null, "x y", "a: b", -3], "d e": {}, f: "", g: "it's"})");
  CHECK(yaml::flow(yaml::parse(written, source)) == written);
}

TEST_CASE("definition text: what no key can say is an error") {
  ModelDefinition model(model_from_yaml("layers: [flatten]"));
  model.input_dtype = DType::u8;
  CHECK_ERROR("to_yaml: expected the shape of the input too, which model.yaml needs, got the dtype u8", to_yaml(model));
  model = model_from_yaml("layers: [batch_norm]");
  std::get<layers::BatchNorm>(model.layers[0].kind).biased = true;
  CHECK_ERROR_CONTAINS("batch_norm: expected `biased` and `channels_last` both as in Keras or both as in PyTorch", to_yaml(model));
  model.layers = {LayerDefinition(layers::Activation{}, "named")};
  CHECK_ERROR_CONTAINS("expected no name for a linear activation", to_yaml(model));
  CHECK_ERROR_CONTAINS("net:1:19: layers[0] dense: unknown key 'unit'", model_from_yaml("layers: [{dense: {unit: 3}}]", "net"));
}

TEST_CASE("definition text: the arguments of compile are those of a train.yaml") {
  const CompileDefinition d = compile_from_yaml(
      "{loss: {name: sparse_categorical_crossentropy, from_logits: true}, optimizer: {name: sgd, learning_rate: 0.5, momentum: 0.9}, "
      "metrics: [accuracy, {name: top_k, k: 3}], trainable: ['dense*'], frozen: x, parallel: {mode: data, devices: [cpu, gpu]}}");
  CHECK(d.options.loss.loss == Loss::sparse_categorical_crossentropy);
  CHECK(d.options.loss.from_logits);
  CHECK(d.options.optimizer.kind == OptimizerDefinition::Kind::sgd);
  CHECK(*d.options.optimizer.momentum == 0.9);
  REQUIRE(d.options.metrics.size() == 2);
  CHECK(d.options.metrics[1].name() == "top_3_accuracy");
  CHECK(d.options.trainable == std::vector<std::string>{"dense*"});
  CHECK(d.options.frozen == std::vector<std::string>{"x"});
  CHECK(d.options.parallel.devices.size() == 2);
  CHECK(d.callbacks.empty());
  const CompileDefinition several = compile_from_yaml("losses: {a: mse, b: {name: mae, weight: 0.5, metrics: [mse]}}");
  CHECK(several.options.losses.size() == 2);
  CHECK(several.options.optimizer.kind == OptimizerDefinition::Kind::adam);
  CHECK(*several.options.optimizer.learning_rate == 0.001);
  CHECK_ERROR_CONTAINS("key 'loss' is missing; expected the name of a loss", compile_from_yaml(""));
  CHECK_ERROR_CONTAINS("unknown key 'los'; did you mean 'loss'?", compile_from_yaml("{loss: mse, los: mae}"));
}

TEST_CASE("definition text: the arguments of fit") {
  const FitDefinition d = fit_from_yaml(
      "{batch_size: 8, epochs: 3, shuffle: true, accumulate: 2, steps_per_epoch: 5, validation_split: 0.25, workers: 2, prefetch: 4, "
      "pinned: false, shuffle_buffer: 100, callbacks: [terminate_on_nan, {early_stopping: {patience: 2}}]}");
  CHECK(d.options.batch_size == 8);
  CHECK(d.options.epochs == 3);
  CHECK(d.options.accumulate == 2);
  CHECK(d.options.steps_per_epoch == 5);
  CHECK(d.options.validation_split == 0.25);
  CHECK(d.options.workers == 2);
  CHECK(d.options.prefetch == 4);
  CHECK_FALSE(d.options.pinned);
  CHECK(d.options.shuffle_buffer == 100);
  CHECK(d.callbacks.size() == 2);
  CHECK(fit_from_yaml(" ").options.batch_size == FitOptions().batch_size);
  CHECK_ERROR_CONTAINS("shuffle_buffer has no effect without shuffling", fit_from_yaml("{shuffle: false, shuffle_buffer: 3}"));
  CHECK_ERROR_CONTAINS("unknown key 'epoch'; did you mean 'epochs'?", fit_from_yaml("epoch: 3"));
  CHECK_ERROR_CONTAINS("key 'batch_size': expected an integer in [1, ", fit_from_yaml("batch_size: 0"));
}
