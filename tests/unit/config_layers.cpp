// SPDX-License-Identifier: Apache-2.0
// Layers of images, normalisation and sequences in model.yaml.
#include <string>
#include <variant>
#include <vector>

#include <doctest/doctest.h>

#include "config/model_yaml.h"
#include "testing.h"

using namespace tenon;
using namespace tenon::config;
using namespace tenon::test;
using layers::Sizes;
using Sides = std::vector<std::pair<std::int64_t, std::int64_t>>;

namespace {

/// The first layer of a model.
template <class L>
L read(const std::string& text, const std::string& before = "") {
  return std::get<L>(model_from_text(before + "layers:\n  - " + text + "\n").layers.at(0).kind);
}

std::string layer_error(const std::string& text) {
  return message_of([&] { model_from_text("layers:\n  - " + text + "\n", "model.yaml"); });
}

}  // namespace

TEST_CASE("layers: every key of a convolution reaches its field") {
  const LayerDefinition definition =
      model_from_text(R"(layers: [conv2d: {filters: 8, kernel_size: [3, 5], strides: 2, padding: [1, 2, 3, 4],
    dilation: [2, 1], groups: 4, bias: false, activation: relu, kernel_initializer: he_normal, kernel_regularizer: {l2: 0.5}, name: first}])")
          .layers.at(0);
  CHECK(definition.name == "first");
  const auto layer = std::get<layers::Conv2D>(definition.kind);
  CHECK(layer.filters == 8);
  CHECK(layer.kernel_size == Sizes{3, 5});
  CHECK(layer.strides == Sizes{2, 2});
  CHECK(layer.padding.sides == Sides{{1, 3}, {2, 4}});
  CHECK(layer.dilation == Sizes{2, 1});
  CHECK(layer.groups == 4);
  CHECK_FALSE(layer.weights.bias);
  CHECK(layer.activation == Activation::relu);
  CHECK(layer.weights.kernel_initializer->kind == Initializer::Kind::he_normal);
  CHECK(layer.weights.kernel_l2 == 0.5);

  CHECK(read<layers::Conv1D>("conv1d: {filters: 8, kernel_size: 3}").kernel_size == Sizes{3});
  CHECK(read<layers::DepthwiseConv2D>("depthwise_conv2d: {kernel_size: 3}").multiplier == 1);
  CHECK(read<layers::DepthwiseConv2D>("depthwise_conv2d: {kernel_size: 3, multiplier: 2}").multiplier == 2);
  const auto transposed = read<layers::Conv2DTranspose>("conv2d_transpose: {filters: 2, kernel_size: 3, strides: 2, output_padding: 1}");
  CHECK(transposed.output_padding == Sizes{1, 1});
  const auto torch = read<layers::Conv2D>("conv2d: {filters: 8, kernel_size: 3}", "preset: torch\n");
  CHECK(torch.weights.bias_initializer->kind == Initializer::Kind::fan_in_uniform);
}

TEST_CASE("layers: padding is a keyword, a number for all sides, one per dimension, or one per side starting at the top left") {
  const auto padding = [](const std::string& value) {
    return read<layers::Conv2D>("conv2d: {filters: 1, kernel_size: 3, padding: " + value + "}").padding;
  };
  CHECK(padding("same").fits_stride);
  CHECK(padding("same").sides.empty());
  CHECK_FALSE(padding("valid").fits_stride);
  CHECK(padding("2").sides == Sides{{2, 2}, {2, 2}});
  CHECK(padding("[1, 2]").sides == Sides{{1, 1}, {2, 2}});
  CHECK(padding("[1, 2, 3, 4]").sides == Sides{{1, 3}, {2, 4}});
  CHECK(read<layers::Conv1D>("conv1d: {filters: 1, kernel_size: 3, padding: [1, 2]}").padding.sides == Sides{{1, 2}});
}

