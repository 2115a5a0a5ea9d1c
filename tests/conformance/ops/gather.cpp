// SPDX-License-Identifier: Apache-2.0
// Gather and GatherElements: elements are copied bitwise; an index out of range is refused.
#include "op_family.h"

#include "huge_view.h"

namespace tenon::conformance {
namespace {

constexpr Values any{.low = -100, .high = 100, .special = Special::all};

OperandSpec indices_of(const Dims& shape, std::int64_t n, tenon_dtype dtype) {
  const auto size = static_cast<double>(std::max<std::int64_t>(n, 1));
  return operand(shape, {.low = -size, .high = size, .whole = true}, dtype);
}

Variant gathered(const Dims& x, const Dims& indices, std::int64_t axis, tenon_dtype dtype = i64) {
  tenon_attributes_axis attributes{.axis = axis};
  Dims y(x.begin(), x.begin() + axis);
  y.insert(y.end(), indices.begin(), indices.end());
  y.insert(y.end(), x.begin() + axis + 1, x.end());
  return {fmt::format("axis={}{}", axis, dtype == i32 ? "/i32" : ""),
          {operand(x, any), indices_of(indices, x[static_cast<std::size_t>(axis)], dtype)},
          {result(y)},
          attributes};
}

Variant gathered_elements(const Dims& x, const Dims& indices, std::int64_t axis, tenon_dtype dtype = i64) {
  Variant variant = gathered(x, indices, axis, dtype);
  variant.outputs = {result(indices)};
  return variant;
}

template <int index>
void spoil(std::vector<Array>& inputs) {
  inputs[1].set(5, index);
}
/// Bad indices of an axis of 10.
std::vector<BadArgument> bad_indices(Variant (*make)(const Dims&, const Dims&, std::int64_t, tenon_dtype)) {
  return {{"index_too_large", make({10, 3}, {4, 2}, 0, i64), spoil<10>, {"index 10", "position 5", "[-10, 10)", "gather"}},
          {"index_too_small", make({10, 3}, {4, 2}, 0, i64), spoil<-11>, {"index -11", "position 5", "[-10, 10)"}},
          {"index_i32", make({10, 3}, {4, 2}, 0, i32), spoil<1234>, {"index 1234", "position 5"}},
          {"nothing_to_name", make({0, 3}, {4, 2}, 0, i64), spoil<0>, {"[0, 0)"}}};
}

/// No valid index exists for an empty axis, also not 0.
std::vector<BadArgument> refused(std::vector<BadArgument> list) {
  list.back().spoil = [](std::vector<Array>& inputs) {
    for (std::int64_t i = 0; i < inputs[1].count(); ++i) inputs[1].set(i, 0);
  };
  return list;
}

/// Rows beyond 2^31, of an operand whose bytes 32 bits do not count.
void check_huge_view(CaseContext& context, tenon_dtype dtype) {
  const Array row = counted_row(dtype, 37);
  Array indices(i64, {4});
  const std::int64_t rows[] = {huge_rows - 1, 0, -1, std::int64_t{1} << 31};
  for (std::int64_t i = 0; i < 4; ++i) indices.put(i, rows[i]);
  expect_rows(row, run_on_huge_view(context, line_of(TENON_OP_Gather), gathered({1, 37}, {4}, 0), dtype, {row, indices})[0]);
}

}  // namespace

std::vector<OpCase> cases_gather() {
  const std::vector<double> bits{0, 1, 1, 0, 1, 0};  // exact in every dtype
  const std::int64_t n = sized(1009, 109);
  return {
      {.op = TENON_OP_Gather,
       .variants = {gathered({5}, {}, 0), gathered({5}, {7}, 0, i32), gathered({8, 10}, {3}, 0), gathered({8, 10}, {3, 2}, 1),
                    gathered({2, 3, 5}, {4}, 1, i32), gathered({2, 3, 5}, {}, 2), gathered({1, 4}, {2, 1, 3}, 0), gathered({5, 3}, {0}, 0),
                    gathered({0, 3}, {0, 2}, 0), gathered({0, 3}, {2}, 1), gathered({n, 33}, {n}, 0), gathered({7, n}, {300}, 1, i32)},
       .bound = moved,
       .gradient = {0},
       .golden = {{"rows", gathered({3, 2}, {4}, 0), {bits, {2, 0, -1, -3}}, {{1, 0, 0, 1, 1, 0, 0, 1}}},
                  {"columns", gathered({2, 3}, {1, 2}, 1, i32), {bits, {2, -2}}, {{1, 1, 0, 1}}}},
       .bad = refused(bad_indices([](const Dims& x, const Dims& i, std::int64_t axis, tenon_dtype t) { return gathered(x, i, axis, t); })),
       .extras = {{"huge_view", check_huge_view}}},
      {.op = TENON_OP_GatherElements,
       .variants = {gathered_elements({5}, {7}, 0, i32), gathered_elements({8, 10}, {8, 3}, 1), gathered_elements({8, 10}, {12, 9}, 0),
                    gathered_elements({2, 3, 5}, {1, 4, 5}, 1, i32), gathered_elements({2, 3, 5}, {2, 2, 7}, 2),
                    gathered_elements({5, 3}, {0, 3}, 0), gathered_elements({5, 0}, {5, 0}, 0), gathered_elements({n, 33}, {n, 33}, 0),
                    gathered_elements({33, n}, {33, 50}, 1, i32)},
       .bound = moved,
       .gradient = {0},
       .golden = {{"rows", gathered_elements({2, 3}, {2, 2}, 1), {bits, {2, 0, -2, -1}}, {{1, 0, 1, 0}}},
                  {"columns", gathered_elements({2, 3}, {1, 3}, 0, i32), {bits, {1, -1, 0}}, {{0, 1, 1}}}},
       .bad = refused(
           bad_indices([](const Dims& x, const Dims& i, std::int64_t axis, tenon_dtype t) { return gathered_elements(x, i, axis, t); }))},
  };
}

}  // namespace tenon::conformance
