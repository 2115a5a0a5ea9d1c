// SPDX-License-Identifier: Apache-2.0
// Layers that tell the steps of a sequence apart, or take their mean.
#include <fmt/format.h>

#include <cmath>

#include "layers/rule.h"
#include "layers/sequence.h"

namespace tenon::layers {

void expect_sequence(LayerBuilder& builder, const Shape& shape) {
  if (shape.rank() != 3) builder.fail(fmt::format("expects (batch, time, features), got {}", shape.str()));
  if (shape[1] == 0 || shape[2] == 0) {
    builder.fail(fmt::format("expects at least 1 time step and 1 feature, got {}", shape.str()));
  }
}

Value constant_matrix(LayerBuilder& builder, std::int64_t rows, std::int64_t columns,
                      const std::function<double(std::int64_t row, std::int64_t column)>& element) {
  Tensor values = Tensor::empty(builder.dtype(), {rows, columns});
  const auto fill = [&](auto* to) {
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      to[i] = static_cast<std::remove_pointer_t<decltype(to)>>(element(i / columns, i % columns));
    }
  };
  builder.dtype() == DType::f64 ? fill(values.data<double>()) : fill(values.data<float>());
  return builder.graph().constant(values);
}

std::int64_t positions(const LayerBuilder& builder, std::int64_t time) {
  return builder.decoding() == nullptr ? time : builder.decoding()->capacity;
}

Value rows_of_steps(LayerBuilder& builder, Value table, std::int64_t time) {
  if (builder.decoding() != nullptr) return ops::gather(table, builder.decoding()->steps, 0);
  return table.shape()[0] == time ? table : ops::slice(table, 0, 0, time);
}

namespace {

void read_position_embedding(LayerKeys& keys, PositionEmbedding& out_layer) {
  out_layer.length = keys.count("length");
  keys.initializer("initializer", out_layer.initializer);
}

Value build_position_embedding(LayerBuilder& builder, const PositionEmbedding& layer, Value x) {
  expect_sequence(builder, x.shape());
  builder.expect_positive("length", layer.length);
  const std::int64_t time = x.shape()[1], width = x.shape()[2], needed = positions(builder, time);
  if (needed > layer.length) builder.fail(fmt::format("has {} positions, expected at least {}, one for each step", layer.length, needed));
  const Value table = builder.parameter("embeddings", {layer.length, width}, *layer.initializer, {.fan_in = layer.length});
  builder.row().flops = time * width;
  builder.features_last = true;
  return ops::add(x, rows_of_steps(builder, table, time));
}

void read_sinusoidal(LayerKeys& keys, SinusoidalPosition& out_layer) {
  out_layer.wavelength = keys.get<double>("wavelength", out_layer.wavelength, {.lowest = 0, .above_lowest = true});
}

Value build_sinusoidal(LayerBuilder& builder, const SinusoidalPosition& layer, Value x) {
  expect_sequence(builder, x.shape());
  if (!(layer.wavelength > 0)) builder.fail(fmt::format("has the wavelength {}, expected a positive number", layer.wavelength));
  const std::int64_t time = x.shape()[1], width = x.shape()[2];
  const Value table = constant_matrix(builder, positions(builder, time), width, [&](std::int64_t step, std::int64_t i) {
    const double turn = static_cast<double>(i - i % 2) / static_cast<double>(width);
    const double angle = static_cast<double>(step) / std::pow(layer.wavelength, turn);
    return i % 2 == 0 ? std::sin(angle) : std::cos(angle);
  });
  builder.row().flops = time * width;
  builder.features_last = true;
  return ops::add(x, rows_of_steps(builder, table, time));
}

Value build_mean_over_time(LayerBuilder& builder, const MeanOverTime&, Value x) {
  expect_sequence(builder, x.shape());
  const std::int64_t time = x.shape()[1];
  builder.row().flops = time * x.shape()[2];
  builder.features_last = true;
  const Value real = builder.real_steps(time);
  if (!real.present()) return ops::reduce_mean(x, {1});
  const Value weights = ops::cast(real, builder.dtype());
  const Value count = ops::maximum(ops::reduce_sum(weights, {1}, true), 1);
  return ops::div(ops::reduce_sum(ops::mul(x, ops::unsqueeze(weights, {2})), {1}), count);
}

}  // namespace

TENON_LAYER(PositionEmbedding, "position_embedding", read_position_embedding, build_position_embedding, nullptr, step_by_step);
TENON_LAYER(SinusoidalPosition, "sinusoidal_position", read_sinusoidal, build_sinusoidal, nullptr, step_by_step);
TENON_LAYER(MeanOverTime, "mean_over_time", nullptr, build_mean_over_time);

}  // namespace tenon::layers