TEST_CASE("layers: pools take window and stride, adaptive pools their output size") {
  const auto largest = read<layers::MaxPooling2D>("max_pool2d: {pool_size: 3, strides: 2, padding: 1, ceil_mode: true}");
  CHECK(largest.pool_size == Sizes{3, 3});
  CHECK(largest.strides == Sizes{2, 2});
  CHECK(largest.ceil_mode);
  CHECK(read<layers::AveragePooling1D>("average_pool1d: {pool_size: 2}").strides == Sizes{});
  CHECK(read<layers::AveragePooling1D>("average_pool1d: {pool_size: 2}").count_include_pad);
  CHECK_FALSE(read<layers::AveragePooling2D>("average_pool2d: {pool_size: 2, count_include_pad: false}").count_include_pad);
  CHECK(read<layers::AdaptiveAveragePooling>("adaptive_average_pool: {size: 7}").size == Sizes{7});
  CHECK(read<layers::AdaptiveAveragePooling>("adaptive_average_pool: {size: [7, 6]}").size == Sizes{7, 6});
  CHECK(read<layers::AveragePooling2D>("average_pool2d: {pool_size: 2, divisor: 3}").divisor == 3.0);
  CHECK_FALSE(read<layers::AveragePooling2D>("average_pool2d: {pool_size: 2}").divisor.has_value());
  CHECK(read<layers::LPPooling1D>("lp_pool1d: {pool_size: 4}").p == 2);
  const auto power = read<layers::LPPooling2D>("lp_pool2d: {pool_size: [2, 3], p: 1.5, strides: 1, padding: 1, ceil_mode: true}");
  CHECK(power.pool_size == Sizes{2, 3});
  CHECK(power.p == 1.5);
  CHECK(power.ceil_mode);
  read<layers::GlobalMaxPooling>("global_max_pool");
  CHECK(read<layers::UpSampling2D>("upsample2d: {size: 3, interpolation: bilinear}").bilinear);
  CHECK(read<layers::UpSampling2D>("upsample2d").size == Sizes{2, 2});
}

TEST_CASE("layers: batch_norm has three conventions and converts the momentum of Keras") {
  const auto own = read<layers::BatchNorm>("batch_norm");
  CHECK(own.momentum == 0.1);
  CHECK(own.epsilon == 1e-5);
  CHECK(own.biased == false);
  CHECK_FALSE(own.per_activation);
  CHECK(own.affine.gamma_initializer.kind == Initializer::Kind::ones);
  CHECK(own.affine.beta_initializer.kind == Initializer::Kind::zeros);
  const auto keras = read<layers::BatchNorm>("batch_norm: {preset: keras}");
  CHECK(*keras.momentum == doctest::Approx(0.01));
  CHECK(keras.epsilon == 1e-3);
  CHECK(keras.biased == true);
  CHECK(keras.channels_last == true);
  CHECK(read<layers::BatchNorm>("batch_norm: {preset: keras, momentum: 0.9}").momentum.value() == doctest::Approx(0.1));
  CHECK(read<layers::BatchNorm>("batch_norm", "preset: keras\n").biased == true);
  const auto gorgonia = read<layers::BatchNorm>("batch_norm: {preset: gorgonia, momentum: 0.2, epsilon: 0.1, mode: per_activation}");
  CHECK(gorgonia.momentum == 0.2);
  CHECK(gorgonia.epsilon == 0.1);
  CHECK(gorgonia.biased == false);
  CHECK(gorgonia.per_activation);
}

