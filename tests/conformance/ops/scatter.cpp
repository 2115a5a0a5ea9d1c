// SPDX-License-Identifier: Apache-2.0
// ScatterElements and ScatterAdd: updates are made in a fixed order; an index out of range is refused before any update.
#include "op_family.h"

namespace tenon::conformance {
namespace {

constexpr Values any{.low = -100, .high = 100, .special = Special::all};
constexpr Values some{.special = Special::not_large};
constexpr Values factor{.special = Special::not_small};

OperandSpec indices_of(const Dims& shape, std::int64_t n, tenon_dtype dtype) {
  return operand(shape, {.low = -static_cast<double>(n), .high = static_cast<double>(n), .whole = true}, dtype);
}

Variant scattered(const Dims& x, const Dims& indices, std::int64_t axis, std::uint32_t reduction, tenon_dtype dtype = i64) {
  tenon_attributes_scatter attributes{.reduction = reduction, .axis = axis};
  const char* const names[] = {"none", "add", "mul"};
  const Values& values = reduction == TENON_SCATTER_NONE ? any : reduction == TENON_SCATTER_ADD ? some : factor;
  return {fmt::format("axis={}/{}{}", axis, names[reduction], dtype == i32 ? "/i32" : ""),
          {operand(x, values), indices_of(indices, x[static_cast<std::size_t>(axis)], dtype), operand(indices, values)},
          {result(x)},
          attributes};
}

Variant added(const Dims& x, const Dims& indices, std::int64_t axis, tenon_dtype dtype = i64) {
  tenon_attributes_axis attributes{.axis = axis};
  Dims updates(x.begin(), x.begin() + axis);
  updates.insert(updates.end(), indices.begin(), indices.end());
  updates.insert(updates.end(), x.begin() + axis + 1, x.end());
  return {fmt::format("axis={}{}", axis, dtype == i32 ? "/i32" : ""),
          {operand(x, some), indices_of(indices, x[static_cast<std::size_t>(axis)], dtype), operand(updates, some)},
          {result(x)},
          attributes};
}

/// The maximum number of updates of one element.
double meeting(const Variant& variant) {
  return static_cast<double>(count_of(variant.inputs[1].shape));
}
constexpr Tolerance scatter_bound{
    "Sums of at most m updates and x, each of magnitude 2, in order: m roundings of what may be 2 m. Products of few "
    "factors round by epsilon / 2 each.",
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
void check_order(CaseContext& context, tenon_dtype dtype) {
  if (!is_float(dtype)) throw NotRun("sums of integers do not depend on their order");
  if (dtype == f16 || dtype == bf16) throw NotRun("sums are kept in f32, where no element is lost");
  const double large = 4 / epsilon(dtype);
  const auto y = context.run(
      net_of(line_of(TENON_OP_ScatterAdd), added({2}, {6}, 0), dtype,
             {Array(dtype, {2}, {0, 0}), Array(i64, {6}, {0, 0, 0, 1, 1, 1}), Array(dtype, {6}, {large, 1, -large, large, -large, 1})}));
  if (y[0].at(0) != 0 || y[0].at(1) != 1) {
    throw Failure(fmt::format("L + 1 - L and L - L + 1 are {} and {}, expected 0 and 1", y[0].str(0), y[0].str(1)));
  }
}

}  // namespace

std::vector<OpCase> cases_scatter() {
  constexpr std::uint32_t none = TENON_SCATTER_NONE, add = TENON_SCATTER_ADD, mul = TENON_SCATTER_MUL;
  const std::int64_t n = sized(1009, 109);
  return {
      {.op = TENON_OP_ScatterElements,
       .variants = {scattered({5}, {7}, 0, none, i32), scattered({8, 10}, {8, 3}, 1, none), scattered({8, 10}, {12, 9}, 0, none),
                    scattered({2, 3, 5}, {1, 4, 5}, 1, none, i32), scattered({5, 3}, {0, 3}, 0, none), scattered({5, 0}, {5, 0}, 0, none),
                    scattered({5}, {7}, 0, add), scattered({8, 10}, {8, 3}, 1, add, i32), scattered({2, 3, 5}, {2, 4, 4}, 1, add),
                    scattered({5}, {7}, 0, mul), scattered({8, 10}, {8, 3}, 1, mul, i32), scattered({2, 3, 5}, {2, 4, 4}, 1, mul),
                    scattered({n, 33}, {n, 33}, 0, none), scattered({33, n}, {33, 50}, 1, add, i32)},
       .bound = scatter_bound,
       .gradient = {0, 2},
       .golden = {{"last_stays", scattered({4}, {3}, 0, none), {{0, 0, 0, 0}, {1, 1, -1}, {0, 1, 1}}, {{0, 1, 0, 1}}},
                  {"rows", scattered({2, 3}, {2, 1}, 1, none, i32), {{0, 0, 0, 0, 0, 0}, {2, -2}, {1, 1}}, {{0, 0, 1, 0, 1, 0}}},
                  {"add",
                   scattered({3}, {4}, 0, add),
                   {{1, 2, 3}, {0, 0, 2, -1}, {1, 2, 3, 4}},
                   {{4, 2, 10}},
                   {f16, bf16, f32, f64, i32, i64, u8, TENON_DTYPE_U16}},
                  {"mul",
                   scattered({3}, {4}, 0, mul),
                   {{1, 2, 3}, {0, 0, 2, -1}, {1, 2, 3, 4}},
                   {{2, 2, 36}},
                   {f16, bf16, f32, f64, i32, i64, u8, TENON_DTYPE_U16}},
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
                  {"columns", added({2, 3}, {2}, 1, i32), {{1, 2, 3, 4, 5, 6}, {1, 1}, {1, 2, 3, 4}}, {{1, 5, 3, 4, 12, 6}}}},
       .bad = {{"index_too_large", added({10, 3}, {8}, 0), spoil<10>, {"scatter_add", "index 10", "position 5", "[-10, 10)"}},
               {"index_too_small", added({10, 3}, {4, 2}, 0), spoil<-11>, {"index -11", "position 5", "[-10, 10)"}},
               {"index_i32", added({10, 3}, {8}, 0, i32), spoil<1234>, {"index 1234", "position 5"}}},
       .extras = {{"in_the_order_of_indices", check_order}}},
  };
}

}  // namespace tenon::conformance
