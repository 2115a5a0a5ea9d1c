// SPDX-License-Identifier: Apache-2.0
// ScatterElements, ScatterAdd and ScatterSlices: updates are made in a fixed order; an index out of range is refused before any update.
#include "op_family.h"

namespace tenon::conformance {
namespace {

constexpr Values any{.low = -100, .high = 100, .special = Special::all};
constexpr Values some{.special = Special::not_large};
constexpr Values factor{.special = Special::not_small};

OperandSpec indices_of(const Dims& shape, std::int64_t n, tenon_dtype dtype) {
  return operand(shape, {.low = -static_cast<double>(n), .high = static_cast<double>(n), .whole = true}, dtype);
}

const char* name_of_reduction(std::uint32_t reduction) {
  const char* const names[] = {"none", "add", "mul", "max", "min"};
  return names[reduction];
}
const Values& values_for(std::uint32_t reduction) {
  return reduction == TENON_SCATTER_ADD ? some : reduction == TENON_SCATTER_MUL ? factor : any;
}

Variant scattered(const Dims& x, const Dims& indices, std::int64_t axis, std::uint32_t reduction, tenon_dtype dtype = i64) {
  tenon_attributes_scatter attributes{.reduction = reduction, .axis = axis};
  const Values& values = values_for(reduction);
  return {fmt::format("axis={}/{}{}", axis, name_of_reduction(reduction), dtype == i32 ? "/i32" : ""),
          {operand(x, values), indices_of(indices, x[static_cast<std::size_t>(axis)], dtype), operand(indices, values)},
          {result(x)},
          attributes};
}

/// x with that of the indices in place of the axis.
Dims slices(const Dims& x, const Dims& indices, std::int64_t axis) {
  Dims updates(x.begin(), x.begin() + axis);
  updates.insert(updates.end(), indices.begin(), indices.end());
  updates.insert(updates.end(), x.begin() + axis + 1, x.end());
  return updates;
}

Variant added(const Dims& x, const Dims& indices, std::int64_t axis, tenon_dtype dtype = i64) {
  return {fmt::format("axis={}{}", axis, dtype == i32 ? "/i32" : ""),
          {operand(x, some), indices_of(indices, x[static_cast<std::size_t>(axis)], dtype), operand(slices(x, indices, axis), some)},
          {result(x)},
          tenon_attributes_axis{.axis = axis}};
}

Variant sliced(const Dims& x, const Dims& indices, std::int64_t axis, std::uint32_t reduction, tenon_dtype dtype = i64) {
  const Values& values = values_for(reduction);
  return {fmt::format("axis={}/{}{}", axis, name_of_reduction(reduction), dtype == i32 ? "/i32" : ""),
          {operand(x, values), indices_of(indices, x[static_cast<std::size_t>(axis)], dtype), operand(slices(x, indices, axis), values)},
          {result(x)},
          tenon_attributes_scatter{.reduction = reduction, .axis = axis}};
}

/// The maximum number of updates of one element.
double meeting(const Variant& variant) {
  return static_cast<double>(count_of(variant.inputs[1].shape));
}
constexpr Tolerance scatter_bound{
    "Sums of at most m updates and x, each of magnitude 2, in order: m roundings of what may be 2 m. Products of few "
    "factors round by epsilon / 2 each. Replacements and extrema do not round.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      switch (variant.attributes.as<tenon_attributes_scatter>().reduction) {
        case TENON_SCATTER_ADD:
          return {epsilon(t), epsilon(t) * meeting(variant) * std::sqrt(meeting(variant))};
        case TENON_SCATTER_MUL:
          return {epsilon(t) * (1 + meeting(variant) / 2), 0};
        default:
          return {};
      }
    }};
constexpr Tolerance add_bound{"Sums of at most m updates and x, each of magnitude 2, in order: m roundings of what may be 2 m.",
                              [](const Variant& variant, tenon_dtype t) -> Bound {
                                return {epsilon(t), epsilon(t) * meeting(variant) * std::sqrt(meeting(variant))};
                              }};

template <int index>
void spoil(std::vector<Array>& inputs) {
  inputs[1].set(5, index);
}

