// SPDX-License-Identifier: Apache-2.0
#include "layers/keys.h"

#include <fmt/format.h>

#include "layers/activation.h"
#include "layers/defaults.h"

namespace tenon::layers {
namespace {

using Kind = Initializer::Kind;

const std::vector<yaml::Choice<Kind>>& initializer_words() {
  static const std::vector<yaml::Choice<Kind>> words = {{"zeros", Kind::zeros},
                                                        {"ones", Kind::ones},
                                                        {"constant", Kind::constant},
                                                        {"uniform", Kind::uniform},
                                                        {"normal", Kind::normal},
                                                        {"glorot_uniform", Kind::glorot_uniform},
                                                        {"glorot_normal", Kind::glorot_normal},
                                                        {"he_uniform", Kind::he_uniform},
                                                        {"he_normal", Kind::he_normal},
                                                        {"lecun_uniform", Kind::lecun_uniform},
                                                        {"lecun_normal", Kind::lecun_normal},
                                                        {"fan_in_uniform", Kind::fan_in_uniform},
                                                        {"truncated_normal", Kind::truncated_normal},
                                                        {"orthogonal", Kind::orthogonal},
                                                        {"identity", Kind::identity}};
  return words;
}

}  // namespace

Initializer LayerKeys::read_initializer(const yaml::Value& value) {
  Initializer result;
  yaml::Section section = value.section_with("name");
  result.kind = section.require_value("name", "the name of an initializer").as_choice(initializer_words());
  switch (result.kind) {
    case Kind::zeros:
    case Kind::ones:
      break;
    case Kind::constant:
      result.value = section.require<double>("value", "a number");
      break;
    case Kind::uniform:
      result.low = section.get<double>("low", result.low);
      result.high = section.get<double>("high", result.high);
      if (result.low >= result.high) section.fail(fmt::format("low {} is not below high {}", result.low, result.high));
      break;
    case Kind::normal:
    case Kind::truncated_normal:
      result.mean = section.get<double>("mean", result.mean);
      result.stddev = section.get<double>("stddev", result.stddev, {0});
      break;
    default:
      result.gain = section.get<double>("gain", result.gain, {.lowest = 0, .above_lowest = true});
      if (may_be_truncated(result.kind)) result.truncated = section.get_optional<bool>("truncated");
  }
  section.finish();
  return result;
}

Activation LayerKeys::activation() {
  Activation activation;
  const auto value = find("activation", "a name, or a map with the key name", "linear");
  if (!value) return activation;
  attempt([&] {
    yaml::Section section = value->section_with("name");
    const auto function = section.require_value("name", "the name of an activation").as_choice(activation_words());
    activation = read_activation(section, function);
    section.finish();
  });
  return activation;
}

Weights LayerKeys::weights() {
  Weights weights;
  weights.bias = get<bool>("bias", true);
  initializer("kernel_initializer", weights.kernel_initializer);
  const auto bias = initializer("bias_initializer", weights.bias_initializer);
  attempt([&] {
    if (std::optional<Section> regularizer = child("kernel_regularizer")) {
      weights.kernel_l1 = regularizer->get<double>("l1", 0, {.lowest = 0});
      weights.kernel_l2 = regularizer->get<double>("l2", 0, {.lowest = 0});
    }
  });
  if (bias && !weights.bias) attempt([&] { bias->fail("initialises the bias, but the layer has 'bias: false'"); });
  return weights;
}

std::vector<LayerDefinition> LayerKeys::layers(const yaml::Value& list) const {
  return read_layers(list, preset_, label_);
}

}  // namespace tenon::layers

namespace tenon {

const char* name_of(Initializer::Kind kind) {
  return yaml::word_of(layers::initializer_words(), kind);
}

}  // namespace tenon
