// SPDX-License-Identifier: Apache-2.0
#include "train/optimizers.h"

#include <fmt/core.h>

#include <algorithm>

#include <tenon/error.h>

#include "exec/placement.h"
#include "train/trainable.h"

namespace tenon::train {
namespace {

using Optimizer = OptimizerDefinition;
using Names = std::vector<std::string>;
using Allowed = OptimizerKey::Allowed;

const OptimizerKey beta1{"beta1", &Optimizer::beta1, Allowed::below_one};
const OptimizerKey beta2{"beta2", &Optimizer::beta2, Allowed::below_one};
const OptimizerKey epsilon{"epsilon", &Optimizer::epsilon, Allowed::above_zero};
const OptimizerKey rho{"rho", &Optimizer::rho, Allowed::below_one};
const OptimizerKey momentum{"momentum", &Optimizer::momentum, Allowed::below_one};
const OptimizerKey nesterov{"nesterov", nullptr, Allowed::from_zero, &Optimizer::nesterov};
const OptimizerKey amsgrad{"amsgrad", nullptr, Allowed::from_zero, &Optimizer::amsgrad};
const OptimizerKey initial_accumulator{"initial_accumulator", &Optimizer::initial_accumulator, Allowed::from_zero};
const OptimizerKey weight_decay{"weight_decay", &Optimizer::weight_decay, Allowed::from_zero};

bool uses_amsgrad(const Optimizer& o) {
  return o.amsgrad || o.kind == Optimizer::Kind::amsgrad;
}

void adam(const OptimizerInputs& in) {
  tenon_attributes_adam a{};
  a.beta1 = in.definition.beta1;
  a.beta2 = in.definition.beta2;
  a.epsilon = in.definition.epsilon;
  a.weight_decay = in.definition.kind == Optimizer::Kind::adamw ? in.definition.weight_decay : 0;
  if (uses_amsgrad(in.definition)) {
    ops::amsgrad_step(in.parameters, in.gradients, in.state, in.lr, in.step, a);
  } else {
    ops::adam_step(in.parameters, in.gradients, in.state, in.lr, in.step, a);
  }
}

void sgd(const OptimizerInputs& in) {
  tenon_attributes_sgd a{};
  a.momentum = in.definition.momentum;
  a.nesterov = in.definition.nesterov ? 1 : 0;
  a.weight_decay = in.definition.weight_decay;
  ops::sgd_step(in.parameters, in.gradients, in.state, in.lr, a);
}

void rmsprop(const OptimizerInputs& in) {
  tenon_attributes_rmsprop a{};
  a.rho = in.definition.rho;
  a.epsilon = in.definition.epsilon;
  a.epsilon_outside = in.definition.epsilon_outside_root ? 1 : 0;
  ops::rmsprop_step(in.parameters, in.gradients, in.state, in.lr, a);
}

void adagrad(const OptimizerInputs& in) {
  tenon_attributes_adagrad a{};
  a.epsilon = in.definition.epsilon;
  a.weight_decay = in.definition.weight_decay;
  ops::adagrad_step(in.parameters, in.gradients, in.state, in.lr, a);
}

void adadelta(const OptimizerInputs& in) {
  tenon_attributes_adadelta a{};
  a.rho = in.definition.rho;
  a.epsilon = in.definition.epsilon;
  a.weight_decay = in.definition.weight_decay;
  ops::adadelta_step(in.parameters, in.gradients, in.state, in.lr, a);
}

void no_defaults(Optimizer&) {}

void adamw_defaults(Optimizer& o) {
  o.weight_decay = o.preset == Preset::keras ? 0.004 : 0.01;
}
void sgd_defaults(Optimizer& o) {
  o.learning_rate = 0.01;
}
void rmsprop_defaults(Optimizer& o) {
  o.rho = o.preset == Preset::keras ? 0.9 : o.preset == Preset::torch ? 0.99 : 0.999;
  o.epsilon_outside_root = o.preset == Preset::torch;
  if (o.preset == Preset::torch) o.learning_rate = 0.01;
}

void adagrad_defaults(Optimizer& o) {
  const bool keras = o.preset == Preset::keras;
  o.learning_rate = keras ? 0.001 : 0.01;
  o.epsilon = keras ? 1e-7 : 1e-10;
  o.initial_accumulator = keras ? 0.1 : 0;
}
void adadelta_defaults(Optimizer& o) {
  const bool keras = o.preset == Preset::keras;
  o.learning_rate = keras ? 0.001 : 1;
  o.rho = keras ? 0.95 : 0.9;
  o.epsilon = keras ? 1e-7 : 1e-6;
}

Names moments(const Optimizer& o) {
  return uses_amsgrad(o) ? Names{"m", "v", "peak"} : Names{"m", "v"};
}
Names sum_of_squares(const Optimizer&) {
  return {"sum"};
}
Names mean_squares(const Optimizer&) {
  return {"v", "delta"};
}
Names mean_square(const Optimizer&) {
  return {"v"};
}
Names velocity(const Optimizer& o) {
  return o.momentum != 0 ? Names{"velocity"} : Names{};
}

}  // namespace

std::span<const OptimizerRule> optimizer_rules() {
  static const std::vector<OptimizerRule> rules = {
      {Optimizer::Kind::adam, "adam", {beta1, beta2, epsilon, amsgrad}, no_defaults, moments, adam},
      {Optimizer::Kind::adamw, "adamw", {weight_decay, beta1, beta2, epsilon, amsgrad}, adamw_defaults, moments, adam},
      {Optimizer::Kind::amsgrad, "amsgrad", {beta1, beta2, epsilon}, no_defaults, moments, adam},
      {Optimizer::Kind::sgd, "sgd", {momentum, nesterov, weight_decay}, sgd_defaults, velocity, sgd},
      {Optimizer::Kind::rmsprop, "rmsprop", {rho, epsilon}, rmsprop_defaults, mean_square, rmsprop},
      {Optimizer::Kind::adagrad,
       "adagrad",
       {epsilon, weight_decay, initial_accumulator},
       adagrad_defaults,
       sum_of_squares,
       adagrad,
       &Optimizer::initial_accumulator},
      {Optimizer::Kind::adadelta, "adadelta", {rho, epsilon, weight_decay}, adadelta_defaults, mean_squares, adadelta},
  };
  return rules;
}

OptimizerDefinition default_optimizer(Optimizer::Kind kind, Preset preset) {
  Optimizer result;
  result.kind = kind;
  result.preset = preset;
  result.epsilon = preset == Preset::keras ? 1e-7 : 1e-8;
  rule_of(kind).set_defaults(result);
  return result;
}

const ParameterGroup* group_of(const Optimizer& optimizer, const std::string& parameter) {
  for (const ParameterGroup& group : optimizer.groups) {
    if (exec::glob_matches(group.match, parameter)) return &group;
  }
  return nullptr;
}

Optimizer with_group(Optimizer optimizer, const ParameterGroup* group) {
  if (group != nullptr && group->weight_decay) optimizer.weight_decay = *group->weight_decay;
  return optimizer;
}

void check_groups(const Optimizer& optimizer, std::span<const std::string> parameters) {
  const OptimizerRule& rule = rule_of(optimizer.kind);
  const bool decays =
      std::any_of(rule.keys.begin(), rule.keys.end(), [](const OptimizerKey& key) { return key.number == &Optimizer::weight_decay; });
  for (const ParameterGroup& group : optimizer.groups) {
    const std::string what = fmt::format("{}optimizer: group '{}'", optimizer.where.empty() ? "" : optimizer.where + ": ", group.match);
    check_glob(what, group.match, parameters);
    if (!(group.learning_rate_factor >= 0))
      throw Error(fmt::format("{}: learning_rate_factor is {}, expected at least 0", what, group.learning_rate_factor));
    if (!group.weight_decay) continue;
    if (!decays) throw Error(fmt::format("{}: {} has no weight_decay; adamw and sgd do", what, rule.name));
    if (!(*group.weight_decay >= 0)) throw Error(fmt::format("{}: weight_decay is {}, expected at least 0", what, *group.weight_decay));
  }
}

const OptimizerRule& rule_of(Optimizer::Kind kind) {
  for (const OptimizerRule& rule : optimizer_rules()) {
    if (rule.kind == kind) return rule;
  }
  throw Error("an optimizer without a row in train/optimizers.cpp");
}

}  // namespace tenon::train

namespace tenon {

const char* name_of(OptimizerDefinition::Kind kind) {
  return train::rule_of(kind).name;
}

}  // namespace tenon
