// SPDX-License-Identifier: Apache-2.0
// RMSNormalization and its gradient.
#include "op_family.h"

namespace tenon::conformance {
namespace {

AttributeBytes from_axis(std::int64_t axis) {
  return tenon_attributes_layer_norm{.axis = axis, .epsilon = 1e-5};
}
Dims statistics_of(Dims shape, std::int64_t axis) {
  std::fill(shape.begin() + axis, shape.end(), 1);
  return shape;
}

/// Without a scale the only results are y and dx.
Variant forward(const Dims& shape, std::int64_t axis, bool scaled) {
  return {fmt::format("axis={}{}", axis, scaled ? "" : ",no_scale"),
          {operand(shape, {.special = Special::not_large}), scaled ? operand({shape.begin() + axis, shape.end()}) : absent},
          {result(shape), scaled ? result(statistics_of(shape, axis)) : omitted},
          from_axis(axis)};
}
Variant backward(const Dims& shape, std::int64_t axis, bool scaled) {
  const Dims line{shape.begin() + axis, shape.end()};
  return {fmt::format("axis={}{}", axis, scaled ? "" : ",no_scale"),
          {operand(shape, {.low = -1, .high = 2}), operand(shape), scaled ? operand(line) : absent,
           operand(statistics_of(shape, axis), {.low = 0.5, .high = 2})},
          {result(shape), scaled ? result(line) : omitted},
          from_axis(axis)};
}

struct Place {
  Dims shape;
  std::int64_t axis;
  bool scaled;
};
std::vector<Place> places() {
  return {{{1, 2}, 1, true},
          {{8, 10}, 1, true},
          {{8, 10}, 0, true},
          {{5, 1}, 1, true},
          {{2, 3, 4}, 1, false},
          {{2, 2, 3, 5}, 2, true},
          {{sized(1003, 103), 37}, 1, true},
          {{3, sized(5000, 1000)}, 1, true},
          {{sized(18, 3), 8200}, 1, true},
          {{0, 4}, 1, true}};
}

double length_of(const Variant& variant, std::size_t x) {
  const auto axis = variant.attributes.as<tenon_attributes_layer_norm>().axis;
  return static_cast<double>(count_of({variant.inputs[x].shape.begin() + axis, variant.inputs[x].shape.end()}));
}
constexpr Tolerance forward_bound{"A sum of n squares has a relative error, of which the root has half; three more roundings.",
                                  [](const Variant& variant, tenon_dtype t) -> Bound {
                                    return {(4 + std::sqrt(length_of(variant, 0))) * epsilon(t), smallest_normal(t)};
                                  }};
constexpr Tolerance backward_bound{"dx is made of terms up to 100; it depends on sums over the line, and dscale is sums over the lines.",
                                   [](const Variant& variant, tenon_dtype t) -> Bound {
                                     const double n = length_of(variant, 1);
                                     const double roots =
                                         std::sqrt(n) + std::sqrt(static_cast<double>(count_of(variant.inputs[1].shape)) / n);
                                     return {(4 + roots) * epsilon(t), (128 + 16 * roots) * epsilon(t)};
                                   }};

}  // namespace

std::vector<OpCase> cases_rms_norm() {
  std::vector<Variant> forwards, backwards;
  for (const auto& [shape, axis, scaled] : places()) {
    forwards.push_back(forward(shape, axis, scaled));
    backwards.push_back(backward(shape, axis, scaled));
  }
  const std::vector<double> x{1.0, 2.0, 4.0, -1.0, 0.5, 3.0, 0.0, -2.0, 1.0, 2.0, 2.5, -4.0}, scale{1.0, -2.0, 0.5};
  const std::vector<double> inverse_rms{0.3779642030348929, 0.5410009890922741, 0.7745943454619326, 0.33806150871345686};
  return {
      // the formula and its gradient by PyTorch 1.13 autograd, in f64
      {.op = TENON_OP_RMSNormalization,
       .variants = forwards,
       .bound = forward_bound,
       .gradient = {0, 1},
       .gradient_ops = {TENON_OP_RMSNormalizationGrad},
       .golden = {{"pytorch",
                   forward({2, 2, 3}, 2, true),
                   {x, scale},
                   {{0.3779642030348929, -1.5118568121395717, 0.7559284060697858, -0.5410009890922741, -0.5410009890922741,
                     0.8115014836384111, 0.0, 3.0983773818477305, 0.3872971727309663, 0.6761230174269137, -1.6903075435672843,
                     -0.6761230174269137},
                    inverse_rms}}}},
      {.op = TENON_OP_RMSNormalizationGrad,
       .variants = backwards,
       .bound = backward_bound,
       .golden = {{"pytorch",
                   backward({2, 2, 3}, 2, true),
                   {{0.5, -1.0, 2.0, 1.0, 0.25, -0.5, 1.0, 1.0, -2.0, 0.75, -1.5, 0.5}, x, scale, inverse_rms},
                   {{0.035996809315645334, 0.4499578216661836, -0.23397696577231158, 0.43544012944751714, -0.21772006472375857,
                     0.18143233166120235, 0.7745943454619326, -0.6196810534153713, -1.2393481642161797, 0.04748982838361773,
                     0.7566141472010269, 0.49662798348131404},
                    {0.1550733754953576, -3.5052226310325802, -0.013099567710046944}}}}},
  };
}

}  // namespace tenon::conformance