TEST_CASE("layers: recurrence and attention take their keys, forget gate biases follow the preset") {
  const auto lstm = read<layers::LSTM>(
      "lstm: {units: 5, num_layers: 2, bidirectional: true, dropout: 0.1, return_sequences: true, recurrent_initializer: zeros}");
  CHECK(lstm.units == 5);
  CHECK(lstm.num_layers == 2);
  CHECK(lstm.bidirectional);
  CHECK(lstm.dropout == 0.1);
  CHECK(lstm.return_sequences);
  CHECK(lstm.cell.forget_bias == 0);
  CHECK(lstm.recurrent_initializer->kind == Initializer::Kind::zeros);
  CHECK(read<layers::LSTM>("lstm: {units: 5}", "preset: keras\n").cell.forget_bias == 1);
  CHECK(read<layers::LSTM>("lstm: {units: 5}", "preset: torch\n").recurrent_initializer->kind == Initializer::Kind::fan_in_uniform);
  CHECK(read<layers::LSTM>("lstm: {units: 5}").recurrent_initializer->kind == Initializer::Kind::orthogonal);
  CHECK_FALSE(read<layers::GRU>("gru: {units: 5, linear_before_reset: false}").cell.linear_before_reset);
  CHECK(read<layers::SimpleRNN>("rnn: {units: 5, activation: relu}").cell.relu);
  const auto attention = read<layers::Attention>("attention: {heads: 4, causal: true}");
  CHECK(attention.heads == 4);
  CHECK(attention.causal);
}

TEST_CASE("layers: repeat expands its layers, residual and branches nest theirs") {
  const ModelDefinition model = model_from_text(R"(
layers:
  - repeat:
      times: 2
      layers:
        - residual:
            body: [{dense: {units: 3, name: inner}}, relu]
            activation: relu
        - dense: {units: 3, name: between}
  - branches:
      - - relu
        - tanh
      - []
  - residual: {body: [relu], shortcut: [tanh]}
)",
                                                "model.yaml");
  const std::vector<LayerDefinition>& list = model.layers;
  REQUIRE(list.size() == 6);
  const auto residual = std::get<layers::Residual>(list[0].kind);
  CHECK(residual.body.size() == 2);
  CHECK(residual.shortcut.empty());
  CHECK(residual.activation == Activation::relu);
  CHECK(list[0].where == "model.yaml:6:11: layers[0] repeat: layers[0] residual");
  CHECK(residual.body[0].where == "model.yaml:7:20: layers[0] repeat: layers[0] residual: body[0] dense");
  CHECK(list[1].name == "between");
  CHECK(list[3].name == "between_1");
  CHECK(std::get<layers::Residual>(list[2].kind).body[0].name == "inner");
  const auto branches = std::get<layers::Branches>(list[4].kind);
  REQUIRE(branches.parts.size() == 2);
  CHECK(branches.parts[0].size() == 2);
  CHECK(branches.parts[1].empty());
  CHECK(std::get<layers::Activation>(std::get<layers::Residual>(list[5].kind).shortcut[0].kind) == Activation::tanh);
}

