// SPDX-License-Identifier: Apache-2.0
// model.yaml: normalisation layers.
#include "config/layers_yaml.h"

namespace tenon::config {
namespace {

using Kind = LayerDefinition::Kind;

void read_affine(Section& section, Preset preset, NormDefinition& norm) {
  norm.scale = section.get<bool>("scale", true);
  norm.center = section.get<bool>("center", true);
  const auto read = [&](const char* key, bool used, const char* without, Initializer& out_initializer) {
    const auto value = section.find(key);
    if (!value) return;
    out_initializer = read_initializer(*value, preset);
    if (!used) value->fail(without);
  };
  read("gamma_initializer", norm.scale, "initialises gamma, but the layer has 'scale: false'", norm.gamma_initializer);
  read("beta_initializer", norm.center, "initialises beta, but the layer has 'center: false'", norm.beta_initializer);
}

double read_epsilon(Section& section, double default_value) {
  return section.get<double>("epsilon", default_value, {.lowest = 0, .above_lowest = true});
}

/// Three conventions: ours (that of cuDNN and PyTorch); Keras's, whose momentum is the share of the old value; and Gorgonia's, which is
/// ours with a user-given epsilon.
void read_batch_norm(Section& section, const LayerContext& context, LayerDefinition& out_layer) {
  NormDefinition& norm = out_layer.norm;
  static const std::vector<Choice<Preset>> all_presets = {
      {"tenon", Preset::none}, {"none", Preset::none}, {"torch", Preset::torch}, {"keras", Preset::keras}, {"gorgonia", Preset::gorgonia}};
  const bool keras = section.choice("preset", context.preset, all_presets) == Preset::keras;
  const double momentum = section.get<double>("momentum", keras ? 0.99 : 0.1, {.lowest = 0, .highest = 1});
  norm.momentum = keras ? 1 - momentum : momentum;
  norm.epsilon = read_epsilon(section, keras ? 1e-3 : 1e-5);
  norm.biased = keras;
  norm.channels_last = keras;
  norm.axis = section.get_optional<std::int64_t>("axis", {-8, 7});
  static const std::vector<Choice<bool>> modes = {{"spatial", false}, {"per_activation", true}};
  norm.per_activation = section.choice("mode", false, modes);
  if (norm.per_activation && norm.axis) section.find("axis")->fail("has no effect with mode: per_activation");
  read_affine(section, context.preset, norm);
}

void read_layer_norm(Section& section, const LayerContext& context, LayerDefinition& out_layer) {
  NormDefinition& norm = out_layer.norm;
  norm.axis = section.get_optional<std::int64_t>("axis", {-8, 7});
  norm.epsilon = read_epsilon(section, 1e-5);
  if (out_layer.kind != Kind::rms_norm) return read_affine(section, context.preset, norm);
  norm.center = false;
  norm.scale = section.get<bool>("scale", true);
  if (const auto gamma = section.find("gamma_initializer")) {
    norm.gamma_initializer = read_initializer(*gamma, context.preset);
    if (!norm.scale) gamma->fail("initialises gamma, but the layer has 'scale: false'");
  }
}

void read_group_norm(Section& section, const LayerContext& context, LayerDefinition& out_layer) {
  if (out_layer.kind == Kind::group_norm) {
    out_layer.norm.groups = section.require<std::int64_t>("groups", "an integer of at least 1", from_one);
  }
  out_layer.norm.epsilon = read_epsilon(section, 1e-5);
  read_affine(section, context.preset, out_layer.norm);
}

void read_lrn(Section& section, const LayerContext&, LayerDefinition& out_layer) {
  NormDefinition& norm = out_layer.norm;
  norm.size = section.get<std::int64_t>("size", norm.size, from_one);
  norm.alpha = section.get<double>("alpha", norm.alpha);
  norm.beta = section.get<double>("beta", norm.beta);
  norm.bias = section.get<double>("bias", norm.bias, {.lowest = 0, .above_lowest = true});
}

constexpr LayerReader readers[] = {
    {Kind::batch_norm, read_batch_norm},    {Kind::layer_norm, read_layer_norm}, {Kind::group_norm, read_group_norm},
    {Kind::instance_norm, read_group_norm}, {Kind::rms_norm, read_layer_norm},   {Kind::lrn, read_lrn},
};

}  // namespace

std::span<const LayerReader> norm_layer_readers() {
  return readers;
}

}  // namespace tenon::config
