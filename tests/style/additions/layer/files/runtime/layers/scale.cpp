// SPDX-License-Identifier: Apache-2.0
// Learned factors.
// Source  Touvron et al. (2021): Going deeper with image transformers.
#include <fmt/format.h>

#include "layers/rule.h"

namespace tenon::layers {
namespace {

void read_layer_scale(LayerKeys& keys, LayerScale& out_layer) {
  out_layer.initial = keys.get<double>("initial", out_layer.initial);
}

Value build_layer_scale(LayerBuilder& builder, const LayerScale& layer, Value x) {
  const Shape shape = x.shape();
  if (shape.rank() < 2) builder.fail(fmt::format("expects (batch, ..., features), got {}", shape.str()));
  const std::int64_t features = shape[shape.rank() - 1];
  builder.row().flops = per_sample(shape);
  return ops::mul(
      x, builder.parameter("gamma", {features}, {.kind = Initializer::Kind::constant, .value = layer.initial}, {.fan_in = features}));
}

}  // namespace

TENON_LAYER(LayerScale, "layer_scale", read_layer_scale, build_layer_scale);

}  // namespace tenon::layers
