// SPDX-License-Identifier: Apache-2.0
#include "layers/defaults.h"

#include <type_traits>
#include <variant>

#include "layers/definition.h"

namespace tenon::layers {
namespace {

using Kind = Initializer::Kind;

struct Defaults {
  Kind kernel = Kind::glorot_uniform, bias = Kind::zeros, recurrent = Kind::orthogonal;
  Initializer embedding{.kind = Kind::uniform};
  double forget_bias = 0;
  BatchNorm batch_norm{.momentum = 0.1, .epsilon = 1e-5, .biased = false, .channels_last = false};
  bool truncated = false;
};

Defaults defaults_of(Preset preset) {
  switch (preset) {
    case Preset::none:
      return {};
    case Preset::keras:
      return {.forget_bias = 1,
              .batch_norm = {.momentum = 1 - 0.99, .epsilon = 1e-3, .biased = true, .channels_last = true},
              .truncated = true};
    case Preset::torch:
      return {.kernel = Kind::fan_in_uniform,
              .bias = Kind::fan_in_uniform,
              .recurrent = Kind::fan_in_uniform,
              .embedding = {.kind = Kind::normal, .stddev = 1}};
    case Preset::gorgonia:
      return {.kernel = Kind::glorot_normal};
  }
  return {};
}

template <class T>
void fill(std::optional<T>& field, const T& value) {
  if (!field) field = value;
}

/// Sets what an initializer leaves open.
void fill(Initializer& initializer, const Defaults& defaults) {
  fill(initializer.truncated, defaults.truncated && may_be_truncated(initializer.kind));
}
void fill(std::optional<Initializer>& initializer, const Initializer& value, const Defaults& defaults) {
  fill(initializer, value);
  fill(*initializer, defaults);
}

void fill(BatchNorm& layer, const Defaults& defaults) {
  fill(layer.momentum, *defaults.batch_norm.momentum);
  fill(layer.epsilon, *defaults.batch_norm.epsilon);
  fill(layer.biased, *defaults.batch_norm.biased);
  fill(layer.channels_last, *defaults.batch_norm.channels_last);
}

template <class L>
void fill_layer(L& layer, const Defaults& defaults) {
  if constexpr (requires { layer.weights; }) {
    fill(layer.weights.kernel_initializer, {.kind = defaults.kernel}, defaults);
    fill(layer.weights.bias_initializer, {.kind = defaults.bias}, defaults);
  }
  if constexpr (requires { layer.recurrent_initializer; }) fill(layer.recurrent_initializer, {.kind = defaults.recurrent}, defaults);
  if constexpr (requires { layer.affine; }) {
    fill(layer.affine.gamma_initializer, defaults);
    fill(layer.affine.beta_initializer, defaults);
  }
  if constexpr (requires { layer.gamma_initializer; }) fill(layer.gamma_initializer, defaults);
  if constexpr (std::is_same_v<L, Embedding> || std::is_same_v<L, PositionEmbedding>) fill(layer.initializer, defaults.embedding, defaults);
  if constexpr (std::is_same_v<L, LSTM>) fill(layer.cell.forget_bias, defaults.forget_bias);
  if constexpr (std::is_same_v<L, BatchNorm>) fill(layer, defaults);
}

}  // namespace

bool may_be_truncated(Kind kind) {
  return kind == Kind::glorot_normal || kind == Kind::he_normal || kind == Kind::lecun_normal;
}

void set_defaults(ModelDefinition& definition) {
  const Defaults defaults = defaults_of(definition.preset);
  for_each_layer(definition.layers,
                 [&](LayerDefinition& layer) { std::visit([&](auto& kind) { fill_layer(kind, defaults); }, layer.kind); });
}

void set_defaults(BatchNorm& layer, Preset preset) {
  fill(layer, defaults_of(preset));
}

void set_defaults(LSTMCell& cell, Preset preset) {
  fill(cell.forget_bias, defaults_of(preset).forget_bias);
}

}  // namespace tenon::layers
