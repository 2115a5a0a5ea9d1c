// SPDX-License-Identifier: Apache-2.0
#include "layers/activation.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include <tenon/error.h>

#include "layers/rule.h"

namespace tenon::layers {
namespace {

using Kind = tenon::Activation;

struct Function {
  const char* name;  ///< in YAML
  Kind kind;
  Value (*apply)(Value x);
  Value (*apply_alpha)(Value x, double alpha) = nullptr;  ///< null: the function has no parameter
};

constexpr Function functions[] = {
    {"linear", Kind::linear, [](Value x) { return x; }},
    {"relu", Kind::relu, ops::relu},
    {"sigmoid", Kind::sigmoid, ops::sigmoid},
    {"tanh", Kind::tanh, ops::tanh},
    {"softmax", Kind::softmax, [](Value x) { return ops::softmax(x); }},
    {"log_softmax", Kind::log_softmax, [](Value x) { return ops::log_softmax(x); }},
    {"relu6", Kind::relu6, ops::relu6},
    {"leaky_relu", Kind::leaky_relu, [](Value x) { return ops::leaky_relu(x); }, ops::leaky_relu},
    {"elu", Kind::elu, [](Value x) { return ops::elu(x); }, ops::elu},
    {"softplus", Kind::softplus, ops::softplus},
    {"mish", Kind::mish, ops::mish},
    {"gelu", Kind::gelu, [](Value x) { return ops::gelu(x); }},
    {"silu", Kind::silu, ops::silu},
    {"gelu_tanh", Kind::gelu_tanh, [](Value x) { return ops::gelu(x, true); }},
    {"selu", Kind::selu, ops::selu},
    {"hard_swish", Kind::hard_swish, ops::hard_swish},
};

const Function& function_of(Kind kind) {
  const auto* const found = std::ranges::find(functions, kind, &Function::kind);
  if (found == std::end(functions)) throw Error(Status::internal, "an activation without a row in layers/activation.cpp");
  return *found;
}

/// Here `name` is the function; the builder names the layer.
void read_activation_layer(LayerKeys& keys, Activation& out_layer) {
  out_layer = read_activation(keys, keys.require_value("name", "the name of an activation").as_choice(activation_words()));
}

Value build_activation(LayerBuilder& builder, const Activation& layer, Value x) {
  builder.row().type += fmt::format(" {}", name_of(layer.function));
  if (layer.alpha) builder.row().type += fmt::format(" {:g}", *layer.alpha);
  return builder.activate(layer, x);
}

void read_prelu(LayerKeys& keys, PReLU& out_layer) {
  out_layer.start = keys.get<double>("start", out_layer.start);
  out_layer.shared = keys.get<bool>("shared", out_layer.shared);
}

/// The axis of the features or channels.
std::size_t feature_axis(LayerBuilder& builder, const Shape& shape) {
  if (shape.rank() < 2) builder.fail(fmt::format("expects (batch, features) or (batch, channels, ...), got {}", shape.str()));
  return builder.features_last ? shape.rank() - 1 : 1;
}

Value build_prelu(LayerBuilder& builder, const PReLU& layer, Value x) {
  const std::size_t axis = feature_axis(builder, x.shape());
  const std::int64_t count = layer.shared ? 1 : x.shape()[axis];
  Shape line{count};  // broadcasts along the axes behind the features
  for (std::size_t i = axis + 1; i < x.shape().rank(); ++i) line.push_back(1);
  const Value slope = builder.parameter("slope", {count}, {.kind = Initializer::Kind::constant, .value = layer.start}, {.fan_in = count});
  builder.row().flops = per_sample(x.shape());
  return ops::prelu(x, ops::reshape(slope, line));
}

Value build_glu(LayerBuilder& builder, const GLU&, Value x) {
  const std::size_t axis = feature_axis(builder, x.shape());
  if (x.shape()[axis] % 2 != 0) {
    builder.fail(fmt::format("expects an even number of {}, got {}", builder.features_last ? "features" : "channels", x.shape().str()));
  }
  builder.row().flops = per_sample(x.shape());
  return ops::glu(x, static_cast<std::int64_t>(axis));
}

}  // namespace

TENON_LAYER(PReLU, "prelu", read_prelu, build_prelu);
TENON_LAYER(GLU, "glu", nullptr, build_glu);
TENON_LAYER(Activation, "activation", read_activation_layer, build_activation, nullptr, step_by_step);

const std::vector<yaml::Choice<Kind>>& activation_words() {
  static const std::vector<yaml::Choice<Kind>> words = [] {
    std::vector<yaml::Choice<Kind>> all;
    for (const Function& function : functions) all.push_back({function.name, function.kind});
    return all;
  }();
  return words;
}

bool takes_alpha(Kind function) {
  return function_of(function).apply_alpha != nullptr;
}

Activation read_activation(yaml::Section& keys, Kind function) {
  Activation activation = function;
  if (takes_alpha(function)) activation.alpha = keys.get_optional<double>("alpha", {.lowest = 0});
  return activation;
}

Value apply(const Activation& activation, Value x) {
  const Function& function = function_of(activation.function);
  return activation.alpha ? function.apply_alpha(x, *activation.alpha) : function.apply(x);
}

}  // namespace tenon::layers

namespace tenon {

const char* name_of(Activation activation) {
  return layers::function_of(activation).name;
}

}  // namespace tenon
