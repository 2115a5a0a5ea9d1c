// SPDX-License-Identifier: Apache-2.0
// Softmax, LogSoftmax and their gradients along one axis.
#include "op_family.h"

namespace tenon::conformance {
namespace {

std::int64_t length(const Variant& variant) {
  const auto axis = static_cast<std::size_t>(variant.attributes.as<tenon_attributes_axis>().axis);
  return variant.inputs[0].shape[axis];
}
double root(const Variant& variant) {
  return std::sqrt(static_cast<double>(length(variant)));
}

constexpr Tolerance softmax_bound{
    "x - max, up to 60, rounds by 60 * epsilon / 2, and exp makes that a relative error; the sum adds about the root "
    "of its length.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      return {(32 + root(variant)) * epsilon(t), 0};
    }};
constexpr Tolerance log_softmax_bound{
    "x - max, up to 60, rounds by 60 * epsilon / 2; the logarithm of a sum of n terms is off by about root(n) "
    "epsilon. Both are absolute.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      return {2 * epsilon(t), (32 + root(variant)) * epsilon(t)};
    }};
constexpr Tolerance softmax_grad_bound{"y (dy - sum dy y), |dy| <= 2 and y < 1: the sum of n terms rounds by root(n) epsilon times 2 n.",
                                       [](const Variant& variant, tenon_dtype t) -> Bound {
                                         const auto n = static_cast<double>(length(variant));
                                         return {3 * epsilon(t), epsilon(t) * (4 + 2 * n * std::sqrt(n))};
                                       }};
constexpr Tolerance log_softmax_grad_bound{
    "dy - exp(y) sum dy, |dy| <= 2: the sum of n terms rounds by root(n) epsilon times 2 n, and exp is off by 4 "
    "epsilon of at most 1.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      const auto n = static_cast<double>(length(variant));
      return {3 * epsilon(t), epsilon(t) * (4 + 2 * n * (std::sqrt(n) + 4))};
    }};

struct Place {
  Dims shape;
  std::int64_t axis;
};
std::vector<Place> places() {
  return {{{1}, 0},
          {{7}, 0},
          {{8, 10}, 1},
          {{8, 10}, 0},
          {{2, 3, 5}, 1},
          {{2, 3, 4, 5}, 3},
          {{0, 4}, 1},
          {{4, 0}, 1},
          {{2, 3, sized(1000, 100)}, 2},
          {{sized(333, 33), 10}, 1}};
}

AttributeBytes along(std::int64_t axis) {
  return tenon_attributes_axis{.axis = axis};
}
std::vector<Variant> of_x() {
  std::vector<Variant> variants;
  for (const auto& [shape, axis] : places()) {
    variants.push_back({fmt::format("axis={}", axis),
                        {operand(shape, {.low = -30, .high = 30, .special = Special::not_large})},
                        {result(shape)},
                        along(axis)});
  }
  return variants;
}
std::vector<Variant> of_dy_and_y(const Values& y) {
  std::vector<Variant> variants;
  for (const auto& [shape, axis] : places()) {
    variants.push_back(
        {fmt::format("axis={}", axis), {operand(shape, {.special = Special::not_large}), operand(shape, y)}, {result(shape)}, along(axis)});
  }
  return variants;
}

/// Sums of f over lines along the axis have to be `expected`.
template <class F>
std::string lines_sum_to(const Variant& variant, const Array& y, double expected, double tolerance, F f) {
  const auto axis = static_cast<std::size_t>(variant.attributes.as<tenon_attributes_axis>().axis);
  const Dims& shape = y.shape();
  std::int64_t outer = 1, inner = 1;
  const std::int64_t n = shape[axis];
  for (std::size_t d = 0; d < axis; ++d) outer *= shape[d];
  for (std::size_t d = axis + 1; d < shape.size(); ++d) inner *= shape[d];
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      double sum = 0;
      for (std::int64_t k = 0; k < n; ++k) sum += f(y.at((o * n + k) * inner + i));
      if (!(std::fabs(sum - expected) <= tolerance)) return fmt::format("line ({},{}) sums to {:.17g}", o, i, sum);
    }
  }
  return {};
}

