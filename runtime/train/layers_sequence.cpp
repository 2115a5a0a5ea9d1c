// SPDX-License-Identifier: Apache-2.0
// Layers for sequences (batch, time, features): recurrent layers and attention.
#include <fmt/core.h>

#include <cmath>

#include "train/layers.h"

namespace tenon::train {
namespace {

using Kind = LayerDefinition::Kind;

void expect_sequence(LayerBuild& build, const LayerDefinition& layer, const Shape& shape) {
  if (shape.rank() != 3) {
    layer.fail(fmt::format("'{}' expects (batch, time, features), got {}", build.name(), shape.str()));
  }
  if (shape[1] == 0 || shape[2] == 0)
    layer.fail(fmt::format("'{}' expects at least 1 time step and 1 feature, got {}", build.name(), shape.str()));
}

std::int64_t gates_of(Kind kind) {
  return kind == Kind::lstm ? 4 : kind == Kind::gru ? 3 : 1;
}

/// b (D, 2 G H): biases of the products with x, then with h. They are separate parameters only if the reset gate is applied after the
/// product with h. The forget bias is a constant added to the learned bias, like TensorFlow's forget_bias.
Value biases(LayerBuild& build, const LayerDefinition& layer, const char* suffix, std::int64_t directions, std::int64_t fan_in) {
  const std::int64_t rows = gates_of(layer.kind) * layer.units;
  const bool separate = layer.kind == Kind::gru && layer.sequence.linear_before_reset;
  if (layer.bias && separate) {
    return build.parameter(layer, suffix, {directions, 2 * rows}, layer.bias_initializer, {.fan_in = fan_in});
  }
  const double forget = layer.kind == Kind::lstm ? layer.sequence.forget_bias : 0;
  if (!layer.bias && forget == 0) return {};
  Tensor rest = Tensor::zeros(build.dtype(), {directions, rows});
  for (std::int64_t d = 0; forget != 0 && d < directions; ++d) {
    for (std::int64_t i = 2 * layer.units; i < 3 * layer.units; ++i) {  // i o f c
      const std::int64_t at = d * rows + i;
      if (build.dtype() == DType::f64) {
        rest.data<double>()[at] = forget;
      } else {
        rest.data<float>()[at] = static_cast<float>(forget);
      }
    }
  }
  const Value constant = build.graph().constant(rest);
  const Value learned = layer.bias ? build.parameter(layer, suffix, {directions, rows}, layer.bias_initializer, {.fan_in = fan_in})
                                   : build.graph().constant(Tensor::zeros(build.dtype(), {directions, rows}));
  return ops::concat({learned, constant}, 1);
}

Value recurrent(LayerBuild& build, const LayerDefinition& layer, Value x) {
  const SequenceDefinition& of = layer.sequence;
  expect_sequence(build, layer, x.shape());
  const std::int64_t batch = x.shape()[0], time = x.shape()[1], hidden = layer.units;
  const std::int64_t directions = of.bidirectional ? 2 : 1, rows = gates_of(layer.kind) * hidden;
  const ops::Direction direction = of.bidirectional ? ops::Direction::both : ops::Direction::forward;
  x = ops::transpose(x, {1, 0, 2});
  ops::RecurrentResult result;
  for (std::int64_t l = 0; l < of.num_layers; ++l) {
    const std::string suffix = of.num_layers == 1 ? "" : fmt::format("_{}", l);
    const std::int64_t features = x.shape()[2];
    // PyTorch initialises all parameters of a layer by its number of units.
    const bool torch = layer.kernel_initializer.kind == Initializer::Kind::fan_in_uniform;
    ops::RecurrentValues values;
    values.w = build.parameter(layer, ("kernel" + suffix).c_str(), {directions, rows, features}, layer.kernel_initializer,
                               {.fan_in = torch ? hidden : features, .fan_out = rows, .block = {rows, features}});
    values.r = build.parameter(layer, ("recurrent_kernel" + suffix).c_str(), {directions, rows, hidden}, of.recurrent_initializer,
                               {.fan_in = hidden, .fan_out = rows, .block = {rows, hidden}});
    values.b = biases(build, layer, ("bias" + suffix).c_str(), directions, hidden);
    build.row().flops += time * directions * 2 * rows * (features + hidden);
    switch (layer.kind) {
      case Kind::lstm:
        result = ops::lstm(x, values, direction);
        break;
      case Kind::gru:
        result = ops::gru(x, values, direction, of.linear_before_reset);
        break;
      default:
        result = ops::rnn(x, values, direction, of.relu ? ops::RnnActivation::relu : ops::RnnActivation::tanh);
    }
    x = directions == 1 ? result.y : ops::transpose(result.y, {0, 2, 1, 3});  // (T, D, B, H) to (T, B, D, H)
    x = ops::reshape(x, {time, batch, directions * hidden});
    if (l + 1 < of.num_layers) x = build.dropout(x, of.dropout);
  }
  build.features_last = true;
  if (of.return_sequences) return ops::transpose(x, {1, 0, 2});
  const Value last = directions == 1 ? result.h : ops::transpose(result.h, {1, 0, 2});
  return ops::reshape(last, {batch, directions * hidden});
}

Value attention(LayerBuild& build, const LayerDefinition& layer, Value x) {
  expect_sequence(build, layer, x.shape());
  const std::int64_t batch = x.shape()[0], time = x.shape()[1], width = x.shape()[2], heads = layer.sequence.heads;
  if (width % heads != 0) {
    layer.fail(fmt::format("'{}' has {} heads, expected a divisor of its {} features", build.name(), heads, width));
  }
  const Value rows = ops::reshape(x, {batch * time, width});
  const auto project = [&](Value from, const char* kernel, const char* bias) {
    Value y = ops::matmul(from, build.parameter(layer, kernel, {width, width}, layer.kernel_initializer, {.fan_in = width}));
    if (layer.bias) y = ops::add(y, build.parameter(layer, bias, {width}, layer.bias_initializer, {.fan_in = width}));
    return y;
  };
  const auto by_head = [&](Value y) { return ops::transpose(ops::reshape(y, {batch, time, heads, width / heads}), {0, 2, 1, 3}); };
  const Value q = by_head(project(rows, "query_kernel", "query_bias"));
  const Value k = by_head(project(rows, "key_kernel", "key_bias"));
  const Value v = by_head(project(rows, "value_kernel", "value_bias"));
  ops::AttentionOptions options;
  options.causal = layer.sequence.causal;
  const Value seen = ops::reshape(ops::transpose(ops::attention(q, k, v, options), {0, 2, 1, 3}), {batch * time, width});
  build.row().flops = 8 * time * width * width + 4 * time * time * width;
  build.features_last = true;
  return ops::reshape(project(seen, "output_kernel", "output_bias"), {batch, time, width});
}

const LayerRule rules[] = {
    {Kind::lstm, "lstm", "LSTM", recurrent},
    {Kind::gru, "gru", "GRU", recurrent},
    {Kind::rnn, "rnn", "SimpleRNN", recurrent},
    {Kind::attention, "attention", "Attention", attention},
};

}  // namespace

std::span<const LayerRule> sequence_layers() {
  return rules;
}

}  // namespace tenon::train
