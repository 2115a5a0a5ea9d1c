// SPDX-License-Identifier: Apache-2.0
// ops/optimizer.cpp - optimizer steps over all parameters of one dtype at once.
#include <fmt/format.h>

#include <tenon/error.h>
#include <tenon/functions.h>

#include "graph/op.h"
#include "text/counted.h"

namespace tenon {
namespace graph {
namespace {

/// The operands are `first` scalars, then groups (w, g, state ...); each group's results are (w, state ...).
void infer_groups(Inference& at, std::size_t first, const std::vector<const char*>& words) {
  const std::size_t size = words.size();
  const auto str = [&](std::size_t i) {
    return fmt::format("{} '{}' {}{}", words[(i - first) % size], at.name(i), name_of(at.dtype(i)), at.shape(i).str());
  };
  const std::size_t groups = (at.input_count() - first) / size;
  if (groups == 0 || at.input_count() != first + groups * size) {
    at.fail(fmt::format("expected {} and groups of ({}), got {}", counted(first, "operand"), fmt::join(words, ", "),
                        counted(at.input_count(), "operand")));
  }
  at.expect_inputs(at.input_count(), at.input_count());
  at.expect_floating(first);
  for (std::size_t w = first; w < at.input_count(); w += size) {
    if (at.dtype(w) != at.dtype(first)) at.fail(fmt::format("expected parameters of one dtype, got {}, {}", str(first), str(w)));
    for (std::size_t i = w; i < w + size; ++i) {
      if (at.dtype(i) != at.dtype(w) || at.shape(i) != at.shape(w))
        at.fail(fmt::format("expected equal dtypes and shapes within a group, got {}, {}", str(w), str(i)));
      if (i != w + 1) at.output(at.dtype(w), at.shape(w));
    }
  }
}

void expect_below_one(Inference& at, const char* name, double value) {
  if (!(value >= 0 && value < 1)) at.fail(fmt::format("{} is {}, expected 0 <= {} < 1", name, value, name));
}
void expect_not_negative(Inference& at, const char* name, double value) {
  if (!(value >= 0)) at.fail(fmt::format("{} is {}, expected {} >= 0", name, value, name));
}

/// f64, or f32 for a device without f64.
void expect_learning_rate(Inference& at) {
  at.expect_scalar(0, at.dtype(0) == DType::f32 ? DType::f32 : DType::f64);
}

void infer_sgd(Inference& at) {
  const auto& a = at.attributes.as<tenon_attributes_sgd>();
  expect_below_one(at, "momentum", a.momentum);
  expect_not_negative(at, "weight_decay", a.weight_decay);
  at.expect_flag(a.nesterov, "nesterov");
  if (a.nesterov != 0 && a.momentum == 0) at.fail("nesterov: expected a momentum > 0, got 0");
  at.expect_inputs(1, std::max<std::size_t>(1, at.input_count()));
  expect_learning_rate(at);
  if (a.momentum == 0)
    infer_groups(at, 1, {"w", "g"});
  else
    infer_groups(at, 1, {"w", "g", "velocity"});
}

void infer_adam_like(Inference& at, const std::vector<const char*>& words) {
  const auto& a = at.attributes.as<tenon_attributes_adam>();
  expect_below_one(at, "beta1", a.beta1);
  expect_below_one(at, "beta2", a.beta2);
  expect_not_negative(at, "epsilon", a.epsilon);
  expect_not_negative(at, "weight_decay", a.weight_decay);
  at.expect_inputs(2, std::max<std::size_t>(2, at.input_count()));
  expect_learning_rate(at);
  at.expect_scalar(1, DType::i64);
  infer_groups(at, 2, words);
}

void infer_adam(Inference& at) {
  infer_adam_like(at, {"w", "g", "m", "v"});
}

void infer_amsgrad(Inference& at) {
  infer_adam_like(at, {"w", "g", "m", "v", "peak"});
}

void infer_adagrad(Inference& at) {
  const auto& a = at.attributes.as<tenon_attributes_adagrad>();
  expect_not_negative(at, "epsilon", a.epsilon);
  expect_not_negative(at, "weight_decay", a.weight_decay);
  at.expect_inputs(1, std::max<std::size_t>(1, at.input_count()));
  expect_learning_rate(at);
  infer_groups(at, 1, {"w", "g", "sum"});
}

void infer_adadelta(Inference& at) {
  const auto& a = at.attributes.as<tenon_attributes_adadelta>();
  expect_below_one(at, "rho", a.rho);
  expect_not_negative(at, "epsilon", a.epsilon);
  expect_not_negative(at, "weight_decay", a.weight_decay);
  at.expect_inputs(1, std::max<std::size_t>(1, at.input_count()));
  expect_learning_rate(at);
  infer_groups(at, 1, {"w", "g", "v", "delta"});
}

void infer_rmsprop(Inference& at) {
  const auto& a = at.attributes.as<tenon_attributes_rmsprop>();
  expect_below_one(at, "rho", a.rho);
  expect_not_negative(at, "epsilon", a.epsilon);
  at.expect_flag(a.epsilon_outside, "epsilon_outside");
  at.expect_inputs(1, std::max<std::size_t>(1, at.input_count()));
  expect_learning_rate(at);
  infer_groups(at, 1, {"w", "g", "v"});
}

/// n operations for each parameter of groups with `size` operands; SgdStep's velocity, which is optional, counts as half a parameter.
template <std::int64_t n, std::int64_t size>
std::int64_t per_parameter(const Graph& graph, const NodeInfo& node) {
  std::int64_t elements = 0;
  for (const ValueId v : node.inputs) elements += graph.info(v).shape.count();
  return elements / size * n;
}

}  // namespace

extern const OpRules rules_sgd_step, rules_adam_step, rules_rmsprop_step, rules_amsgrad_step, rules_adagrad_step, rules_adadelta_step;
const OpRules rules_sgd_step{
    "g' = g + weight_decay w; velocity = momentum velocity + g'; w -= lr (nesterov ? g' + momentum velocity : velocity). With momentum 0 "
    "groups are (w, g) and w -= lr g'.",
    infer_sgd, PrecisionClass::fp32, per_parameter<4, 2>};
const OpRules rules_adam_step{
    "m = beta1 m + (1 - beta1) g; v = beta2 v + (1 - beta2) g^2; w -= lr (m / (1 - beta1^step) / (sqrt(v / (1 - beta2^step)) + epsilon) + "
    "weight_decay w). step counts from 1.",
    infer_adam, PrecisionClass::fp32, per_parameter<12, 4>};
const OpRules rules_rmsprop_step{
    "v = rho v + (1 - rho) g^2; w -= lr g / sqrt(v + epsilon), or lr g / (sqrt(v) + epsilon) if epsilon_outside.", infer_rmsprop,
    PrecisionClass::fp32, per_parameter<8, 3>};
const OpRules rules_amsgrad_step{
    "As AdamStep with the largest v so far instead of v: peak = max(peak, v); w -= lr (m / (1 - beta1^step) / (sqrt(peak / (1 - "
    "beta2^step)) + epsilon) + weight_decay w).",
    infer_amsgrad, PrecisionClass::fp32, per_parameter<12, 5>};
const OpRules rules_adagrad_step{"h = g + weight_decay w; sum += h^2; w -= lr h / (sqrt(sum) + epsilon).", infer_adagrad,
                                 PrecisionClass::fp32, per_parameter<8, 3>};
const OpRules rules_adadelta_step{
    "h = g + weight_decay w; v = rho v + (1 - rho) h^2; d = h sqrt(delta + epsilon) / sqrt(v + epsilon); delta = rho delta + (1 - rho) "
    "d^2; w -= lr d.",
    infer_adadelta, PrecisionClass::fp32, per_parameter<8, 4>};

}  // namespace graph

namespace ops {
namespace {

/// Applies a step to the groups (parameter, gradient, state) and registers the results as updates of parameters and state.
void step(tenon_op op, std::vector<Value> operands, const std::vector<Value>& parameters, const std::vector<Value>& gradients,
          const std::vector<Value>& state, std::size_t states_each, const Attributes& attributes) {
  if (parameters.empty()) throw Error(fmt::format("{}: expected one parameter or more, got none", graph::stem_of(op)));
  if (gradients.size() != parameters.size() || state.size() != parameters.size() * states_each) {
    throw Error(fmt::format("{}: for {}, expected {} and {} of state, got {} and {}", graph::stem_of(op),
                            counted(parameters.size(), "parameter"), counted(parameters.size(), "gradient"),
                            counted(parameters.size() * states_each, "value"), gradients.size(), state.size()));
  }
  std::vector<Value> targets;  // the value that each result replaces
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    operands.insert(operands.end(), {parameters[i], gradients[i]});
    targets.push_back(parameters[i]);
    for (std::size_t k = i * states_each; k < (i + 1) * states_each; ++k) {
      operands.push_back(state[k]);
      targets.push_back(state[k]);
    }
  }
  Graph& graph = parameters.front().graph();
  const std::vector<Value> results = graph.apply(op, operands, attributes);
  for (std::size_t i = 0; i < results.size(); ++i) graph.update(targets[i], results[i]);
}

}  // namespace

void sgd_step(const std::vector<Value>& parameters, const std::vector<Value>& gradients, const std::vector<Value>& state, Value lr,
              const tenon_attributes_sgd& attributes) {
  step(TENON_OP_SgdStep, {lr}, parameters, gradients, state, attributes.momentum != 0 ? 1 : 0, Attributes::of(attributes));
}

void adam_step(const std::vector<Value>& parameters, const std::vector<Value>& gradients, const std::vector<Value>& state, Value lr,
               Value step_number, const tenon_attributes_adam& attributes) {
  step(TENON_OP_AdamStep, {lr, step_number}, parameters, gradients, state, 2, Attributes::of(attributes));
}

void amsgrad_step(const std::vector<Value>& parameters, const std::vector<Value>& gradients, const std::vector<Value>& state, Value lr,
                  Value step_number, const tenon_attributes_adam& attributes) {
  step(TENON_OP_AmsGradStep, {lr, step_number}, parameters, gradients, state, 3, Attributes::of(attributes));
}

void adagrad_step(const std::vector<Value>& parameters, const std::vector<Value>& gradients, const std::vector<Value>& state, Value lr,
                  const tenon_attributes_adagrad& attributes) {
  step(TENON_OP_AdagradStep, {lr}, parameters, gradients, state, 1, Attributes::of(attributes));
}

void adadelta_step(const std::vector<Value>& parameters, const std::vector<Value>& gradients, const std::vector<Value>& state, Value lr,
                   const tenon_attributes_adadelta& attributes) {
  step(TENON_OP_AdadeltaStep, {lr}, parameters, gradients, state, 2, Attributes::of(attributes));
}

void rmsprop_step(const std::vector<Value>& parameters, const std::vector<Value>& gradients, const std::vector<Value>& state, Value lr,
                  const tenon_attributes_rmsprop& attributes) {
  step(TENON_OP_RmsPropStep, {lr}, parameters, gradients, state, 1, Attributes::of(attributes));
}

}  // namespace ops
}  // namespace tenon
