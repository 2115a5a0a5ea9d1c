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

}  // namespace

TENON_LAYER(Activation, "activation", read_activation_layer, build_activation);

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
