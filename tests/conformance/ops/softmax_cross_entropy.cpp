// SPDX-License-Identifier: Apache-2.0
// SoftmaxCrossEntropyLoss on integer labels, and its gradient.
#include "op_family.h"

namespace tenon::conformance {
namespace {

struct Form {
  Dims scores;  ///< (N, C, d1, ...)
  std::uint32_t reduction = TENON_REDUCTION_MEAN;
  bool weighted = false;
  std::optional<std::int64_t> ignore = {};
  bool log_prob = false;
  tenon_dtype labels = i64;
};

const char* reduction_name(std::uint32_t reduction) {
  return reduction == TENON_REDUCTION_MEAN ? "mean" : reduction == TENON_REDUCTION_SUM ? "sum" : "none";
}

AttributeBytes attributes_of(const Form& form) {
  return tenon_attributes_cross_entropy{
      .reduction = form.reduction, .has_ignore_index = form.ignore.has_value(), .ignore_index = form.ignore.value_or(0)};
}
std::string label_of(const Form& form) {
  std::string text = reduction_name(form.reduction);
  if (form.weighted) text += ",weights";
  if (form.ignore) text += fmt::format(",ignore={}", *form.ignore);
  if (form.log_prob) text += ",log_prob";
  if (form.labels == i32) text += ",i32";
  return text;
}
Dims positions(const Form& form) {
  Dims shape = form.scores;
  shape.erase(shape.begin() + 1);
  return shape;
}
OperandSpec labels_of(const Form& form) {
  Values values{.low = 0, .high = static_cast<double>(form.scores[1]), .whole = true};
  if (form.ignore) values.sometimes = static_cast<double>(*form.ignore);
  return operand(positions(form), values, form.labels);
}
/// Not near 0: the mean divides by their sum.
OperandSpec weights_of(const Form& form) {
  return form.weighted ? operand({form.scores[1]}, {.low = 0.1, .high = 1}) : absent;
}

Variant loss(const Form& form) {
  const Values scores{.low = -30, .high = 30};
  return {label_of(form),
          {operand(form.scores, scores), labels_of(form), weights_of(form)},
          {result(form.reduction == TENON_REDUCTION_NONE ? positions(form) : Dims{}), form.log_prob ? result(form.scores) : omitted},
          attributes_of(form)};
}
Variant loss_gradient(const Form& form) {
  return {label_of(form),
          {operand(form.reduction == TENON_REDUCTION_NONE ? positions(form) : Dims{}), operand(form.scores, {.low = -5, .high = 0}),
           labels_of(form), weights_of(form)},
          {result(form.scores)},
          attributes_of(form)};
}

std::vector<Form> forms() {
  constexpr std::uint32_t sum = TENON_REDUCTION_SUM, none = TENON_REDUCTION_NONE;
  return {{{1, 1}},
          {{1, 5}},
          {{8, 10}},
          {.scores = {8, 10}, .reduction = sum},
          {.scores = {8, 10}, .reduction = none},
          {.scores = {8, 10}, .log_prob = true},
          {.scores = {8, 10}, .labels = i32},
          {.scores = {8, 10}, .weighted = true},
          {.scores = {12, 10}, .weighted = true, .ignore = 3, .log_prob = true},
          {.scores = {12, 10}, .ignore = -100},
          {.scores = {12, 10}, .reduction = none, .ignore = -1, .labels = i32},
          {.scores = {3, 5, 2}, .weighted = true, .ignore = 255},
          {.scores = {2, 3, 4, 5}, .reduction = none, .log_prob = true},
          {.scores = {2, 3, 2, 2}, .reduction = sum, .weighted = true},
          {.scores = {0, 5}, .reduction = none},
          {.scores = {0, 5}, .reduction = sum},
          {.scores = {sized(301, 31), sized(1000, 100)}}};
}

constexpr Tolerance loss_bound{
    "The log probability is off as a log_softmax is, (32 + root C) epsilon, for each position; weights are at most 1. "
    "Reducing N positions of at most 67 each rounds by about root(N) epsilon of their sum; the mean divides that by "
    "the weights' sum, at least N / 10.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      const auto& attributes = variant.attributes.as<tenon_attributes_cross_entropy>();
      const auto n = static_cast<double>(count_of(variant.inputs[1].shape)), c = static_cast<double>(variant.inputs[0].shape[1]);
      const double one = (32 + std::sqrt(c)) * epsilon(t);
      if (attributes.reduction == TENON_REDUCTION_NONE) return {3 * epsilon(t), one};
      const double all = one + 67 * std::sqrt(n) * epsilon(t);
      return {3 * epsilon(t), attributes.reduction == TENON_REDUCTION_SUM ? n * all : (variant.inputs[2].present ? 10 * all : all)};
    }};
constexpr Tolerance gradient_bound{
    "scale (exp(log_prob) - 1): exp of up to -5 is off by 4 epsilon of at most 1; the scale is 2 at most, or 2 over a "
    "weight of at least 0.1.",
    [](const Variant& variant, tenon_dtype t) -> Bound {
      return {4 * epsilon(t), (variant.inputs[3].present ? 80 : 8) * epsilon(t)};
    }};

/// The loss is the mean of logarithms, not the logarithm of a mean: it follows from the log probabilities.
void loss_is_cross_entropy(CaseContext& context, tenon_dtype dtype) {
  const Variant variant = loss({.scores = {2, 2}, .log_prob = true});
  // Probabilities of the right class: 1/4 and 3/4. The mean of the logarithms is log(sqrt(3) / 4); the logarithm of the mean, log(1/2).
  const std::vector<double> scores{0, std::log(3.0), 0, std::log(3.0)};
  const auto got = context.run(
      net_of(line_of(TENON_OP_SoftmaxCrossEntropyLoss), variant, dtype, {Array(dtype, {2, 2}, scores), Array(i64, {2}, {0, 1}), Array()}));
  const std::string wrong = compare(Array(f64, {}, {-std::log(std::sqrt(3.0) / 4)}), got[0], {8 * epsilon(dtype), 0});
  if (!wrong.empty()) throw Failure(wrong);
}

void label_1234_at_5(std::vector<Array>& inputs, std::size_t labels) {
  inputs[labels].set(5, 1234);
}

}  // namespace

