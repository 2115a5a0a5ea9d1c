// ReduceSum and ReduceMean over any set of axes.
#include "room.h"

namespace tenon::conformance {
namespace {

Variant over(const Dims& shape, const Dims& axes, bool keepdims, const Values& values = {.special = Special::not_large}) {
  tenon_attributes_axes attributes{};
  attributes.keepdims = keepdims ? 1 : 0;
  attributes.count = static_cast<std::uint32_t>(axes.size());
  std::copy(axes.begin(), axes.end(), attributes.axes);
  Dims reduced;
  for (std::int64_t d = 0; d < static_cast<std::int64_t>(shape.size()); ++d) {
    const bool listed = std::find(axes.begin(), axes.end(), d) != axes.end();
    if (!listed) reduced.push_back(shape[static_cast<std::size_t>(d)]);
    if (listed && keepdims) reduced.push_back(1);
  }
  return {fmt::format("axes={}{}", str(axes), keepdims ? "/keepdims" : ""), {operand(shape, values)}, {result(reduced)}, attributes};
}

std::vector<Variant> variants() {
  std::vector<Variant> list{over({1}, {0}, false),      over({7}, {0}, true),         over({8, 10}, {1}, false),
                            over({8, 10}, {0}, false),  over({8, 10}, {0, 1}, false), over({2, 3, 4}, {0, 2}, false),
                            over({2, 3, 4}, {1}, true), over({3, 1, 5}, {1}, false),  over({2, 3, 4, 5}, {1, 2}, true),
                            over({0}, {0}, false),      over({3, 0}, {1}, false),     over({0, 3}, {1}, false)};
  list.push_back(over({3, sized(20011, 2003)}, {1}, false));
  list.push_back(over({sized(3001, 301), 7}, {0}, false));
  list.push_back(over({sized(70001, 1001)}, {0}, false));
  return list;
}

std::int64_t terms(const Variant& variant) {
  const std::int64_t results = count_of(variant.outputs[0].shape);
  return results == 0 ? 0 : count_of(variant.inputs[0].shape) / results;
}
/// |x| <= 2: n terms summed in any order are off by n epsilon / 2 times the sum of their magnitudes, which is 2 n at most. No sensible
/// order is that bad: sums by blocks or lanes are off by their depth. sqrt(n) partial sums of sqrt(n) terms are still allowed.
Bound sum_bound(const Variant& variant, tenon_dtype t) {
  const auto n = static_cast<double>(terms(variant));
  return {2 * epsilon(t), epsilon(t) * std::sqrt(n) * 2 * n};
}
/// A sum, divided by n and rounded once more.
Bound mean_bound(const Variant& variant, tenon_dtype t) {
  const auto n = static_cast<double>(terms(variant));
  return {3 * epsilon(t), epsilon(t) * std::sqrt(n) * 2};
}

/// The sum is the same for elements in another order: here n ones.
void check_many_ones(Kit& kit, tenon_dtype dtype) {
  const std::int64_t n = sized(1000003, 100003);
  const Variant variant = over({n}, {0}, false);
  const auto sum = kit.run(
      net_of(line_of(TENON_OP_ReduceSum), variant, dtype, {Array(dtype, {n}, std::vector<double>(static_cast<std::size_t>(n), 1.0))}));
  // Exact while partial sums are below 2^24.
  if (sum[0].at(0) != static_cast<double>(n)) throw Failure(fmt::format("{} ones sum to {}", n, sum[0].str(0)));
}

}  // namespace

std::vector<OpCase> cases_reduce() {
  const std::vector<double> x{1, -2, 3.5, 0.25, 8, -16, 32, 0.5, 5, 6, 7, -8};
  return {
      {.op = TENON_OP_ReduceSum,
       .variants = variants(),
       .bound = sum_bound,
       .gradient = {0},
       .golden = {{"rows", over({3, 4}, {1}, false), {x}, {{2.75, 24.5, 10}}},
                  {"columns", over({3, 4}, {0}, true), {x}, {{14, -12, 42.5, -7.25}}},
                  {"outer_and_inner", over({2, 3, 2}, {0, 2}, false), {x}, {{31.5, 14.75, -9}}},
                  {"nothing_is_zero", over({2, 0}, {1}, false), {{}}, {{0, 0}}}},
       .extras = {{"many_ones", check_many_ones}}},
      {.op = TENON_OP_ReduceMean,
       .variants = variants(),
       .bound = mean_bound,
       .gradient = {0},
       .golden = {{"rows", over({3, 4}, {1}, false), {x}, {{0.6875, 6.125, 2.5}}},
                  {"everything", over({3, 4}, {0, 1}, false), {x}, {{3.1041666666666665}}},
                  {"nothing_is_nan", over({2, 0}, {1}, false), {{}}, {{nan, nan}}}}},
  };
}

}  // namespace tenon::conformance
