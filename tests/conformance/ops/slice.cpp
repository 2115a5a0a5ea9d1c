// SPDX-License-Identifier: Apache-2.0
// Slice and Pad: elements are copied bitwise.
#include "op_family.h"

#include "huge_view.h"

namespace tenon::conformance {
namespace {

constexpr Values any{.low = -100, .high = 100, .special = Special::all};

Variant sliced(const Dims& from, const Dims& starts, const Dims& steps, const Dims& sizes) {
  tenon_attributes_slice attributes{};
  std::fill(std::begin(attributes.steps), std::end(attributes.steps), 1);
  std::copy(starts.begin(), starts.end(), attributes.starts);
  std::copy(steps.begin(), steps.end(), attributes.steps);
  return {
      fmt::format("starts={}/steps={}/sizes={}", str(starts), str(steps), str(sizes)), {operand(from, any)}, {result(sizes)}, attributes};
}

Variant padded(const Dims& from, const Dims& before, const Dims& to, std::uint32_t mode, double value = 0) {
  tenon_attributes_pad attributes{.mode = mode, .value = value};
  std::copy(before.begin(), before.end(), attributes.before);
  const char* const names[] = {"constant", "reflect", "edge"};
  return {fmt::format("{}/before={}/to={}", names[mode], str(before), str(to)), {operand(from, any)}, {result(to)}, attributes};
}

/// Rows beyond 2^31, of an operand whose bytes 32 bits do not count.
void check_huge_view(CaseContext& context, tenon_dtype dtype) {
  const Array row = counted_row(dtype, 37);
  const Variant last{"", {operand({1, 37})}, {result({4, 37})}, sliced({1, 37}, {huge_rows - 1, 0}, {-1, 1}, {4, 37}).attributes};
  expect_rows(row, run_on_huge_view(context, line_of(TENON_OP_Slice), last, dtype, {row})[0]);
}

}  // namespace

std::vector<OpCase> cases_slice() {
  const std::vector<double> bits{0, 1, 1, 0, 1, 0};  // exact in every dtype
  const std::int64_t n = sized(257, 67);
  constexpr std::uint32_t constant = TENON_PAD_CONSTANT, reflect = TENON_PAD_REFLECT, edge = TENON_PAD_EDGE;
  return {
      {.op = TENON_OP_Slice,
       .variants = {sliced({}, {}, {}, {}), sliced({7}, {2}, {1}, {3}), sliced({7}, {6}, {-1}, {7}),
                    sliced({8, 10}, {0, 3}, {1, 1}, {8, 4}), sliced({8, 10}, {1, 9}, {3, -2}, {3, 5}),
                    sliced({8, 10}, {7, 0}, {-7, 9}, {2, 2}), sliced({2, 3, 5}, {1, 2, 4}, {-1, -1, -1}, {2, 3, 5}),
                    sliced({2, 3, 4, 5}, {0, 1, 0, 1}, {1, 1, 2, 1}, {2, 2, 2, 3}), sliced({4, 6}, {1, 0}, {1, 1}, {2, 6}),
                    sliced({5, 3}, {0, 0}, {1, 1}, {0, 3}), sliced({0, 3}, {0, 0}, {1, 1}, {0, 2}),
                    sliced({n, 129}, {3, 1}, {2, 1}, {n / 2 - 2, 127}), sliced({n, 129}, {n - 1, 128}, {-1, -2}, {n, 65})},
       .bound = moved,
       .gradient = {0},
       .golden = {{"middle", sliced({2, 3}, {0, 1}, {1, 1}, {2, 2}), {bits}, {{1, 1, 1, 0}}},
                  {"backwards", sliced({6}, {5}, {-2}, {3}), {bits}, {{0, 0, 1}}}},
       .extras = {{"huge_view", check_huge_view}}},
      {.op = TENON_OP_Pad,
       .variants = {padded({}, {}, {}, constant), padded({3}, {2}, {6}, constant, 1), padded({3, 4}, {1, 0}, {5, 4}, constant),
                    padded({3, 4}, {0, 2}, {3, 9}, constant, 1), padded({2, 3, 4}, {1, 2, 3}, {4, 6, 9}, constant),
                    padded({0}, {1}, {3}, constant, 1), padded({2, 0}, {0, 0}, {2, 3}, constant), padded({3, 2}, {0, 0}, {3, 2}, constant),
                    padded({5}, {4}, {13}, reflect), padded({3, 4}, {2, 1}, {6, 8}, reflect),
                    padded({2, 3, 4}, {0, 1, 0}, {2, 5, 4}, reflect), padded({1, 3}, {0, 2}, {1, 7}, reflect), padded({3}, {4}, {9}, edge),
                    padded({3, 4}, {2, 0}, {6, 9}, edge), padded({2, 3, 4}, {1, 1, 1}, {4, 5, 6}, edge),
                    padded({n, 61}, {3, 5}, {n + 4, 70}, constant, 1), padded({n, 61}, {3, 5}, {n + 4, 70}, reflect),
                    padded({n, 61}, {3, 5}, {n + 4, 70}, edge)},
       .bound = moved,
       .gradient = {0},
       .golden = {{"constant", padded({2, 3}, {1, 1}, {3, 5}, constant, 1), {bits}, {{1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 0, 1, 0, 1}}},
                  {"half", padded({1}, {1}, {2}, constant, 0.1), {{1}}, {{0.0999755859375, 1}}, {f16}},
                  {"half", padded({1}, {1}, {2}, constant, 0.1), {{1}}, {{0.10009765625, 1}}, {bf16}},
                  {"reflect", padded({6}, {2}, {10}, reflect), {bits}, {{1, 1, 0, 1, 1, 0, 1, 0, 1, 0}}},
                  {"edge", padded({2, 3}, {0, 2}, {2, 6}, edge), {bits}, {{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 0, 0}}}}},
  };
}

}  // namespace tenon::conformance
