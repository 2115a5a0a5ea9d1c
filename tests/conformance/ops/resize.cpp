// SPDX-License-Identifier: Apache-2.0
// Resize: nearest and linear, with every coordinate transformation and rounding, and its gradient.
#include "locality.h"
#include "op_family.h"

namespace tenon::conformance {
namespace {

struct Form {
  Dims x, y;  ///< (N, C, d...)
  std::uint32_t mode = TENON_RESIZE_NEAREST;
  std::uint32_t coordinates = TENON_COORDINATES_HALF_PIXEL;
  std::uint32_t rounding = TENON_ROUND_PREFER_FLOOR;
  Dims scaled = {};  ///< scales in hundredths, if they are not the quotients of the sizes
};

tenon_attributes_resize attributes_of(const Form& form) {
  tenon_attributes_resize a{
      .mode = form.mode, .coordinates = form.coordinates, .rounding = form.mode == TENON_RESIZE_NEAREST ? form.rounding : 0};
  std::fill(std::begin(a.scales), std::end(a.scales), 1);
  for (std::size_t i = 2; i < form.x.size(); ++i) {
    a.scales[i] = form.scaled.empty() ? static_cast<double>(form.y[i]) / static_cast<double>(form.x[i])
                                      : static_cast<double>(form.scaled[i - 2]) / 100;
  }
  return a;
}

std::string label_of(const Form& form) {
  constexpr const char* coordinates[] = {"half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"};
  constexpr const char* roundings[] = {"prefer_floor", "prefer_ceil", "floor", "ceil"};
  std::string text =
      fmt::format("to={},{},{}", str(form.y), form.mode == TENON_RESIZE_NEAREST ? "nearest" : "linear", coordinates[form.coordinates]);
  if (form.mode == TENON_RESIZE_NEAREST) text += std::string(",") + roundings[form.rounding];
  return text + (form.scaled.empty() ? "" : ",scaled");
}

Variant resize(const Form& form) {
  // a weight of 0 times an infinity may give NaN or be skipped: only `nearest` has a defined result for it
  const Values values{.special = form.mode == TENON_RESIZE_NEAREST ? Special::all : Special::none};
  return {label_of(form), {operand(form.x, values)}, {result(form.y)}, attributes_of(form)};
}
Variant resize_grad(const Form& form) {
  return {label_of(form), {operand(form.y)}, {result(form.x)}, attributes_of(form)};
}

/// Up and down, by integers and other factors, only one dimension, full and partial registers of channels.
std::vector<Form> forms() {
  std::vector<Form> all;
  for (const std::uint32_t mode : {TENON_RESIZE_NEAREST, TENON_RESIZE_LINEAR}) {
    for (std::uint32_t coordinates = 0; coordinates <= TENON_COORDINATES_PYTORCH_HALF_PIXEL; ++coordinates) {
      for (std::uint32_t rounding = 0; rounding < (mode == TENON_RESIZE_NEAREST ? 4u : 1u); ++rounding) {
        all.push_back({{1, 2, 4, 3}, {1, 2, 7, 9}, mode, coordinates, rounding});
        all.push_back({{2, 1, 7, 10}, {2, 1, 3, 4}, mode, coordinates, rounding});
      }
      all.push_back({{2, 3, 5}, {2, 3, 8}, mode, coordinates});
      all.push_back({{1, 17, 3, 4}, {1, 17, 6, 4}, mode, coordinates});
      all.push_back({{1, 40, 4, 4}, {1, 40, 1, 5}, mode, coordinates});
    }
    all.push_back({{1, 1, 1, 1}, {1, 1, 2, 3}, mode});
    all.push_back({{1, 2, 5, 4}, {1, 2, 8, 6}, mode, TENON_COORDINATES_ASYMMETRIC, TENON_ROUND_FLOOR, {170, 160}});
    all.push_back({{0, 2, 4, 3}, {0, 2, 8, 6}, mode});
    all.push_back({{2, 0, 4, 3}, {2, 0, 8, 6}, mode});
    all.push_back({{2, 33, sized(30, 7), sized(31, 8)}, {2, 33, sized(60, 14), sized(62, 16)}, mode});
  }
  return all;
}

constexpr Tolerance bound{"Elements move; between two, four products of rounded weights, which add up to 1, and at most 2.",
                          [](const Variant& variant, tenon_dtype t) -> Bound {
                            if (variant.attributes.as<tenon_attributes_resize>().mode == TENON_RESIZE_NEAREST) return {};
                            return {2 * epsilon(t), 8 * epsilon(t)};
                          }};
constexpr Tolerance gradient_bound{
    "An element of x contributes to all elements within its neighbours' distance: (2 scale + 1) in a dimension, and "
    "at an end as many more.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      double parts = 1;
      for (std::size_t i = 2; i < variant.inputs[0].shape.size(); ++i) {
        const auto from = static_cast<double>(variant.outputs[0].shape[i]), to = static_cast<double>(variant.inputs[0].shape[i]);
        parts *= 3 * to / from + 1;
      }
      return {2 * epsilon(t), 2 * epsilon(t) * parts * std::sqrt(parts)};
    }};

/// Each pixel becomes a block.
void check_blocks(CaseContext& context, tenon_dtype dtype) {
  const Form form{{2, 3, 3, 2}, {2, 3, 6, 8}, TENON_RESIZE_NEAREST, TENON_COORDINATES_ASYMMETRIC, TENON_ROUND_FLOOR};
  Array x(dtype, form.x);
  for (std::int64_t i = 0; i < x.count(); ++i) x.set(i, static_cast<double>(i));
  const auto y = context.run(net_of(line_of(TENON_OP_Resize), resize(form), dtype, {x}));
  for (std::int64_t i = 0; i < y[0].count(); ++i) {
    const std::int64_t plane = i / 48, row = i % 48 / 8, column = i % 8;
    const auto expected = static_cast<double>(plane * 6 + row / 2 * 2 + column / 4);
    if (y[0].at(i) != expected) throw Failure(fmt::format("element {} is {}, expected {}", i, y[0].str(i), expected));
  }
}

void check_locality(CaseContext& context, tenon_dtype dtype) {
  expect_locality(context, line_of(TENON_OP_Resize), resize({{2, 17, 5, 4}, {2, 17, 8, 3}, TENON_RESIZE_NEAREST}), dtype);
}

}  // namespace

