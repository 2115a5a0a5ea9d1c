// SPDX-License-Identifier: Apache-2.0
// Layers in models: shapes, counts, statistics, and errors.
#include <fmt/format.h>

#include <cmath>
#include <map>

#include "config/model_yaml.h"
#include "temporary_folder.h"
#include "testing.h"
#include "train/program/builder.h"
#include "train/program/initializers.h"
#include "train/program/objective.h"

namespace tenon::test {
namespace {

/// The layers built for a batch of two, without creating parameters.
train::Forward built(Graph& graph, const std::string& text, bool training = false) {
  const ModelDefinition definition = config::model_from_text(text, "model.yaml");
  Shape shape{2};
  for (const std::int64_t size : *definition.input_shape) shape.push_back(size);
  const Value x = graph.input("x", train::input_dtype(definition), shape);
  return train::build(graph, definition, x, training ? graph.input("key", DType::u64, {2}) : Value());
}

Shape output_of(const std::string& input, const std::string& layer) {
  Graph graph;
  return built(graph, "input: {shape: " + input + "}\nlayers:\n  - " + layer + "\n").outputs[0].output.shape();
}

std::string error_of_layer(const std::string& input, const std::string& layer) {
  return message_of([&] { output_of(input, layer); });
}

/// Images of noise, with a label each.
struct Batch {
  Tensor x, y;
};
Batch images(std::int64_t count, const Shape& sample, std::uint32_t seed = 1) {
  Shape shape{count};
  for (const std::int64_t size : sample) shape.push_back(size);
  Batch batch{Tensor::zeros(DType::f32, shape), Tensor::zeros(DType::i64, {count})};
  std::uint32_t state = seed;
  for (std::int64_t i = 0; i < batch.x.count(); ++i) {
    state = state * 1664525u + 1013904223u;
    batch.x.data<float>()[i] = static_cast<float>(state >> 8) * 0x1p-24f * 3.0f - 1.0f;
  }
  for (std::int64_t i = 0; i < count; ++i) batch.y.data<std::int64_t>()[i] = i % 3;
  return batch;
}

Model normalised(const Context& context, const std::string& norm = "batch_norm") {
  Model model(config::model_from_text("input: {shape: [2, 4, 4]}\nlayers:\n  - conv2d: {filters: 3, kernel_size: 3, padding: 1}\n  - " +
                                      norm + "\n  - relu\n  - flatten\n  - dense: {units: 3, activation: softmax}\n"));
  model.compile(context, {.optimizer = {.kind = OptimizerDefinition::Kind::sgd}, .loss = {.loss = Loss::sparse_categorical_crossentropy}});
  return model;
}

TEST_CASE("layers: the shapes of convolutions and pools follow kernel, stride, padding and dilation") {
  CHECK(output_of("[3, 8, 9]", "conv2d: {filters: 5, kernel_size: 3}") == Shape{2, 5, 6, 7});
  CHECK(output_of("[3, 8, 9]", "conv2d: {filters: 5, kernel_size: 3, strides: 2, padding: same}") == Shape{2, 5, 4, 5});
  CHECK(output_of("[3, 8, 9]", "conv2d: {filters: 5, kernel_size: [3, 1], padding: [1, 0, 0, 2]}") == Shape{2, 5, 7, 11});
  CHECK(output_of("[4, 8, 8]", "conv2d: {filters: 6, kernel_size: 3, dilation: 2, groups: 2}") == Shape{2, 6, 4, 4});
  CHECK(output_of("[4, 8, 8]", "depthwise_conv2d: {kernel_size: 3, multiplier: 2, padding: 1}") == Shape{2, 8, 8, 8});
  CHECK(output_of("[4, 8, 8]", "conv2d_transpose: {filters: 3, kernel_size: 2, strides: 2}") == Shape{2, 3, 16, 16});
  CHECK(output_of("[4, 16]", "conv1d: {filters: 3, kernel_size: 5}") == Shape{2, 3, 12});
  CHECK(output_of("[4, 1, 16]", "conv1d: {filters: 3, kernel_size: 5}") == Shape{2, 3, 1, 12});
  CHECK(output_of("[4, 7, 7]", "max_pool2d: {pool_size: 3, strides: 2}") == Shape{2, 4, 3, 3});
  CHECK(output_of("[4, 8, 8]", "max_pool2d: {pool_size: 3, strides: 2, ceil_mode: true}") == Shape{2, 4, 4, 4});
  CHECK(output_of("[4, 8]", "average_pool1d: {pool_size: 2}") == Shape{2, 4, 4});
  CHECK(output_of("[4, 8, 8]", "global_average_pool") == Shape{2, 4});
  CHECK(output_of("[4, 8]", "global_max_pool") == Shape{2, 4});
  CHECK(output_of("[4, 9, 9]", "adaptive_average_pool: {size: 3}") == Shape{2, 4, 3, 3});
  CHECK(output_of("[4, 9, 9]", "upsample2d: {size: [2, 3]}") == Shape{2, 4, 18, 27});
  CHECK(output_of("[4, 9, 9]", "pad_channels: {channels: 7}") == Shape{2, 7, 9, 9});
  CHECK(output_of("[28, 28]", "reshape: {shape: [1, 28, -1]}") == Shape{2, 1, 28, 28});
  CHECK(output_of("[4, 9, 9]", "adaptive_max_pool: {size: [2, 4]}") == Shape{2, 4, 2, 4});
  CHECK(output_of("[4, 9, 8]", "permute: {order: [3, 1, 2]}") == Shape{2, 8, 4, 9});
  CHECK(output_of("[4, 9]", "glu") == Shape{2, 2, 9});
  CHECK(output_of("[4, 9]", "prelu: {start: 0.1, shared: true}") == Shape{2, 4, 9});
  CHECK(contains(error_of_layer("[4, 9]", "permute: {order: [1, 1]}"),
                 "expects each axis of a sample once, 1 to 2 in any order for (2,4,9), got [1, 1]"));
  CHECK(contains(error_of_layer("[3, 9]", "glu"), "expects an even number of channels, got (2,3,9)"));
}

TEST_CASE_FIXTURE(OnReference, "layers: every pool of a signal has PyTorch's values") {
  const auto pooled = [&](const std::string& layer) {
    Model model(config::model_from_text("input: {shape: [1, 5]}\nlayers:\n  - " + layer + "\n"));
    model.compile(context, {});
    return floats(model.predict(Tensor::of<float>({1, -2, 4, 0, 3}, {1, 1, 5})));
  };
  using Floats = std::vector<float>;
  CHECK(pooled("adaptive_average_pool: {size: 2}") == Floats{1, 7.0F / 3});
  CHECK(pooled("adaptive_max_pool: {size: 2}") == Floats{4, 4});
  CHECK(pooled("max_pool1d: {pool_size: 2, ceil_mode: true}") == Floats{1, 4, 3});
  CHECK(pooled("average_pool1d: {pool_size: 2, ceil_mode: true}") == Floats{-0.5, 2, 3});
  CHECK(pooled("average_pool1d: {pool_size: 3, strides: 2, padding: 1}") == Floats{-1.0F / 3, 2.0F / 3, 1});
  CHECK(pooled("average_pool1d: {pool_size: 3, strides: 2, padding: 1, count_include_pad: false}") == Floats{-0.5, 2.0F / 3, 1.5});
  CHECK(pooled("average_pool1d: {pool_size: 2, divisor: 4}") == Floats{-0.25, 1});
  CHECK(pooled("lp_pool1d: {pool_size: 2, p: 1, ceil_mode: true}") == Floats{3, 4, 3});
  CHECK(pooled("lp_pool1d: {pool_size: 3, strides: 2}") == Floats{std::sqrt(21.0F), 5});
}

TEST_CASE("layers: after a sequence, layers of images say that the features are last, and permute is the remedy") {
  const std::string embedding = "embedding: {rows: 9, dim: 4}\n  - ";
  for (const char* layer : {"conv1d: {filters: 2, kernel_size: 3}", "max_pool1d: {pool_size: 2}", "batch_norm", "group_norm: {groups: 2}",
                            "instance_norm", "lrn", "global_average_pool", "global_max_pool", "adaptive_average_pool: {size: 2}"}) {
    CAPTURE(layer);
    CHECK(
        contains(error_of_layer("[6]", embedding + layer),
                 "expects channels as axis 1, got (2,6,4) with the features last, as after an embedding, a dense or a sequence layer; put "
                 "`permute: {order: [2, 1]}` before it"));
    CHECK(output_of("[6]", embedding + "permute: {order: [2, 1]}\n  - " + layer)[1] != 6);
  }
  CHECK(contains(error_of_layer("[6]", embedding + "batch_norm"), "or set `axis: -1`"));
  CHECK(output_of("[6]", embedding + "batch_norm: {axis: -1}") == Shape{2, 6, 4});
  CHECK(output_of("[6]", embedding + "batch_norm: {preset: keras}") == Shape{2, 6, 4});
}

TEST_CASE("layers: a model built in C++ starts as the one from YAML with the same preset") {
  using layers::Embedding, layers::LSTM, layers::Dense, layers::Permute, layers::BatchNorm;
  const Context context(test_config());
  const Initializer he{.kind = Initializer::Kind::he_normal};
  for (const Preset preset : {Preset::none, Preset::keras, Preset::torch, Preset::gorgonia}) {
    CAPTURE(name_of(preset));
    ModelDefinition own;
    own.preset = preset;
    own.layers = {Embedding{9, 4},
                  LSTM{.units = 3, .return_sequences = true},
                  Permute{{2, 1}},
                  BatchNorm{},
                  layers::Flatten{},
                  Dense{8, Activation::linear, {.kernel_initializer = he}},
                  Dense{2, Activation::softmax}};
    const std::string yaml = fmt::format(R"(
preset: {}
layers: [embedding: {{rows: 9, dim: 4}}, lstm: {{units: 3, return_sequences: true}}, permute: {{order: [2, 1]}}, batch_norm, flatten,
         dense: {{units: 8, kernel_initializer: he_normal}}, dense: {{units: 2, activation: softmax}}]
)",
                                         name_of(preset));
    Model a(own), b(config::model_from_text(yaml.substr(1)));
    std::vector<std::map<std::string, std::vector<float>>> trained;
    for (Model* model : {&a, &b}) {
      model->compile(context, {.loss = {.loss = Loss::sparse_categorical_crossentropy}});
      model->build({6});
      model->train_batch(Tensor::zeros(DType::i64, {3, 6}), Tensor::zeros(DType::i64, {3}));  // moves the running statistics
      trained.emplace_back();
      for (const auto& [name, tensor] : model->parameters().all()) trained.back()[name] = floats(tensor);
    }
    CHECK(trained[0] == trained[1]);
  }
}

TEST_CASE("layers: the shapes of sequences, and of dense layers that apply to each step") {
  CHECK(output_of("[5, 3]", "lstm: {units: 4}") == Shape{2, 4});
  CHECK(output_of("[5, 3]", "lstm: {units: 4, return_sequences: true}") == Shape{2, 5, 4});
  CHECK(output_of("[5, 3]", "gru: {units: 4, bidirectional: true, num_layers: 2}") == Shape{2, 8});
  CHECK(output_of("[5, 3]", "rnn: {units: 4, bidirectional: true, return_sequences: true}") == Shape{2, 5, 8});
  CHECK(output_of("[5, 6]", "attention: {heads: 3, causal: true}") == Shape{2, 5, 6});
  CHECK(output_of("[5, 3]", "lstm: {units: 4, return_sequences: true}\n  - dense: {units: 7}") == Shape{2, 5, 7});
  CHECK(output_of("[5, 3]", "dense: {units: 7}") == Shape{2, 5, 7});
  CHECK(output_of("[4, 5, 3]", "dense: {units: 7, bias: false}") == Shape{2, 4, 5, 7});
  CHECK(output_of("[5, 6]", "attention\n  - dense: {units: 7}") == Shape{2, 5, 7});
  CHECK(output_of("[5, 6]", "layer_norm\n  - dense: {units: 7, activation: softmax}") == Shape{2, 5, 7});
  CHECK(output_of("[5, 6]", "residual: {body: [attention, dense: {units: 6}]}\n  - dense: {units: 7}") == Shape{2, 5, 7});
  CHECK(output_of("[5, 6]", "attention\n  - branches: [[{dense: {units: 3}}], [{dense: {units: 4}}]]") == Shape{2, 5, 7});
  CHECK(output_of("[5, 6]", "branches: [[{lstm: {units: 3}}], [{lstm: {units: 4}}]]") == Shape{2, 7});
  CHECK(output_of("[3, 4, 4, 4]", "global_average_pool") == Shape{2, 3});
}

TEST_CASE("layers: the classes of a sequence are its last axis, whatever layers precede the scores") {
  for (const char* layers : {"attention", "layer_norm", "residual: {body: [attention]}", "dense: {units: 4}"}) {
    CAPTURE(layers);
    Graph graph;
    const train::Forward forward =
        built(graph, std::string("input: {shape: [5, 6]}\nlayers:\n  - ") + layers + "\n  - dense: {units: 4, activation: softmax}\n");
    const Value y = graph.input("y", DType::i64, {2, 5});
    LossDefinition loss{.loss = Loss::sparse_categorical_crossentropy};
    CHECK(train::build_objective(forward, y, loss, {}).loss.shape() == Shape{});
    CHECK_ERROR_CONTAINS("expected scores (batch, ..., classes) and labels (batch, ...), got (2,5,4) and (2,4)",
                         train::build_objective(forward, graph.input("z", DType::i64, {2, 4}), loss, {}));
    CHECK_ERROR_CONTAINS("got (2,5,4) and (2); for one label per sample, put a flatten layer before the first dense layer",
                         train::build_objective(forward, graph.input("v", DType::i64, {2}), loss, {}));
  }
}

TEST_CASE("layers: parameter counts match textbooks, with running statistics separate from trainable ones") {
  const auto count = [](const std::string& input, const std::string& layer) {
    Graph graph;
    const train::Forward forward = built(graph, "input: {shape: " + input + "}\nlayers:\n  - " + layer + "\n");
    return std::pair{forward.layers.back().parameters, forward.layers.back().non_trainable};
  };
  using Counts = std::pair<std::int64_t, std::int64_t>;
  CHECK(count("[3, 8, 8]", "conv2d: {filters: 5, kernel_size: 3}") == Counts{140, 0});
  CHECK(count("[4, 8, 8]", "conv2d: {filters: 6, kernel_size: 3, groups: 2, bias: false}") == Counts{108, 0});
  CHECK(count("[4, 8, 8]", "depthwise_conv2d: {kernel_size: 3, multiplier: 2}") == Counts{80, 0});
  CHECK(count("[4, 8, 8]", "batch_norm") == Counts{16, 8});
  CHECK(count("[4, 3]", "batch_norm: {mode: per_activation}") == Counts{48, 24});
  CHECK(count("[4, 3]", "batch_norm: {scale: false, center: false}") == Counts{8, 8});
  CHECK(count("[4, 3]", "layer_norm") == Counts{6, 0});
  CHECK(count("[4, 3]", "rms_norm") == Counts{3, 0});
  CHECK(count("[4, 3, 3]", "group_norm: {groups: 2}") == Counts{8, 0});
  CHECK(count("[5, 3]", "lstm: {units: 4}") == Counts{4 * 4 * (3 + 4 + 1), 0});
  CHECK(count("[5, 3]", "gru: {units: 4}") == Counts{3 * 4 * (3 + 4 + 2), 0});
  CHECK(count("[5, 3]", "gru: {units: 4, linear_before_reset: false}") == Counts{3 * 4 * (3 + 4 + 1), 0});
  CHECK(count("[5, 3]", "rnn: {units: 4, bidirectional: true, bias: false}") == Counts{2 * 4 * (3 + 4), 0});
  CHECK(count("[5, 6]", "attention: {heads: 2}") == Counts{4 * (36 + 6), 0});
}

TEST_CASE("layers: nested layers are named after the outer one and listed before it") {
  Graph graph;
  const train::Forward forward = built(graph, R"(
input: {shape: [4, 8, 8]}
layers:
  - repeat: {times: 2, layers: [{residual: {body: [{conv2d: {filters: 4, kernel_size: 3, padding: 1}}, batch_norm, relu]}}]}
  - branches: [[{conv2d: {filters: 2, kernel_size: 1}}], [], [{conv2d: {filters: 3, kernel_size: 1}}]]
)");
  CHECK(forward.outputs[0].output.shape() == Shape{2, 9, 8, 8});
  std::vector<std::string> names, parameters;
  for (const LayerSummary& row : forward.layers) names.push_back(row.name);
  CHECK(names == std::vector<std::string>{"residual/conv2d", "residual/batch_norm", "residual/activation", "residual", "residual_1/conv2d",
                                          "residual_1/batch_norm", "residual_1/activation", "residual_1", "branches/conv2d",
                                          "branches/conv2d_1", "branches"});
  for (const train::ParameterSpec& spec : forward.specs) parameters.push_back(spec.name);
  CHECK(parameters.front() == "residual/conv2d/kernel");
  CHECK(parameters.back() == "branches/conv2d_1/bias");
  REQUIRE(forward.states.size() == 4);
  CHECK(forward.states[3].spec.name == "residual_1/batch_norm/running_variance");
}

TEST_CASE("layers: a mismatch is reported with the position in the file and the layer's name") {
  CHECK(error_of_layer("[28, 28]", "conv2d: {filters: 3, kernel_size: 3}") ==
        "model.yaml:3:5: layers[0] conv2d: 'conv2d' expects (batch, channels, height, width), got (2,28,28); for one channel, put reshape: "
        "{shape: [1, 28, 28]} before it");
  CHECK(error_of_layer("[4, 8, 8]", "conv2d: {filters: 6, kernel_size: 3, groups: 3}") ==
        "model.yaml:3:5: layers[0] conv2d: 'conv2d' has 3 groups, expected a divisor of its 4 channels and 6 filters");
  const std::string kernel = error_of_layer("[4, 8, 8]", "conv2d: {filters: 6, kernel_size: 9, name: wide}");
  CHECK(kernel.starts_with("model.yaml:3:5: layers[0] conv2d: "));
  CHECK(contains(kernel, "wide/conv"));
  CHECK(contains(kernel, "9"));
  const std::string inner = error_of_layer("[4, 8, 8]", "residual: {body: [{conv2d: {filters: 4, kernel_size: 9}}]}");
  CHECK(inner.starts_with("model.yaml:3:23: layers[0] residual: body[0] conv2d: "));
  CHECK(contains(error_of_layer("[4, 8, 8]", "residual: {body: [{conv2d: {filters: 5, kernel_size: 1}}]}"),
                 "'residual' adds body (2,5,8,8) and shortcut (2,4,8,8): expected the same shape"));
  CHECK(contains(error_of_layer("[4, 8, 8]", "branches: [[relu], [{conv2d: {filters: 5, kernel_size: 3}}]]"),
                 "got (2,4,8,8) for branch 0 and (2,5,6,6) for branch 1"));
  CHECK(contains(error_of_layer("[4, 8, 8]", "lstm: {units: 3}"), "'lstm' expects (batch, time, features), got (2,4,8,8)"));
  CHECK(contains(error_of_layer("[5, 6]", "attention: {heads: 4}"), "'attention' has 4 heads, expected a divisor of its 6 features"));
  CHECK(contains(error_of_layer("[4, 8, 8]", "batch_norm: {axis: 4}"), "'batch_norm' has axis 4, expected 1 to 3"));
  CHECK(
      contains(error_of_layer("[4, 8, 8]", "group_norm: {groups: 3}"), "'group_norm' has 3 groups, expected a divisor of its 4 channels"));
  CHECK(contains(error_of_layer("[4, 8, 8]", "pad_channels: {channels: 3}"), "expects at most 3 channels"));
}

TEST_CASE("layers: batch_norm of a single sample does not train, with an error that names the layer") {
  const Context context(test_config());
  Model model(
      config::model_from_text("input: {shape: [4]}\nlayers: [{batch_norm: {name: middle}}, {dense: {units: 3, activation: softmax}}]"));
  model.compile(context, {.loss = {.loss = Loss::sparse_categorical_crossentropy}});
  const std::string text = message_of([&] { model.train_batch(Tensor::zeros(DType::f32, {1, 4}), Tensor::zeros(DType::i64, {1})); });
  CHECK(contains(text, "middle"));
}

TEST_CASE("layers: batch_norm_default_scale - gamma starts at 1, beta at 0, both per channel, whatever the batch") {
  const Context context(test_config());
  Model model = normalised(context);
  const ParameterStore& parameters = model.parameters();
  CHECK(floats(parameters.get("batch_norm/gamma")) == std::vector<float>{1, 1, 1});
  CHECK(floats(parameters.get("batch_norm/beta")) == std::vector<float>{0, 0, 0});
  CHECK(floats(parameters.get("batch_norm/running_mean")) == std::vector<float>{0, 0, 0});
  CHECK(floats(parameters.get("batch_norm/running_variance")) == std::vector<float>{1, 1, 1});
}

TEST_CASE("layers: batch_norm_keeps_statistics - training updates them, evaluation reads them, switching changes nothing") {
  const Context context(test_config());
  Model model = normalised(context);
  const Batch batch = images(8, {2, 4, 4});
  model.train_batch(batch.x, batch.y);
  const auto mean = [&] { return floats(model.parameters().get("batch_norm/running_mean")); };
  const auto variance = [&] { return floats(model.parameters().get("batch_norm/running_variance")); };
  const std::vector<float> first = mean(), spread = variance();
  CHECK(first != std::vector<float>{0, 0, 0});
  CHECK(spread != std::vector<float>{1, 1, 1});

  const std::vector<float> quiet = floats(model.predict(batch.x));
  model.test_batch(batch.x, batch.y);
  CHECK(mean() == first);
  CHECK(floats(model.predict(batch.x)) == quiet);

  model.set_training(true);
  const std::vector<float> loud = floats(model.forward(batch.x));  // statistics of the batch, which update the running ones
  CHECK(loud != quiet);
  const std::vector<float> second = mean();
  CHECK(second != first);
  model.set_training(false);
  CHECK(mean() == second);
  model.forward(batch.x);
  model.set_training(true);
  model.set_training(false);
  CHECK(mean() == second);
}

TEST_CASE("layers: batch_norm's running statistics use momentum and n - 1, or the convention of Keras") {
  const Context context(test_config());
  const Batch batch = images(8, {2, 4, 4});
  const auto train = [&](const std::string& norm) {
    Model model(config::model_from_text("input: {shape: [2, 4, 4]}\nlayers:\n  - " + norm +
                                        "\n  - flatten\n  - dense: {units: 3, activation: softmax}\n"));
    model.compile(context, {.loss = {.loss = Loss::sparse_categorical_crossentropy}});
    model.train_batch(batch.x, batch.y);
    return std::pair{floats(model.parameters().get("batch_norm/running_mean")),
                     floats(model.parameters().get("batch_norm/running_variance"))};
  };
  double sum = 0, squares = 0;
  constexpr int n = 8 * 16;
  for (int s = 0; s < 8; ++s) {
    for (int i = 0; i < 16; ++i) {
      const double v = static_cast<double>(batch.x.data<float>()[s * 32 + i]);
      sum += v, squares += v * v;
    }
  }
  const double mean = sum / n, biased = squares / n - mean * mean;
  const auto [own_mean, own_variance] = train("batch_norm: {momentum: 0.25}");
  CHECK(static_cast<double>(own_mean[0]) == doctest::Approx(0.25 * mean).epsilon(1e-4));
  CHECK(static_cast<double>(own_variance[0]) == doctest::Approx(0.75 + 0.25 * biased * n / (n - 1)).epsilon(1e-5));
  const auto [keras_mean, keras_variance] = train("batch_norm: {preset: keras, momentum: 0.75}");
  CHECK(static_cast<double>(keras_mean[0]) == doctest::Approx(0.25 * mean).epsilon(1e-4));
  CHECK(static_cast<double>(keras_variance[0]) == doctest::Approx(0.75 + 0.25 * biased).epsilon(1e-5));
  const auto [each_mean, each_variance] = train("batch_norm: {mode: per_activation}");
  CHECK(each_mean.size() == 32);
  CHECK(each_variance.size() == 32);
}

TEST_CASE("layers: running statistics are saved and restored, and belong to the model") {
  const TemporaryFolder folder;
  const Context context(test_config());
  const Batch batch = images(8, {2, 4, 4});
  Model model = normalised(context);
  model.train_batch(batch.x, batch.y);
  model.save(folder.path(), "kept");
  Model again = normalised(context);
  again.load(folder.path() + "/kept.yaml", Model::Load::weights);
  CHECK(floats(again.parameters().get("batch_norm/running_mean")) == floats(model.parameters().get("batch_norm/running_mean")));
  CHECK(floats(again.predict(batch.x)) == floats(model.predict(batch.x)));
  Model without = normalised(context, "layer_norm");
  CHECK_ERROR_CONTAINS("belongs to another model", without.load(folder.path() + "/kept.yaml"));
}

TEST_CASE("layers: the summary counts running statistics as non-trainable, and no optimizer state for them") {
  const Context context(test_config());
  const std::string text = normalised(context).summary();
  CHECK(contains(text, "Non-trainable params: 6 (24 B)"));
  // conv 2*3*9+3, norm 3+3, dense 48*3+3
  CHECK(contains(text, "Trainable params: 210 "));
}

TEST_CASE("layers: accumulated gradients update the running statistics once per batch") {
  const Context context(test_config());
  Model once = normalised(context), twice = normalised(context);
  const Batch batch = images(8, {2, 4, 4});
  once.backward(batch.x, batch.y);
  once.apply();
  twice.backward(batch.x, batch.y);
  twice.backward(batch.x, batch.y);
  twice.apply();
  const float a = floats(once.parameters().get("batch_norm/running_mean"))[0],
              b = floats(twice.parameters().get("batch_norm/running_mean"))[0];
  CHECK(b == doctest::Approx(a * 1.9f).epsilon(1e-4));
}

TEST_CASE("layers: a convolution's initializer includes its window") {
  Graph graph;
  const train::Forward forward = built(graph, R"(
input: {shape: [8, 9, 9]}
layers:
  - conv2d: {filters: 64, kernel_size: 5, groups: 2, kernel_initializer: he_normal}
  - conv2d: {filters: 64, kernel_size: 3, kernel_initializer: glorot_uniform}
)");
  CHECK(forward.specs[0].fan_in == 4 * 25);
  const Context context(test_config());
  const auto deviation = [&](const train::ParameterSpec& spec) {
    double squares = 0;
    const std::vector<float> values = floats(train::initialize(context, context.default_device(), spec, 3, 0));
    for (const float v : values) squares += static_cast<double>(v) * static_cast<double>(v);
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  CHECK(deviation(forward.specs[0]) == doctest::Approx(std::sqrt(2.0 / 100)).epsilon(0.03));
  CHECK(deviation(forward.specs[2]) == doctest::Approx(std::sqrt(2.0 / ((64 + 64) * 9))).epsilon(0.02));
}

TEST_CASE("layers: each direction's recurrent kernel is initialized as orthogonal") {
  Graph graph;
  const train::Forward forward = built(graph, "input: {shape: [5, 3]}\nlayers: [{rnn: {units: 6, bidirectional: true}}]");
  const train::ParameterSpec* recurrent = nullptr;
  for (const train::ParameterSpec& spec : forward.specs) {
    if (spec.name == "rnn/recurrent_kernel") recurrent = &spec;
  }
  REQUIRE(recurrent != nullptr);
  const Context context(test_config());
  const std::vector<float> r = floats(train::initialize(context, context.default_device(), *recurrent, 3, 0));
  REQUIRE(r.size() == 72);
  for (std::size_t d = 0; d < 2; ++d) {
    for (std::size_t i = 0; i < 6; ++i) {
      for (std::size_t j = 0; j <= i; ++j) {
        double dot = 0;
        for (std::size_t k = 0; k < 6; ++k) dot += static_cast<double>(r[d * 36 + i * 6 + k]) * static_cast<double>(r[d * 36 + j * 6 + k]);
        CHECK(dot == doctest::Approx(i == j ? 1.0 : 0.0).epsilon(1e-5));
      }
    }
  }
  CHECK(std::vector<float>(r.begin(), r.begin() + 36) != std::vector<float>(r.begin() + 36, r.end()));
}

TEST_CASE("layers: a language model learns a repeating text, with the loss per step") {
  const Context context(test_config());
  Model model(config::model_from_text(R"(
input: {shape: [6], dtype: int64}
layers:
  - embedding: {rows: 5, dim: 8}
  - lstm: {units: 12, return_sequences: true, forget_bias: 1}
  - dense: {units: 5}
)"));
  model.compile(context, {.optimizer = {.learning_rate = 0.03},
                          .loss = {.loss = Loss::sparse_categorical_crossentropy, .from_logits = true, .ignore_index = {}, .where = ""},
                          .metrics = {Metric::accuracy, Metric::perplexity}});
  Tensor x = Tensor::zeros(DType::i64, {4, 6}), y = Tensor::zeros(DType::i64, {4, 6});
  for (std::int64_t i = 0; i < 24; ++i) {
    x.data<std::int64_t>()[i] = (i + i / 6) % 5;
    y.data<std::int64_t>()[i] = (i + i / 6 + 1) % 5;
  }
  Logs logs;
  for (int step = 0; step < 60; ++step) logs = model.train_batch(x, y).logs;
  CHECK(logs[0].second < 0.1);
  CHECK(logs[1].second == 1);
  CHECK(logs[2].second == doctest::Approx(std::exp(logs[0].second)));
}

TEST_CASE("layers: replicas use separate statistics, and the running ones become their mean") {
  Config config = test_config("reference:0");
  config.virtual_devices = {{"reference:0", 2, 0}};
  const Context context(config);
  const Batch batch = images(8, {2, 4, 4});
  const std::string text = "input: {shape: [2, 4, 4]}\nlayers: [batch_norm, flatten, {dense: {units: 3, activation: softmax}}]";
  CompileOptions options{.loss = {.loss = Loss::sparse_categorical_crossentropy}};
  Model one(config::model_from_text(text));
  one.compile(context, options);
  options.parallel.devices = {"reference:0", "reference:1"};
  Model both(config::model_from_text(text));
  both.compile(context, options);
  one.train_batch(batch.x, batch.y);
  both.train_batch(batch.x, batch.y);
  const auto mean = [](Model& model) { return floats(model.parameters().get("batch_norm/running_mean")); };
  // the average of the means of equal halves is the mean of the whole
  for (std::size_t c = 0; c < 2; ++c) CHECK(mean(one)[c] == doctest::Approx(mean(both)[c]).epsilon(1e-5));
}

}  // namespace
}  // namespace tenon::test
