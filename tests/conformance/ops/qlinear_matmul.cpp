// SPDX-License-Identifier: Apache-2.0
// QLinearMatMul: exact.
#include "quantized.h"

namespace tenon::conformance {
namespace {

Variant product(Dims a, Dims b, const Requantised& form = {}) {
  const bool row = a.size() == 1, column = b.size() == 1;
  const Dims given_a = a, given_b = b;
  if (row) a.insert(a.begin(), 1);
  if (column) b.push_back(1);
  Dims y = broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!row) y.push_back(a[a.size() - 2]);
  if (!column) y.push_back(b.back());
  return {form.label(), requantised_operands(given_a, given_b, b.back(), a.back(), form), {result(y, form.y)}};
}

void check_random_shapes(CaseContext& context, tenon_dtype dtype) {
  const int count = small_sizes() ? 20 : 60;
  for (int index = 0; index < count; ++index) {
    const std::uint64_t seed = seed_for(context.seed, fmt::format("qlinear_matmul {} {}", index, dtype));
    Random random(seed);
    const std::int64_t m = random.integer(1, 70), k = random.integer(1, 300), n = random.integer(1, 100);
    const auto either = [&] { return random.integer(0, 2) == 0 ? i8 : u8; };
    const Requantised form{either(), either(), random.integer(0, 2) == 0};
    check_packed_weights(context, TENON_OP_QLinearMatMul, 3, product({m, k}, {k, n}, form), dtype, seed, {});
  }
}

}  // namespace

std::vector<OpCase> cases_qlinear_matmul() {
  const std::int64_t n = sized(257, 33);
  const Requantised lists{i8, u8, true}, other{u8, i8, false}, any_scale{i8, u8, true, true}, any_scale_of_i8{u8, i8, true, true};
  const auto one = [](tenon_dtype y, std::vector<double> numbers, double factor, double zero_point, std::vector<double> expected) {
    const auto count = static_cast<std::int64_t>(numbers.size());
    return Golden{"",
                  product({count, 1}, {1, 1}, {i8, y, false}),
                  {std::move(numbers), {factor}, {0}, {1}, {1}, {0}, {1}, {zero_point}},
                  {std::move(expected)},
                  {y}};
  };
  const auto named = [](const char* name, Golden golden) {
    golden.name = name;
    return golden;
  };
  // Golden vectors: the examples of ONNX's specification, ties and bounds.
  const std::vector<double> example_a{208, 236, 0, 238, 3, 214, 255, 29}, example_b{152, 51, 244, 60, 26, 255, 0, 127, 246, 127, 254, 247};
  const float a_scale = 0.0066F, b_scale = 0.00705F, y_scale = 0.0107F;
  return {{
      .op = TENON_OP_QLinearMatMul,
      .variants = {product({1, 1}, {1, 1}),
                   product({3, 5}, {5, 4}, lists),
                   product({1, 7}, {7, 1}, other),
                   product({7, 1}, {1, 7}),
                   product({5}, {5}),
                   product({5}, {5, 3}, lists),
                   product({3, 5}, {5}, other),
                   product({2, 3, 4}, {4, 5}, lists),
                   product({3, 4}, {2, 4, 5}, other),
                   product({2, 1, 3, 4}, {3, 4, 2}),
                   product({0, 3}, {3, 2}),
                   product({2, 3}, {3, 0}),
                   product({2, 0}, {0, 3}),
                   product({17, 64}, {64, 33}, lists),
                   product({17, 65}, {65, 33}, other),
                   product({5, 130}, {130, 16}, {u8, u8, true}),
                   product({n, n - 1}, {n - 1, n}, lists),
                   product({n, n - 2}, {n - 2, n + 7}, {i8, i8, true}),
                   product({3, sized(2001, 201)}, {sized(2001, 201), 50}),
                   product({3, 9}, {9, 40}, any_scale),
                   product({17, 65}, {65, 49}, any_scale_of_i8),
                   product({33, 70}, {70, 11}, any_scale)},
      .bound = requantised,
      .oracle = Oracle::same_dtype,
      .golden = {{"example",
                  product({2, 4}, {4, 3}, {u8, u8, false}),
                  {example_a, {a_scale}, {113}, example_b, {b_scale}, {114}, {y_scale}, {118}},
                  {{168, 115, 255, 1, 66, 151}},
                  {u8}},
                 named("ties", one(u8, {1, 3, 5, 7, 9}, 0.5, 100, {100, 102, 102, 104, 104})),
                 named("ties_below_zero", one(i8, {-1, -3, -5, 1, 3}, 0.5, 1, {1, -1, -1, 1, 3})),
                 named("tie_before_zero_point", one(u8, {1, 3}, 0.5, 1, {1, 3})),
                 named("bounds", one(i8, {-128, 127, -60, 60, 50}, 2, 10, {-128, 127, -110, 127, 110}))},
      .extras = {{"random_shapes", check_random_shapes}},
  }};
}

}  // namespace tenon::conformance