std::vector<OpCase> cases_resize() {
  std::vector<Variant> forward, backward;
  for (const Form& form : forms()) {
    forward.push_back(resize(form));
    backward.push_back(resize_grad(form));
  }
  // Golden values are PyTorch's; its `nearest` rounds coordinates down that are not shifted by half a pixel.
  const std::vector<double> x{1, 2, -3, 4, 0.5, 6};
  const std::vector<double> dy{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  const Dims from{1, 1, 2, 3}, to{1, 1, 3, 5};
  const Form nearest{from, to, TENON_RESIZE_NEAREST, TENON_COORDINATES_ASYMMETRIC, TENON_ROUND_FLOOR};
  const Form linear{from, to, TENON_RESIZE_LINEAR};
  const Form corners{from, to, TENON_RESIZE_LINEAR, TENON_COORDINATES_ALIGN_CORNERS};
  const Form down{from, {1, 1, 1, 2}, TENON_RESIZE_LINEAR};
  const Form signal{{1, 1, 4}, {1, 1, 6}, TENON_RESIZE_LINEAR};
  return {
      {.op = TENON_OP_Resize,
       .variants = forward,
       .bound = bound,
       .gradient = {0},
       .gradient_ops = {TENON_OP_ResizeGrad},
       .golden = {{"nearest", resize(nearest), {x}, {{1, 1, 2, 2, -3, 1, 1, 2, 2, -3, 4, 4, 0.5, 0.5, 6}}},
                  {"half_pixel", resize(linear), {x}, {{1, 1.4, 2, -1, -3, 2.5, 2, 1.25, 1.4, 1.5, 4, 2.6, 0.5, 3.8, 6}}},
                  {"align_corners", resize(corners), {x}, {{1, 1.5, 2, -0.5, -3, 2.5, 1.875, 1.25, 1.375, 1.5, 4, 2.25, 0.5, 3.25, 6}}},
                  {"down", resize(down), {x}, {{2.1875, 1.4375}}},
                  {"signal", resize(signal), {{1, 5, 2, -4}}, {{1, 3, 4.5, 2.5, -1, -4}}}},
       .extras = {{"whole_factors_repeat_pixels", check_blocks}, {"nan_stays_in_its_windows", check_locality}}},
      {.op = TENON_OP_ResizeGrad,
       .variants = backward,
       .bound = gradient_bound,
       .golden = {{"nearest", resize_grad(nearest), {dy}, {{16, 24, 15, 23, 27, 15}}},
                  {"half_pixel", resize_grad(linear), {dy}, {{7.3, 12.6, 15.1, 23.3, 30.6, 31.1}}},
                  {"align_corners", resize_grad(corners), {dy}, {{6.75, 14, 14.25, 21.75, 34, 29.25}}}}},
  };
}

}  // namespace tenon::conformance
