// SPDX-License-Identifier: Apache-2.0
// onnx/export/rules/resize.cpp - Resize, by scales or by sizes.
#include <array>
#include <cmath>

#include "onnx/export/rules.h"

namespace tenon::onnx::exporting {
namespace {

/// By scales if f32 holds them and they give the sizes, so that the batch stays open; else by sizes, whose quotients the scales have to be.
void resize(Node& node) {
  const auto& attributes = node.attributes<tenon_attributes_resize>();
  static constexpr std::array<const char*, 2> modes = {"nearest", "linear"};
  static constexpr std::array<const char*, 4> coordinates = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
  static constexpr std::array<const char*, 4> roundings = {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"};
  const Sizes from = node.input_sizes(0), to = node.output_sizes();
  bool scales_hold = true, sizes_hold = true;
  std::vector<float> scales;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const double scale = attributes.scales[i];
    const auto rounded = scales.emplace_back(static_cast<float>(scale));
    if (scale == 1 && from[i] == to[i]) continue;
    const std::vector<std::int64_t> counts = node.fixed({from[i], to[i]}, "a size");
    const auto size = static_cast<double>(counts[0]);
    scales_hold &= static_cast<double>(rounded) == scale && std::floor(size * scale) == static_cast<double>(counts[1]);
    sizes_hold &= std::fabs(static_cast<double>(counts[1]) / size - scale) <= 1e-12 * scale;
  }
  if (!scales_hold && !sizes_hold) node.fail("its scales are neither numbers of f32 nor quotients of its sizes, as ONNX has them");
  const auto rank = static_cast<std::int64_t>(from.size());
  std::vector<Term> operands = {node.input(0), {}, {}};
  if (scales_hold) {
    operands[2] = node.constant(Tensor::of(scales, {rank}));
  } else {
    operands.push_back(node.shape(to));
  }
  node.output(0, node.op("Resize", operands,
                         {text("mode", modes[attributes.mode]), text("coordinate_transformation_mode", coordinates[attributes.coordinates]),
                          text("nearest_mode", roundings[attributes.rounding])}));
}

}  // namespace

const std::vector<Rule>& resize_rules() {
  static const std::vector<Rule> rules = {{TENON_OP_Resize, resize}};
  return rules;
}

}  // namespace tenon::onnx::exporting
