// SPDX-License-Identifier: Apache-2.0
// Layers that contain other layers.
#include <fmt/format.h>

#include <algorithm>

#include "layers/rule.h"

namespace tenon::layers {
namespace {

void read_residual(LayerKeys& keys, Residual& out_layer) {
  out_layer.body = keys.layers(keys.require_value("body", "a list of layers"));
  if (const auto shortcut = keys.find("shortcut"); shortcut && !shortcut->is_null()) out_layer.shortcut = keys.layers(*shortcut);
  out_layer.activation = keys.activation();
}

Value build_residual(LayerBuilder& builder, const Residual& layer, Value x) {
  const std::vector<Value> sides = builder.run_inside({&layer.body, &layer.shortcut}, x);
  const Shape body = sides[0].shape(), shortcut = sides[1].shape();
  if (!(body == shortcut)) builder.fail(fmt::format("adds body {} and shortcut {}: expected the same shape", body.str(), shortcut.str()));
  builder.row().flops = body.count() / std::max<std::int64_t>(1, body[0]);
  return builder.activate(layer.activation, ops::add(sides[0], sides[1]));
}

void read_branches(LayerKeys& keys, Branches& out_layer) {
  const yaml::Value parts = keys.require_value("parts", "a list of lists of layers");
  for (const yaml::Value& part : parts.items("a list of lists of layers")) out_layer.parts.push_back(keys.layers(part));
  if (out_layer.parts.empty()) parts.fail("is empty; expected at least one list of layers");
}

Value build_branches(LayerBuilder& builder, const Branches& layer, Value x) {
  if (layer.parts.empty()) builder.fail("expects at least one branch");
  std::vector<const std::vector<LayerDefinition>*> lists;
  for (const std::vector<LayerDefinition>& part : layer.parts) lists.push_back(&part);
  const std::vector<Value> parts = builder.run_inside(lists, x);
  const std::size_t axis = builder.features_last ? parts[0].shape().rank() - 1 : 1;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    Shape expected = parts[0].shape();
    const Shape got = parts[i].shape();
    if (expected.rank() == got.rank() && axis < got.rank()) expected.set(axis, got[axis]);
    if (!(expected == got)) {
      builder.fail(
          fmt::format("concatenates its branches along axis {}: expected equal shapes except for that axis, got {} for branch 0 and {} "
                      "for branch {}",
                      axis, parts[0].shape().str(), got.str(), i));
    }
  }
  return parts.size() == 1 ? parts[0] : ops::concat(parts, static_cast<std::int64_t>(axis));
}

}  // namespace

TENON_LAYER(Residual, "residual", read_residual, build_residual, nullptr, step_by_step);
TENON_LAYER(Branches, "branches", read_branches, build_branches);

}  // namespace tenon::layers