std::string rows_sum_to_one(const Variant& variant, tenon_dtype t, const std::vector<Array>&, const std::vector<Array>& outputs) {
  const Bound bound = softmax_bound(variant, t);
  return lines_sum_to(variant, outputs[0], 1, bound.relative + bound.rounding, [](double y) { return y; });
}
std::string exponentials_sum_to_one(const Variant& variant, tenon_dtype t, const std::vector<Array>&, const std::vector<Array>& outputs) {
  // exp turns the absolute error, and that of the largest |y| (about 66), into a relative one.
  const Bound bound = log_softmax_bound(variant, t);
  return lines_sum_to(variant, outputs[0], 1, bound.absolute + 66 * (bound.relative + bound.rounding),
                      [](double y) { return std::exp(y); });
}

/// log(sum exp x) = max + log(sum exp(x - max)): the maximum belongs outside the logarithm. A shift of x must not change y.
void logsumexp_exact(CaseContext& context, tenon_dtype dtype) {
  const Variant variant{"", {operand({1, 3})}, {result({1, 3})}, along(1)};
  const auto y_of = [&](double shift) {
    return context.run(net_of(line_of(TENON_OP_LogSoftmax), variant, dtype, {Array(dtype, {1, 3}, {shift, shift + 1, shift + 2})}))[0];
  };
  const Array expected = y_of(0);
  for (const double shift : {200.0, -202.0, 1000.0, -1000.0, 65536.0}) {
    const Array shifted(dtype, {1, 3}, {shift, shift + 1, shift + 2});
    if (shifted.at(0) != shift || shifted.at(1) != shift + 1 || shifted.at(2) != shift + 2) continue;  // bf16 counts by 4 at 1000
    const std::string wrong = compare(expected, y_of(shift), log_softmax_bound(variant, dtype));
    if (!wrong.empty()) throw Failure(fmt::format("x shifted by {}: {}", shift, wrong));
  }
}

Variant row(std::int64_t rows, std::int64_t n, std::size_t operands) {
  return {"", std::vector<OperandSpec>(operands, operand({rows, n})), {result({rows, n})}, along(1)};
}

}  // namespace

std::vector<OpCase> cases_softmax() {
  return {
      {.op = TENON_OP_Softmax,
       .variants = of_x(),
       .bound = softmax_bound,
       .gradient = {0},
       .gradient_ops = {TENON_OP_SoftmaxGrad},
       .also = {{"each row sums to one", rows_sum_to_one}},
       .golden = {{"values",
                   row(2, 3, 1),
                   {{1, 2, 3, -1000, 0, 1000}},
                   {{0.09003057317038046, 0.24472847105479764, 0.6652409557748218, 0, 0, 1}}},
                  {"equal", row(1, 4, 1), {{-5, -5, -5, -5}}, {{0.25, 0.25, 0.25, 0.25}}},
                  {"minus_infinity", row(1, 3, 1), {{-inf, 0, 0}}, {{0, 0.5, 0.5}}}}},
      {.op = TENON_OP_SoftmaxGrad,
       .variants = of_dy_and_y({.low = 0, .high = 1}),
       .bound = softmax_grad_bound,
       .golden = {{"values", row(1, 3, 2), {{1, 2, -4}, {0.5, 0.25, 0.25}}, {{0.5, 0.5, -1}}}}},
      {.op = TENON_OP_LogSoftmax,
       .variants = of_x(),
       .bound = log_softmax_bound,
       .gradient = {0},
       .gradient_ops = {TENON_OP_LogSoftmaxGrad},
       .also = {{"exponentials of each row sum to one", exponentials_sum_to_one}},
       .golden = {{"values",
                   row(2, 3, 1),
                   {{1, 2, 3, -1000, 0, 1000}},
                   {{-2.4076059644443806, -1.4076059644443804, -0.4076059644443804, -2000, -1000, 0}}},
                  {"minus_infinity", row(1, 3, 1), {{-inf, 0, 0}}, {{-inf, -0.6931471805599453, -0.6931471805599453}}}},
       .extras = {{"logsumexp_exact", logsumexp_exact}}},
      {.op = TENON_OP_LogSoftmaxGrad,
       .variants = of_dy_and_y({.low = -5, .high = 0}),
       .bound = log_softmax_grad_bound,
       .golden = {{"values", row(1, 3, 2), {{1, 2, -4}, {-0.5, -1, -2}}, {{1.6065306597126334, 2.3678794411714423, -3.864664716763387}}}}},
  };
}

}  // namespace tenon::conformance
