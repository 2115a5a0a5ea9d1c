// SPDX-License-Identifier: Apache-2.0
// ops/resize.cpp - resizes images by nearest or linear interpolation.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>
#include <cmath>

#include "graph/op.h"
#include "ops/window.h"

namespace tenon {
namespace graph {
namespace {

void expect_word(const Inference& at, const char* attribute, std::uint32_t value, std::uint32_t last) {
  if (value > last) at.fail(fmt::format("{} is {}, expected 0 to {}", attribute, value, last));
}

/// Checks that the attributes' scales map x (N, C, d...) to y, and sets unused attributes to 1 or 0.
void check(Inference& at, const Shape& x, const Shape& y) {
  auto attributes = at.attributes.as<tenon_attributes_resize>();
  expect_word(at, "mode", attributes.mode, TENON_RESIZE_LINEAR);
  expect_word(at, "coordinates", attributes.coordinates, TENON_COORDINATES_PYTORCH_HALF_PIXEL);
  expect_word(at, "rounding", attributes.rounding, TENON_ROUND_CEIL);
  if (attributes.mode != TENON_RESIZE_NEAREST) attributes.rounding = 0;
  for (std::size_t i = 0; i < TENON_MAX_RANK; ++i) {
    double& scale = attributes.scales[i];
    if (i >= x.rank()) {
      scale = 1;
      continue;
    }
    if (!(scale > 0) || !std::isfinite(scale)) at.fail(fmt::format("expected a scale > 0, got {} for axis {}", scale, i));
    if (i < 2 && (scale != 1 || x[i] != y[i])) {
      at.fail(fmt::format("expected the batch size and channels of x {} unchanged, got {} and a scale of {} for axis {}", x.str(), y.str(),
                          scale, i));
    }
    if (i < 2) continue;
    if (x[i] < 1 || y[i] < 1) at.fail(fmt::format("axis {} has no elements: from {} to {}", i, x.str(), y.str()));
    // a size derived from a scale is rounded down; a scale derived from a size is the nearest quotient
    const double exact = static_cast<double>(x[i]) * scale;
    if (!(std::fabs(static_cast<double>(y[i]) - exact) < 1 + 1e-9 * exact)) {
      at.fail(fmt::format("a scale of {} does not make {} elements of {} along axis {}", scale, y[i], x[i], i));
    }
  }
  at.attributes = Attributes::of(attributes);
}

const Shape& expect_result(Inference& at) {
  at.expect_inputs(1, 1);
  at.expect_floating(0);
  expect_image(at, 0);
  const Shape& result = expect_given_shape(at);
  if (result.rank() != at.shape(0).rank()) {
    at.fail(fmt::format("expected a result of the rank of {}, got {}", at.str(0), result.str()));
  }
  return result;
}

void infer(Inference& at) {
  const Shape& y = expect_result(at);
  check(at, at.shape(0), y);
  at.output(at.dtype(0), y);
}

void infer_gradient(Inference& at) {
  const Shape& x = expect_result(at);
  check(at, x, at.shape(0));
  at.output(at.dtype(0), x);
}

void gradient(Gradient& at) {
  const Shape x = at.input(0).shape();
  at.set(0, apply_op(TENON_OP_ResizeGrad, {at.dy()}, at.attributes, {.name = {}, .shape = x}));
}

}  // namespace

extern const OpRules rules_resize, rules_resize_grad;
const OpRules rules_resize{
    "y[..., i, ...] = x at the coordinate that i maps to: its nearest element, or the interpolation of its two neighbours; "
    "beyond the ends, the last element.",
    infer, PrecisionClass::inherits, per_element<1>, gradient};
const OpRules rules_resize_grad{"dx[k] = sum over y of the weight that x[k] has in y, times dy.", infer_gradient, PrecisionClass::inherits,
                                per_element<1>};

}  // namespace graph

namespace ops {

Value resize(Value x, const std::vector<std::int64_t>& sizes, const ResizeOptions& options) {
  const Shape shape = x.shape();
  if (shape.rank() != sizes.size() + 2) {
    throw Error(fmt::format("resize: expected a size for each spatial dimension of an image (N, C, d...), got {} for '{}' {}", sizes.size(),
                            x.name(), shape.str()));
  }
  tenon_attributes_resize attributes{};
  attributes.mode = static_cast<std::uint32_t>(options.mode);
  attributes.coordinates = static_cast<std::uint32_t>(options.coordinates);
  attributes.rounding = static_cast<std::uint32_t>(options.rounding);
  std::fill(std::begin(attributes.scales), std::end(attributes.scales), 1);
  Shape y = shape;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] < 1) throw Error(fmt::format("resize: expected sizes of 1 or more, got {} for '{}' {}", sizes[i], x.name(), shape.str()));
    y.set(i + 2, sizes[i]);
    // the shape rule reports images without elements
    if (shape[i + 2] > 0) attributes.scales[i + 2] = static_cast<double>(sizes[i]) / static_cast<double>(shape[i + 2]);
  }
  if (y == shape) return x;
  return graph::apply_op(TENON_OP_Resize, {x}, Attributes::of(attributes), {.name = {}, .shape = y});
}

Value upsample(Value x, const std::vector<std::int64_t>& factors, ResizeMode mode) {
  const Shape shape = x.shape();
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    std::int64_t size = 0;
    if (factors[i] < 1)
      throw Error(fmt::format("upsample: expected factors of 1 or more, got {} for '{}' {}", factors[i], x.name(), shape.str()));
    if (i + 2 < shape.rank() && __builtin_mul_overflow(shape[i + 2], factors[i], &size)) {
      throw Error(fmt::format("upsample: axis {} of '{}' {}, {} times, is longer than a dimension can be", i + 2, x.name(), shape.str(),
                              factors[i]));
    }
    sizes.push_back(size);
  }
  if (shape.rank() != factors.size() + 2) {
    throw Error(fmt::format("upsample: expected a factor for each spatial dimension of an image (N, C, d...), got {} for '{}' {}",
                            factors.size(), x.name(), shape.str()));
  }
  ResizeOptions options;
  options.mode = mode;
  if (mode == ResizeMode::nearest) {  // i / factor, rounded down, is exact for every factor
    options.coordinates = Coordinates::asymmetric;
    options.rounding = NearestRounding::floor;
  }
  return resize(x, sizes, options);
}

}  // namespace ops
}  // namespace tenon