/// Equal indices are added in order: 1 is lost next to 2^digits, but not after the large number is gone.
template <tenon_op op>
void check_order(CaseContext& context, tenon_dtype dtype) {
  if (!is_float(dtype)) throw NotRun("sums of integers do not depend on their order");
  if (dtype == f16 || dtype == bf16) throw NotRun("sums are kept in f32, where no element is lost");
  const double large = 4 / epsilon(dtype);
  const Variant variant = op == TENON_OP_ScatterAdd ? added({2}, {6}, 0) : sliced({2}, {6}, 0, TENON_SCATTER_ADD);
  const auto y = context.run(
      net_of(line_of(op), variant, dtype,
             {Array(dtype, {2}, {0, 0}), Array(i64, {6}, {0, 0, 0, 1, 1, 1}), Array(dtype, {6}, {large, 1, -large, large, -large, 1})}));
  if (y[0].at(0) != 0 || y[0].at(1) != 1) {
    throw Failure(fmt::format("L + 1 - L and L - L + 1 are {} and {}, expected 0 and 1", y[0].str(0), y[0].str(1)));
  }
}

/// 1 is lost next to x where each sum is rounded, 2 is not.
Golden rounded_once(const Variant& variant, double x, tenon_dtype dtype) {
  return {"rounded_once", variant, {{x}, {0, 0, -1, 0}, {1, 1, 1, 1}}, {{x + 4}}, {dtype}};
}

}  // namespace

