// SPDX-License-Identifier: Apache-2.0
// Reshape, Flatten, Transpose, Expand: elements are copied bitwise.
#include "op_family.h"

namespace tenon::conformance {
namespace {

constexpr Values any{.low = -100, .high = 100, .special = Special::all};

Variant reshaped(const Dims& from, const Dims& to) {
  return {"to=" + str(to), {operand(from, any)}, {result(to)}};
}

Variant flattened(const Dims& from, std::int64_t axis) {
  tenon_attributes_axis attributes{.axis = axis};
  Dims to{1, 1};
  for (std::size_t d = 0; d < from.size(); ++d) to[static_cast<std::int64_t>(d) < axis ? 0 : 1] *= from[d];
  return {fmt::format("axis={}", axis), {operand(from, any)}, {result(to)}, attributes};
}

Variant transposed(const Dims& from, const Dims& permutation) {
  tenon_attributes_axes attributes{.count = static_cast<std::uint32_t>(permutation.size())};
  std::copy(permutation.begin(), permutation.end(), attributes.axes);
  Dims to;
  for (const std::int64_t axis : permutation) to.push_back(from[static_cast<std::size_t>(axis)]);
  return {"perm=" + str(permutation), {operand(from, any)}, {result(to)}, attributes};
}

Variant expanded(const Dims& from, const Dims& to) {
  return {"to=" + str(to), {operand(from, any)}, {result(to)}};
}

}  // namespace

std::vector<OpCase> cases_shape() {
  const std::vector<double> bits{0, 1, 1, 0, 1, 0};  // exact in every dtype
  const std::int64_t n = sized(257, 67);
  return {
      {.op = TENON_OP_Reshape,
       .variants = {reshaped({}, {1}), reshaped({1}, {}), reshaped({8, 10}, {80}), reshaped({2, 3, 4}, {4, 3, 2}), reshaped({0, 3}, {3, 0}),
                    reshaped({2, 3, 4, 5}, {6, 20}), reshaped({n, 31}, {31, n})},
       .bound = moved,
       .gradient = {0},
       .golden = {{"row_major", reshaped({2, 3}, {3, 2}), {bits}, {bits}}}},
      {.op = TENON_OP_Flatten,
       .variants = {flattened({2, 3, 4}, 0), flattened({2, 3, 4}, 1), flattened({2, 3, 4}, 2), flattened({2, 3, 4}, 3), flattened({5}, 1),
                    flattened({0, 3, 2}, 1), flattened({n, 3, 7}, 1)},
       .bound = moved,
       .gradient = {0},
       .golden = {{"row_major", flattened({2, 1, 3}, 1), {bits}, {bits}}}},
      {.op = TENON_OP_Transpose,
       .variants = {transposed({}, {}), transposed({5}, {0}), transposed({8, 10}, {1, 0}), transposed({2, 3, 5}, {2, 0, 1}),
                    transposed({2, 3, 5}, {1, 0, 2}), transposed({2, 3, 4, 5}, {0, 2, 3, 1}), transposed({1, 7, 1}, {2, 1, 0}),
                    transposed({0, 3}, {1, 0}), transposed({2, 1, 2, 1, 2, 1, 2, 3}, {7, 6, 5, 4, 3, 2, 1, 0}),
                    transposed({n, 129}, {1, 0})},
       .bound = moved,
       .gradient = {0},
       .golden = {{"columns", transposed({2, 3}, {1, 0}), {bits}, {{0, 0, 1, 1, 1, 0}}},
                  {"planes", transposed({1, 2, 3}, {2, 0, 1}), {bits}, {{0, 0, 1, 1, 1, 0}}}}},
      {.op = TENON_OP_Expand,
       .variants = {expanded({}, {3}), expanded({1}, {4}), expanded({3, 1}, {3, 4}), expanded({3, 1}, {2, 3, 4}), expanded({4}, {3, 4}),
                    expanded({2, 3}, {2, 3}), expanded({1, 3}, {0, 3}), expanded({0, 1}, {0, 5}), expanded({1, 129}, {n, 129})},
       .bound = moved,
       .gradient = {0},
       .golden = {{"rows", expanded({3}, {2, 3}), {{1, 0, 1}}, {{1, 0, 1, 1, 0, 1}}},
                  {"columns", expanded({2, 1}, {2, 3}), {{0, 1}}, {{0, 0, 0, 1, 1, 1}}}}},
  };
}

}  // namespace tenon::conformance
