// SPDX-License-Identifier: Apache-2.0
// Dropout: the mask is specified bit for bit, the scale is one rounding.
#include "op_family.h"

namespace tenon::conformance {
namespace {

Variant dropped(const Dims& shape, double p, std::uint32_t stream = 42) {
  return {fmt::format("p={}", p),
          {operand(shape, {.special = Special::not_large}), key()},
          {result(shape)},
          tenon_attributes_random{.stream = stream, .a = p}};
}

/// Kept elements are scaled by 1 / (1 - p), also in the gradient, which drops the same elements.
void dropout_backward_scale(CaseContext& context, tenon_dtype dtype) {
  const double p = 0.75;
  const Array ones(dtype, {999}, std::vector<double>(999, 1.0));
  const Array k(u64, {2}, {11, 3});
  const Array y = context.run(net_of(line_of(TENON_OP_Dropout), dropped({999}, p), dtype, {ones, k}))[0];
  // The op is its own gradient, with dy instead of x.
  Array dy = ones;
  for (std::int64_t i = 0; i < dy.count(); ++i) dy.set(i, 0.5);
  const Array dx = context.run(net_of(line_of(TENON_OP_Dropout), dropped({999}, p), dtype, {dy, k}))[0];
  std::int64_t kept = 0;
  for (std::int64_t i = 0; i < 999; ++i) {
    if (y.at(i) != 0 && y.at(i) != 4) throw Failure(fmt::format("element {} of y is {}, expected 0 or 1 / (1 - 0.75)", i, y.str(i)));
    if (dx.at(i) != 0.5 * y.at(i)) throw Failure(fmt::format("element {} of dx is {}, expected {}", i, dx.str(i), 0.5 * y.at(i)));
    kept += y.at(i) != 0 ? 1 : 0;
  }
  // 250 expected, five standard deviations of 14.
  if (kept < 180 || kept > 320) throw Failure(fmt::format("{} of 999 elements are kept, expected about a quarter", kept));
}

}  // namespace

std::vector<OpCase> cases_dropout() {
  std::vector<Variant> variants;
  for (const Dims& shape : {Dims{}, Dims{1}, Dims{7}, Dims{8, 10}, Dims{0, 3}, Dims{sized(100003, 2003)}, Dims{2, 3, 9}, Dims{3, 5, 4, 6},
                            Dims{2, 5, 3, 7}, Dims{2, 0, 3, 7}}) {
    variants.push_back(dropped(shape, 0.3));
  }
  variants.push_back(dropped({3, 5}, 0));
  variants.push_back(dropped({3, 5}, 0.875));
  return {{
      .op = TENON_OP_Dropout,
      .variants = variants,
      .bound = specified,
      .oracle = Oracle::same_dtype,
      .gradient = {0},
      .golden = {{"quarter",
                  dropped({12}, 0.25),
                  {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, {0xfedcba9876543, 7}},
                  {{1.3333333333333333, 2.6666666666666665, 0, 5.333333333333333, 6.666666666666667, 8, 9.333333333333334,
                    10.666666666666666, 12, 0, 14.666666666666666, 16}},
                  {},
                  [](tenon_dtype t) {
                    return Bound{epsilon(t), 0};
                  }}},
      .extras = {{"dropout_backward_scale", dropout_backward_scale}},
  }};
}

}  // namespace tenon::conformance