std::vector<OpCase> cases_scatter() {
  constexpr std::uint32_t none = TENON_SCATTER_NONE, add = TENON_SCATTER_ADD, mul = TENON_SCATTER_MUL, max = TENON_SCATTER_MAX,
                          min = TENON_SCATTER_MIN;
  const std::int64_t n = sized(1009, 109);
  const std::vector<tenon_dtype> numbers{f16, bf16, f32, f64, i32, i64, u8, TENON_DTYPE_U16, TENON_DTYPE_I8};
  return {
      {.op = TENON_OP_ScatterElements,
       .variants = {scattered({5}, {7}, 0, none, i32), scattered({8, 10}, {8, 3}, 1, none), scattered({8, 10}, {12, 9}, 0, none),
                    scattered({2, 3, 5}, {1, 4, 5}, 1, none, i32), scattered({5, 3}, {0, 3}, 0, none), scattered({5, 0}, {5, 0}, 0, none),
                    scattered({5}, {7}, 0, add), scattered({8, 10}, {8, 3}, 1, add, i32), scattered({2, 3, 5}, {2, 4, 4}, 1, add),
                    scattered({5}, {7}, 0, mul), scattered({8, 10}, {8, 3}, 1, mul, i32), scattered({2, 3, 5}, {2, 4, 4}, 1, mul),
                    scattered({5}, {7}, 0, max), scattered({8, 10}, {8, 3}, 1, max, i32), scattered({2, 3, 5}, {2, 4, 4}, 1, min),
                    scattered({n, 33}, {n, 33}, 0, none), scattered({33, n}, {33, 50}, 1, add, i32), scattered({33, n}, {33, n}, 1, min)},
       .bound = scatter_bound,
       .gradient = {0, 2},
       .golden = {{"last_stays", scattered({4}, {3}, 0, none), {{0, 0, 0, 0}, {1, 1, -1}, {0, 1, 1}}, {{0, 1, 0, 1}}},
                  {"rows", scattered({2, 3}, {2, 1}, 1, none, i32), {{0, 0, 0, 0, 0, 0}, {2, -2}, {1, 1}}, {{0, 0, 1, 0, 1, 0}}},
                  {"add", scattered({3}, {4}, 0, add), {{1, 2, 3}, {0, 0, 2, -1}, {1, 2, 3, 4}}, {{4, 2, 10}}, numbers},
                  {"mul", scattered({3}, {4}, 0, mul), {{1, 2, 3}, {0, 0, 2, -1}, {1, 2, 3, 4}}, {{2, 2, 36}}, numbers},
                  {"max", scattered({3}, {4}, 0, max), {{1, 2, 3}, {0, 0, 2, -1}, {3, 2, 1, 4}}, {{3, 2, 4}}, numbers},
                  {"min", scattered({3}, {4}, 0, min), {{5, 2, 3}, {0, 0, 2, -1}, {3, 4, 1, 2}}, {{3, 2, 1}}, numbers},
                  {"nan_wins",
                   scattered({4}, {4}, 0, max),
                   {{nan, 1, 1, -inf}, {0, 1, 1, 2}, {1, nan, 2, inf}},
                   {{nan, nan, inf, -inf}},
                   {f16, bf16, f32, f64}},
                  {"or", scattered({3}, {4}, 0, add), {{0, 1, 0}, {0, 1, 1, 2}, {1, 1, 0, 0}}, {{1, 1, 0}}, {boolean}},
                  {"and", scattered({3}, {4}, 0, mul), {{1, 1, 0}, {0, 1, 1, 2}, {1, 1, 0, 1}}, {{1, 0, 0}}, {boolean}},
                  {"wraps", scattered({2}, {2}, 0, mul), {{250, 255}, {0, 1}, {2, 255}}, {{244, 1}}, {u8}},
                  {"wraps", scattered({2}, {2}, 0, mul), {{65535, 2}, {0, 1}, {65535, 3}}, {{1, 6}}, {TENON_DTYPE_U16}}},
       .bad = {{"index_too_large",
                scattered({10, 3}, {4, 2}, 0, none),
                spoil<10>,
                {"scatter_elements", "index 10", "position 5", "[-10, 10)"}},
               {"index_too_small", scattered({10, 3}, {4, 2}, 0, add), spoil<-11>, {"index -11", "position 5", "[-10, 10)"}},
               {"index_i32", scattered({10, 3}, {4, 2}, 0, mul, i32), spoil<1234>, {"index 1234", "position 5"}}}},
      {.op = TENON_OP_ScatterAdd,
       .variants = {added({5}, {}, 0), added({5}, {7}, 0, i32), added({8, 10}, {3}, 0), added({8, 10}, {3, 2}, 1),
                    added({2, 3, 5}, {4}, 1, i32), added({1, 4}, {2, 1, 3}, 0), added({5, 3}, {0}, 0), added({0, 3}, {2}, 1),
                    added({n, 33}, {n}, 0), added({7, 29}, {300}, 1, i32)},
       .bound = add_bound,
       .gradient = {0, 2},
       .golden = {{"rows", added({3, 2}, {3}, 0), {{1, 2, 3, 4, 5, 6}, {2, 0, -1}, {1, 1, 2, 2, 3, 3}}, {{3, 4, 3, 4, 9, 10}}},
                  {"columns", added({2, 3}, {2}, 1, i32), {{1, 2, 3, 4, 5, 6}, {1, 1}, {1, 2, 3, 4}}, {{1, 5, 3, 4, 12, 6}}},
                  rounded_once(added({1}, {4}, 0), 2048, f16),
                  rounded_once(added({1}, {4}, 0), 256, bf16)},
       .bad = {{"index_too_large", added({10, 3}, {8}, 0), spoil<10>, {"scatter_add", "index 10", "position 5", "[-10, 10)"}},
               {"index_too_small", added({10, 3}, {4, 2}, 0), spoil<-11>, {"index -11", "position 5", "[-10, 10)"}},
               {"index_i32", added({10, 3}, {8}, 0, i32), spoil<1234>, {"index 1234", "position 5"}}},
       .extras = {{"in_the_order_of_indices", check_order<TENON_OP_ScatterAdd>}}},
      {.op = TENON_OP_ScatterSlices,
       .variants = {sliced({5}, {}, 0, none),
                    sliced({5}, {7}, 0, none, i32),
                    sliced({8, 10}, {3}, 0, none),
                    sliced({8, 16}, {2, 2}, 0, none),
                    sliced({2, 3, 5}, {4}, 1, none, i32),
                    sliced({5, 3}, {0}, 0, none),
                    sliced({0, 3}, {2}, 1, none),
                    sliced({5}, {7}, 0, add),
                    sliced({8, 10}, {3, 2}, 1, add, i32),
                    sliced({2, 3, 5}, {4}, 1, mul),
                    sliced({8, 10}, {5}, 0, mul, i32),
                    sliced({5}, {7}, 0, max),
                    sliced({2, 3, 5}, {4}, 1, max),
                    sliced({8, 10}, {6}, 0, min, i32),
                    sliced({n, 33}, {n}, 0, none),
                    sliced({n, 64}, {100}, 0, none),
                    sliced({33, n, 2}, {50}, 1, add, i32),
                    sliced({n, 33}, {300}, 0, add),
                    sliced({n, 7}, {100}, 0, mul),
                    sliced({7, 29}, {300}, 1, max, i32),
                    sliced({n, 33}, {200}, 0, min)},
       .bound = scatter_bound,
       .gradient = {0, 2},
       .golden =
           {{"last_stays", sliced({2, 2}, {3}, 0, none), {{1, 2, 3, 4}, {0, -2, 0}, {5, 6, 7, 8, 9, 10}}, {{9, 10, 3, 4}}, numbers},
            {"columns", sliced({2, 3}, {2}, 1, none, i32), {{1, 2, 3, 4, 5, 6}, {1, 0}, {7, 8, 9, 10}}, {{8, 7, 3, 10, 9, 6}}, numbers},
            {"add", sliced({2, 2}, {2}, 0, add), {{1, 2, 3, 4}, {1, 1}, {1, 2, 3, 4}}, {{1, 2, 7, 10}}, numbers},
            {"mul", sliced({2, 2}, {2}, 0, mul), {{1, 2, 3, 4}, {1, 1}, {1, 2, 3, 4}}, {{1, 2, 9, 32}}, numbers},
            {"max", sliced({2, 2}, {2}, 0, max), {{1, 2, 3, 4}, {1, 1}, {1, 5, 4, 0}}, {{1, 2, 4, 5}}, numbers},
            {"min", sliced({2, 2}, {2}, 0, min), {{1, 2, 3, 4}, {1, 1}, {1, 5, 2, 6}}, {{1, 2, 1, 4}}, numbers},
            {"any", sliced({3}, {4}, 0, max), {{0, 1, 0}, {0, 1, 1, 2}, {1, 1, 0, 0}}, {{1, 1, 0}}, {boolean}},
            {"all", sliced({3}, {4}, 0, min), {{1, 1, 0}, {0, 1, 1, 2}, {1, 1, 0, 1}}, {{1, 0, 0}}, {boolean}},
            {"nan_wins",
             sliced({2, 2}, {2}, 0, min),
             {{nan, 1, 1, inf}, {0, 0}, {1, nan, 2, 2}},
             {{nan, nan, 1, inf}},
             {f16, bf16, f32, f64}},
            {"or", sliced({3}, {4}, 0, add), {{0, 1, 0}, {0, 1, 1, 2}, {1, 1, 0, 0}}, {{1, 1, 0}}, {boolean}},
            {"and", sliced({3}, {4}, 0, mul), {{1, 1, 0}, {0, 1, 1, 2}, {1, 1, 0, 1}}, {{1, 0, 0}}, {boolean}},
            {"wraps", sliced({2}, {2}, 0, mul), {{250, 255}, {0, 1}, {2, 255}}, {{244, 1}}, {u8}},
            rounded_once(sliced({1}, {4}, 0, add), 2048, f16),
            rounded_once(sliced({1}, {4}, 0, add), 256, bf16)},
       .bad = {{"index_too_large", sliced({10, 3}, {8}, 0, none), spoil<10>, {"scatter_slices", "index 10", "position 5", "[-10, 10)"}},
               {"index_too_small", sliced({10, 3}, {4, 2}, 0, add), spoil<-11>, {"index -11", "position 5", "[-10, 10)"}},
               {"index_i32", sliced({10, 3}, {8}, 0, max, i32), spoil<1234>, {"index 1234", "position 5"}}},
       .extras = {{"in_the_order_of_indices", check_order<TENON_OP_ScatterSlices>}}},
  };
}

}  // namespace tenon::conformance