TEST_CASE("layers: an error in an image or sequence layer has line, layer and key") {
  struct Row {
    const char* text;
    const char* message;
  };
  const Row rows[] = {
      {"conv2d: {filters: 3}",
       "model.yaml:2:13: layers[0] conv2d: key 'kernel_size' is missing; expected an integer of at least 1, or [height, width]"},
      {"conv2d: {filters: 3, kernel_size: 3, strides: 0}",
       "model.yaml:2:51: layers[0] conv2d: key 'strides': expected an integer in [1, 1048576], got '0'"},
      {"conv2d: {filters: 3, kernel_size: [3, 3, 3]}",
       "model.yaml:2:39: layers[0] conv2d: key 'kernel_size': has 3 sizes; expected an integer of at least 1, or [height, width]"},
      {"conv2d: {filters: 3, kernel_size: 3, padding: sme}",
       "model.yaml:2:51: layers[0] conv2d: key 'padding': expected same, valid, an integer of at least 0, [height, width] or [top, left, "
       "bottom, right], got 'sme'"},
      {"conv2d: {filters: 3, kernel_size: 3, padding: [1, 2, 3]}",
       "model.yaml:2:51: layers[0] conv2d: key 'padding': has 3 numbers; expected same, valid, an integer of at least 0, [height, width] "
       "or "
       "[top, left, bottom, right]"},
      {"conv2d: {filters: 3, kernel_size: 3, groups: 0}",
       "model.yaml:2:50: layers[0] conv2d: key 'groups': expected an integer in [1, 1073741824], got '0'"},
      {"max_pool2d: {pool_size: 2, count_include_pad: true}",
       "model.yaml:2:32: layers[0] max_pool2d: unknown key 'count_include_pad'; known keys: pool_size, strides, padding, ceil_mode, "
       "dilation, name, device"},
      {"batch_norm: {momentum: 2}", "model.yaml:2:28: layers[0] batch_norm: key 'momentum': expected a number in [0, 1], got '2'"},
      {"batch_norm: {mode: spacial}",
       "model.yaml:2:24: layers[0] batch_norm: key 'mode': expected one of spatial, per_activation, got 'spacial'; did you mean "
       "'spatial'?"},
      {"batch_norm: {scale: false, gamma_initializer: ones}",
       "model.yaml:2:51: layers[0] batch_norm: key 'gamma_initializer': initialises gamma, but the layer has 'scale: false'"},
      {"lstm: {units: 3, dropout: 1}", "model.yaml:2:31: layers[0] lstm: key 'dropout': expected a number in [0, 1), got '1'"},
      {"residual: {body: relu}", "model.yaml:2:22: layers[0] residual: key 'body': expected a list of layers, got 'relu'"},
      {"residual: {body: [{dens: {units: 3}}]}", "model.yaml:2:24: layers[0] residual: key 'body[0]': expected one of "},
      {"branches: []", "model.yaml:2:15: layers[0] branches: key 'parts': is empty; expected at least one list of layers"},
      {"repeat: {times: 0, layers: [relu]}", "model.yaml:2:21: layers[0] repeat: key 'times': expected an integer in [1, 10000], got '0'"},
      {"repeat: {times: 2}", "model.yaml:2:13: layers[0] repeat: key 'layers' is missing; expected a list of layers"},
      {"repeat: {times: 1000, layers: [{repeat: {times: 1000, layers: [relu]}}]}",
       "model.yaml:2:35: layers[0] repeat: key 'layers': repeats 1000 layers 1000 times, 1000000 in total; expected at most 50000"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const std::string got = layer_error(row.text), expected = row.message;
    CHECK(got.substr(0, expected.size()) == expected);
  }
}

TEST_CASE("layers: the reduced model follows the conformance block") {
  const ModelDefinition model = model_from_text(R"(
layers: [{dense: {units: 64}}, {dense: {units: 10}}]
conformance: {batch_size: 3, width: 0.25, set: {input.shape: [1, 14, 14], dtype: float64}}
)");
  REQUIRE(model.conformance.has_value());
  CHECK(model.conformance->batch_size == 3);
  CHECK(model.conformance->width == 0.25);
  REQUIRE(model.conformance->set.size() == 2);
  CHECK(model.conformance->set[0] == std::pair<std::string, std::string>{"input.shape", "[1, 14, 14]"});
  const std::string nets = std::string(TENON_SOURCE_DIRECTORY) + "/models/bench/";
  const TrainDefinition vgg = load_cut(nets + "vgg_16.yaml");
  CHECK(vgg.fit.batch_size == 2);
  CHECK(vgg.model.input_shape == std::vector<std::int64_t>{3, 32, 32});
  CHECK(std::get<layers::Conv2D>(vgg.model.layers.front().kind).filters == 4);
  CHECK(std::get<layers::Dense>(vgg.model.layers.back().kind).units == 1000);
  const TrainDefinition one = load_cut(nets + "conv_l5.yaml");
  CHECK(one.model.input_shape == std::vector<std::int64_t>{8, 13, 13});
  CHECK_ERROR_CONTAINS("missing.yaml", load_cut(std::string(TENON_SOURCE_DIRECTORY) + "/tests/unit/missing.yaml"));
}
