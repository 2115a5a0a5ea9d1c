// SPDX-License-Identifier: Apache-2.0
// Recurrent layers on sequences (batch, time, features).
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "layers/defaults.h"
#include "layers/rule.h"
#include "layers/sequence.h"

namespace tenon::layers {
namespace {

// ---------------------------------------------------------------- cells

template <class Cell>
constexpr std::int64_t gates = std::is_same_v<Cell, LSTMCell>  ? 4
                               : std::is_same_v<Cell, GRUCell> ? 3
                                                               : 1;

void read_cell(LayerKeys& keys, LSTMCell& out_cell) {
  set_defaults(out_cell, keys.preset());
  out_cell.forget_bias = keys.get<double>("forget_bias", *out_cell.forget_bias);
}
void read_cell(LayerKeys& keys, GRUCell& out_cell) {
  out_cell.linear_before_reset = keys.get<bool>("linear_before_reset", true);
}
void read_cell(LayerKeys& keys, SimpleRNNCell& out_cell) {
  static const std::vector<yaml::Choice<bool>> activations = {{"tanh", false}, {"relu", true}};
  out_cell.relu = keys.choice("activation", false, activations);
}

ops::RecurrentResult build_cell(const LSTMCell&, Value x, const ops::RecurrentValues& values, ops::Direction direction) {
  return ops::lstm(x, values, direction);
}
ops::RecurrentResult build_cell(const GRUCell& cell, Value x, const ops::RecurrentValues& values, ops::Direction direction) {
  return ops::gru(x, values, direction, cell.linear_before_reset);
}
ops::RecurrentResult build_cell(const SimpleRNNCell& cell, Value x, const ops::RecurrentValues& values, ops::Direction direction) {
  return ops::rnn(x, values, direction, cell.relu ? ops::RnnActivation::relu : ops::RnnActivation::tanh);
}

/// Writes the forget gate's bias into the third block of each row of `biases`: i o f c.
template <class T>
void set_forget_bias(Tensor& biases, std::int64_t units, double value) {
  const Shape shape = biases.shape();
  for (std::int64_t d = 0; d < shape[0]; ++d) {
    std::fill_n(biases.data<T>() + d * shape[1] + 2 * units, units, static_cast<T>(value));
  }
}

// ---------------------------------------------------------------- recurrent layers

template <class Cell>
void read_recurrent(LayerKeys& keys, Recurrent<Cell>& out_layer) {
  out_layer.units = keys.count("units");
  out_layer.num_layers = keys.get<std::int64_t>("num_layers", 1, {1, 1000});
  out_layer.bidirectional = keys.get<bool>("bidirectional", false);
  out_layer.dropout = keys.get<double>("dropout", 0, {.lowest = 0, .highest = 1, .below_highest = true});
  out_layer.return_sequences = keys.get<bool>("return_sequences", false);
  read_cell(keys, out_layer.cell);
  out_layer.weights = keys.weights();
  keys.initializer("recurrent_initializer", out_layer.recurrent_initializer);
}

/// b (D, 2 G H): biases of the products with x, then with h. They are separate parameters only if the reset gate is applied after the
/// product with h. The forget bias is a constant added to the learned bias, like TensorFlow's forget_bias.
template <class Cell>
Value biases(LayerBuilder& builder, const Recurrent<Cell>& layer, const std::string& name, std::int64_t directions) {
  const std::int64_t rows = gates<Cell> * layer.units;
  const auto learned = [&](std::int64_t columns) {
    return builder.parameter(name, {directions, columns}, *layer.weights.bias_initializer, {.fan_in = layer.units});
  };
  if constexpr (std::is_same_v<Cell, GRUCell>) {
    if (layer.weights.bias && layer.cell.linear_before_reset) return learned(2 * rows);
  }
  double forget = 0;
  if constexpr (std::is_same_v<Cell, LSTMCell>) forget = *layer.cell.forget_bias;
  if (!layer.weights.bias && forget == 0) return {};
  Tensor rest = Tensor::zeros(builder.dtype(), {directions, rows});
  if (forget != 0) {
    builder.dtype() == DType::f64 ? set_forget_bias<double>(rest, layer.units, forget) : set_forget_bias<float>(rest, layer.units, forget);
  }
  const Value constant = builder.graph().constant(rest);
  const Value first = layer.weights.bias ? learned(rows) : builder.graph().constant(Tensor::zeros(builder.dtype(), {directions, rows}));
  return ops::concat({first, constant}, 1);
}

template <class Cell>
Value build_recurrent(LayerBuilder& builder, const Recurrent<Cell>& layer, Value x) {
  expect_sequence(builder, x.shape());
  builder.expect_positive("units", layer.units);
  builder.expect_positive("num_layers", layer.num_layers);
  const std::int64_t batch = x.shape()[0], time = x.shape()[1], hidden = layer.units;
  const std::int64_t directions = layer.bidirectional ? 2 : 1, rows = gates<Cell> * hidden;
  const ops::Direction direction = layer.bidirectional ? ops::Direction::both : ops::Direction::forward;
  x = ops::transpose(x, {1, 0, 2});
  ops::RecurrentResult result;
  for (std::int64_t l = 0; l < layer.num_layers; ++l) {
    const std::string suffix = layer.num_layers == 1 ? "" : fmt::format("_{}", l);
    const std::int64_t features = x.shape()[2];
    // PyTorch initialises all parameters of a layer by its number of units.
    const bool torch = layer.weights.kernel_initializer->kind == Initializer::Kind::fan_in_uniform;
    ops::RecurrentValues values;
    values.w = builder.parameter("kernel" + suffix, {directions, rows, features}, *layer.weights.kernel_initializer,
                                 {.fan_in = torch ? hidden : features, .fan_out = rows, .block = {rows, features}});
    values.r = builder.parameter("recurrent_kernel" + suffix, {directions, rows, hidden}, *layer.recurrent_initializer,
                                 {.fan_in = hidden, .fan_out = rows, .block = {rows, hidden}});
    values.b = biases(builder, layer, "bias" + suffix, directions);
    builder.row().flops += time * directions * 2 * rows * (features + hidden);
    const auto past = [&](const char* name) { return builder.decoding_state(name + suffix, {1, batch, hidden}); };
    if (builder.decoding() != nullptr) {
      values.h0 = past("h");
      if (std::is_same_v<Cell, LSTMCell>) values.c0 = past("c");
    }
    result = build_cell(layer.cell, x, values, direction);
    if (builder.decoding() != nullptr) {
      builder.graph().update(values.h0, result.h);
      if (values.c0.present()) builder.graph().update(values.c0, result.c);
    }
    x = directions == 1 ? result.y : ops::transpose(result.y, {0, 2, 1, 3});  // (T, D, B, H) to (T, B, D, H)
    x = ops::reshape(x, {time, batch, directions * hidden});
    if (l + 1 < layer.num_layers) x = builder.dropout(x, layer.dropout);
  }
  builder.features_last = true;
  if (layer.return_sequences) return ops::transpose(x, {1, 0, 2});
  const Value last = directions == 1 ? result.h : ops::transpose(result.h, {1, 0, 2});
  return ops::reshape(last, {batch, directions * hidden});
}

/// Whether no step depends on a later one, and all are there.
template <class Cell>
bool is_causal(const Recurrent<Cell>& layer) {
  return !layer.bidirectional && layer.return_sequences;
}

}  // namespace

TENON_LAYER(LSTM, "lstm", read_recurrent<LSTMCell>, build_recurrent<LSTMCell>, &LSTM::units, is_causal<LSTMCell>);
TENON_LAYER(GRU, "gru", read_recurrent<GRUCell>, build_recurrent<GRUCell>, &GRU::units, is_causal<GRUCell>);
TENON_LAYER(SimpleRNN, "rnn", read_recurrent<SimpleRNNCell>, build_recurrent<SimpleRNNCell>, &SimpleRNN::units, is_causal<SimpleRNNCell>);

}  // namespace tenon::layers
