// SPDX-License-Identifier: Apache-2.0
// Concat and Split: elements are copied bitwise.
#include "op_family.h"

namespace tenon::conformance {
namespace {

constexpr Values any{.low = -100, .high = 100, .special = Special::all};

/// A tensor of `shape` and its parts of these sizes along an axis.
Variant joined(Dims shape, std::int64_t axis, const Dims& sizes, bool cut) {
  tenon_attributes_axis attributes{.axis = axis};
  Variant variant{fmt::format("axis={}{}", axis, cut ? "/sizes=" + str(sizes) : ""), {}, {}, attributes};
  std::int64_t whole = 0;
  for (const std::int64_t size : sizes) {
    whole += size;
    shape[static_cast<std::size_t>(axis)] = size;
    if (cut)
      variant.outputs.push_back(result(shape));
    else
      variant.inputs.push_back(operand(shape, any));
  }
  shape[static_cast<std::size_t>(axis)] = whole;
  if (cut)
    variant.inputs.push_back(operand(shape, any));
  else
    variant.outputs.push_back(result(shape));
  return variant;
}

/// The size along the axis comes from the parts.
std::vector<Variant> variants(bool cut) {
  const std::int64_t n = sized(257, 67);
  return {
      joined({0}, 0, {5}, cut),          joined({0}, 0, {2, 3}, cut),          joined({0, 4}, 0, {1, 3}, cut),
      joined({3, 0}, 1, {2, 1, 4}, cut), joined({2, 0, 5}, 1, {1, 2, 3}, cut), joined({2, 3, 0}, 2, {4, 1}, cut),
      joined({3, 0}, 1, {2, 0, 1}, cut), joined({0, 0}, 1, {2, 3}, cut),       joined({2, 0, 1, 3}, 1, {1, 1, 1, 1, 1, 1, 1, 1, 1}, cut),
      joined({n, 0}, 1, {60, 69}, cut),  joined({0, 129}, 0, {n, 1, n}, cut)};
}

}  // namespace

std::vector<OpCase> cases_concat() {
  return {
      {.op = TENON_OP_Concat,
       .variants = variants(false),
       .bound = moved,
       .gradient = {0, 1, 2},
       .golden = {{"rows", joined({0, 2}, 0, {1, 2}, false), {{1, 0}, {0, 1, 1, 1}}, {{1, 0, 0, 1, 1, 1}}},
                  {"columns", joined({2, 0}, 1, {1, 2}, false), {{1, 0}, {0, 1, 1, 1}}, {{1, 0, 1, 0, 1, 1}}}}},
      {.op = TENON_OP_Split,
       .variants = variants(true),
       .bound = moved,
       .gradient = {0},
       .golden = {{"rows", joined({0, 2}, 0, {1, 2}, true), {{1, 0, 0, 1, 1, 1}}, {{1, 0}, {0, 1, 1, 1}}},
                  {"columns", joined({2, 0}, 1, {1, 2}, true), {{1, 0, 1, 0, 1, 1}}, {{1, 0}, {0, 1, 1, 1}}}}},
  };
}

}  // namespace tenon::conformance