std::vector<OpCase> cases_softmax_cross_entropy() {
  std::vector<Variant> losses, gradients;
  for (const Form& form : forms()) {
    losses.push_back(loss(form));
    if (!form.log_prob) gradients.push_back(loss_gradient(form));
  }
  gradients.push_back(loss_gradient({.scores = {12, 10}, .weighted = true, .ignore = 3}));
  gradients.push_back(loss_gradient({.scores = {2, 3, 4, 5}, .reduction = TENON_REDUCTION_NONE}));

  const std::vector<double> scores{1, 2, 3, 0.5, -1, 0, 4, 4, 4};
  const std::vector<double> labels{2, 0, 1};
  const Form three{.scores = {3, 3}};
  return {
      {.op = TENON_OP_SoftmaxCrossEntropyLoss,
       .variants = losses,
       .bound = loss_bound,
       .gradient = {0},
       .gradient_ops = {TENON_OP_SoftmaxCrossEntropyLossGrad},
       .golden = {{"mean", loss(three), {scores, labels, {}}, {{0.7034496194830728}, {}}},
                  {"none_and_log_prob",
                   loss({.scores = {3, 3}, .reduction = TENON_REDUCTION_NONE, .log_prob = true}),
                   {scores, labels, {}},
                   {{0.4076059644443804, 0.6041306053367284, 1.0986122886681098},
                    {-2.4076059644443806, -1.4076059644443804, -0.4076059644443804, -0.6041306053367284, -2.1041306053367284,
                     -1.1041306053367284, -1.0986122886681098, -1.0986122886681098, -1.0986122886681098}}},
                  {"weighted_mean_divides_by_weights",
                   loss({.scores = {3, 3}, .weighted = true}),
                   {scores, labels, {0.5, 1, 0.25}},
                   {{0.8586166185414681}, {}}},
                  {"ignored_is_not_counted", loss({.scores = {3, 3}, .ignore = 0}), {scores, labels, {}}, {{0.7531091265562451}, {}}},
                  {"all_ignored_is_nan", loss({.scores = {3, 3}, .ignore = 7}), {scores, {7, 7, 7}, {}}, {{nan}, {}}}},
       .bad = {{"label_too_large",
                loss({.scores = {8, 10}}),
                [](std::vector<Array>& inputs) { label_1234_at_5(inputs, 1); },
                {"1234", "5", "10"}},
               {"label_negative",
                loss({.scores = {8, 10}, .ignore = -100}),
                [](std::vector<Array>& inputs) { inputs[1].set(2, -7); },
                {"-7", "2", "10"}},
               {"label_i32",
                loss({.scores = {8, 10}, .labels = i32}),
                [](std::vector<Array>& inputs) { label_1234_at_5(inputs, 1); },
                {"1234"}}},
       .extras = {{"loss_is_cross_entropy", loss_is_cross_entropy}}},
      {.op = TENON_OP_SoftmaxCrossEntropyLossGrad,
       .variants = gradients,
       .bound = gradient_bound,
       .golden = {{"mean",
                   loss_gradient({.scores = {2, 2}}),
                   {{2}, {-0.5, -1, -2, -0.25}, {1, 0}, {}},
                   {{0.6065306597126334, -0.6321205588285577, -0.8646647167633873, 0.7788007830714049}}},
                  {"ignored_is_zero",
                   loss_gradient({.scores = {2, 2}, .ignore = 1}),
                   {{2}, {-0.5, -1, -2, -0.25}, {1, 0}, {}},
                   {{0, 0, -1.7293294335267746, 1.5576015661428098}}},
                  {"none_and_weights",
                   loss_gradient({.scores = {2, 2}, .reduction = TENON_REDUCTION_NONE, .weighted = true}),
                   {{2, -4}, {-0.5, -1, -2, -0.25}, {1, 0}, {0.5, 0.25}},
                   {{0.3032653298563167, -0.31606027941427883, 1.7293294335267746, -1.5576015661428098}}}},
       .bad = {{"label_too_large",
                loss_gradient({.scores = {8, 10}}),
                [](std::vector<Array>& inputs) { label_1234_at_5(inputs, 2); },
                {"1234", "5", "10"}}}},
  };
}

}  // namespace tenon::conformance
