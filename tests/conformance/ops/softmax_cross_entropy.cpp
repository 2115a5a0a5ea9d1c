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

/// What differs from a training step: the accuracy has labels of its own, ArgMax is an output, the gradient is multiplied by the loss, or
/// by the accuracy, which is then computed before the loss.
enum class Besides { nothing, other_labels, shared_best, loss_as_dloss, accuracy_in_dloss };

/// A training step: loss, its gradient and the accuracy on the same scores are the same whether they are one kernel or several, also for
/// rows with equal scores, infinities and NaN.
void with_gradient_and_accuracy(CaseContext& context, tenon_dtype dtype) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const Form& form : std::vector<Form>{{{1, 1}},
                                            {{10, 10}},
                                            {.scores = {37, 5}, .reduction = TENON_REDUCTION_SUM},
                                            {{300, 3}},
                                            {{33, 1000}},
                                            {{5, 9000}},
                                            {.scores = {12, 8}, .log_prob = true},
                                            {.scores = {12, 8}, .ignore = 3},
                                            {{2, 3, 4}},
                                            {{5000, 2}}}) {
    for (const auto& [besides, special] : std::vector<std::pair<Besides, bool>>{{Besides::nothing, false},
                                                                                {Besides::nothing, true},
                                                                                {Besides::other_labels, false},
                                                                                {Besides::shared_best, false},
                                                                                {Besides::loss_as_dloss, false},
                                                                                {Besides::accuracy_in_dloss, false}}) {
      const std::int64_t classes = form.scores[1], inner = count_of(form.scores) / form.scores[0] / classes;
      const std::int64_t count = count_of(form.scores), places = count / classes;
      std::vector<double> scores, labels;
      for (std::int64_t i = 0; i < count; ++i) scores.push_back(static_cast<double>(i * 7 % 23 - 11) / 4);  // with ties
      for (std::int64_t i = 0; i < places; ++i) labels.push_back(static_cast<double>(i * 5 % classes));
      if (special) {
        const auto set = [&](std::int64_t row, std::int64_t k, double x) {
          const std::int64_t at = (row * classes + k % classes) * inner;
          if (row < form.scores[0]) scores[static_cast<std::size_t>(at)] = x;
        };
        set(0, 1, nan), set(0, 3, nan);
        set(2, 2, infinity);
        for (std::int64_t k = 0; k < classes; ++k) set(4, k, -infinity);
      }
      Net net;
      const Dims shape = positions(form);
      const AttributeBytes attributes = attributes_of(form);
      const std::uint32_t x = net.input(Array(dtype, form.scores, scores)), y = net.input(Array(i64, shape, labels)),
                          dloss = net.input(Array(dtype, {}, {1.5})), loss = net.output(dtype, {}),
                          log_prob = form.log_prob ? net.output(dtype, form.scores) : net.internal(dtype, form.scores),
                          best = besides == Besides::shared_best ? net.output(i64, shape) : net.internal(i64, shape),
                          expected =
                              besides == Besides::other_labels ? net.input(Array(i64, shape, std::vector<double>(labels.size(), 0))) : y,
                          hits = net.internal(TENON_DTYPE_BOOL, shape), numbers = net.internal(dtype, shape),
                          accuracy = net.output(dtype, {}), gradient = net.output(dtype, form.scores);
      constexpr std::uint32_t absent_value = TENON_NO_INDEX;
      const auto add = [&](tenon_op op, const void* of, std::vector<std::uint32_t> inputs, std::vector<std::uint32_t> outputs) {
        net.node(op, line_of(op).version, of, std::move(inputs), std::move(outputs));
      };
      const tenon_attributes_axis along{.struct_size = sizeof along, .axis = 1};
      const tenon_attributes_none none{sizeof none, 0};
      const tenon_attributes_cast to{.struct_size = sizeof to, .to = dtype};
      const tenon_attributes_axes all{.struct_size = sizeof all};
      const bool scales = besides == Besides::accuracy_in_dloss;
      const auto add_loss = [&] { add(TENON_OP_SoftmaxCrossEntropyLoss, attributes.data(), {x, y, absent_value}, {loss, log_prob}); };
      if (!scales) add_loss();
      add(TENON_OP_ArgMax, &along, {x}, {best});
      add(TENON_OP_Equal, &none, {best, expected}, {hits});
      add(TENON_OP_Cast, &to, {hits}, {numbers});
      add(TENON_OP_ReduceMean, &all, {numbers}, {accuracy});
      const std::uint32_t scaled = scales ? net.internal(dtype, {}) : dloss;
      if (scales) {
        add(TENON_OP_Mul, &none, {accuracy, dloss}, {scaled});
        add_loss();
      }
      add(TENON_OP_SoftmaxCrossEntropyLossGrad, attributes.data(),
          {besides == Besides::loss_as_dloss ? loss : scaled, log_prob, y, absent_value}, {gradient});
      const auto apart = context.run(net, {.fusion = TENON_FUSION_OFF});
      const auto together = context.run(net, {.fusion = TENON_FUSION_FULL});
      for (std::size_t i = 0; i < apart.size(); ++i) {
        const std::string wrong = compare(apart[i], together[i], {8 * epsilon(dtype), 8 * epsilon(dtype)});
        if (!wrong.empty()) {
          throw Failure(fmt::format("scores {}{}, output {}: {}, expected the result of separate kernels", str(form.scores),
                                    special ? " with NaN and infinities" : "", i, wrong));
        }
      }
    }
  }
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
       .extras = {{"loss_is_cross_entropy", loss_is_cross_entropy}, {"with_gradient_and_accuracy", with_gradient_and_accuracy}}},
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
