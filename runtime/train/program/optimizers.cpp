// SPDX-License-Identifier: Apache-2.0
#include "train/program/optimizers.h"

#include <fmt/core.h>

#include <cmath>

#include <tenon/error.h>

#include "train/program/optimizer_steps.h"
#include "train/program/trainable.h"
#include "yaml/glob.h"

namespace tenon::train {
namespace {

using Optimizer = OptimizerDefinition;
using Names = std::vector<std::string>;
using Allowed = OptimizerKey::Allowed;

const OptimizerKey learning_rate{"learning_rate", &Optimizer::learning_rate, Allowed::from_zero};
const OptimizerKey beta1{"beta1", &Optimizer::beta1, Allowed::below_one};
const OptimizerKey beta2{"beta2", &Optimizer::beta2, Allowed::below_one};
const OptimizerKey epsilon{"epsilon", &Optimizer::epsilon, Allowed::above_zero};
const OptimizerKey rho{"rho", &Optimizer::rho, Allowed::below_one};
const OptimizerKey momentum{"momentum", &Optimizer::momentum, Allowed::below_one};
const OptimizerKey nesterov{"nesterov", nullptr, Allowed::from_zero, &Optimizer::nesterov};
const OptimizerKey amsgrad{"amsgrad", nullptr, Allowed::from_zero, &Optimizer::amsgrad};
const OptimizerKey centered{"centered", nullptr, Allowed::from_zero, &Optimizer::centered};
const OptimizerKey initial_accumulator{"initial_accumulator", &Optimizer::initial_accumulator, Allowed::from_zero};
const OptimizerKey weight_decay{"weight_decay", &Optimizer::weight_decay, Allowed::from_zero};

bool uses_amsgrad(const Optimizer& o) {
  return o.amsgrad || o.kind == Optimizer::Kind::amsgrad;
}

/// The gradients with the weights' share, as of an added weight_decay / 2 |w|^2.
std::vector<Value> decayed(const OptimizerInputs& in) {
  std::vector<Value> gradients = in.gradients;
  const double decay = *in.definition.weight_decay;
  for (std::size_t i = 0; decay != 0 && i < gradients.size(); ++i) {
    gradients[i] = ops::add(gradients[i], ops::mul(in.parameters[i], decay));
  }
  return gradients;
}

void adam(const OptimizerInputs& in) {
  const bool decoupled = in.definition.kind == Optimizer::Kind::adamw;
  tenon_attributes_adam a{};
  a.beta1 = *in.definition.beta1;
  a.beta2 = *in.definition.beta2;
  a.epsilon = *in.definition.epsilon;
  a.weight_decay = decoupled ? *in.definition.weight_decay : 0;
  const std::vector<Value> gradients = decoupled ? in.gradients : decayed(in);
  if (uses_amsgrad(in.definition)) {
    ops::amsgrad_step(in.parameters, gradients, in.state, in.lr, in.step, a);
  } else {
    ops::adam_step(in.parameters, gradients, in.state, in.lr, in.step, a);
  }
}

void sgd(const OptimizerInputs& in) {
  tenon_attributes_sgd a{};
  a.momentum = *in.definition.momentum;
  a.nesterov = in.definition.nesterov ? 1 : 0;
  a.weight_decay = *in.definition.weight_decay;
  ops::sgd_step(in.parameters, in.gradients, in.state, in.lr, a);
}

void rmsprop(const OptimizerInputs& in) {
  if (*in.definition.momentum != 0 || in.definition.centered) return rmsprop_with_momentum(in, decayed(in));
  tenon_attributes_rmsprop a{};
  a.rho = *in.definition.rho;
  a.epsilon = *in.definition.epsilon;
  a.epsilon_outside = *in.definition.epsilon_outside_root ? 1 : 0;
  ops::rmsprop_step(in.parameters, decayed(in), in.state, in.lr, a);
}

void adagrad(const OptimizerInputs& in) {
  tenon_attributes_adagrad a{};
  a.epsilon = *in.definition.epsilon;
  a.weight_decay = *in.definition.weight_decay;
  ops::adagrad_step(in.parameters, in.gradients, in.state, in.lr, a);
}

void adadelta(const OptimizerInputs& in) {
  tenon_attributes_adadelta a{};
  a.rho = *in.definition.rho;
  a.epsilon = *in.definition.epsilon;
  a.weight_decay = *in.definition.weight_decay;
  ops::adadelta_step(in.parameters, in.gradients, in.state, in.lr, a);
}

void nadam(const OptimizerInputs& in) {
  nadam_step(in, decayed(in));
}

void radam(const OptimizerInputs& in) {
  radam_step(in, decayed(in));
}

void no_defaults(Optimizer&) {}

void adamw_defaults(Optimizer& o) {
  o.weight_decay = o.preset == Preset::keras ? 0.004 : 0.01;
}
void nadam_defaults(Optimizer& o) {
  if (o.preset == Preset::torch) o.learning_rate = 0.002;
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
/// In the order of rmsprop_with_momentum.
Names mean_square(const Optimizer& o) {
  Names names{"v"};
  if (o.centered) names.emplace_back("mean");
  if (o.momentum.value_or(0) != 0) names.emplace_back("velocity");
  return names;
}
Names velocity(const Optimizer& o) {
  return o.momentum.value_or(0) != 0 ? Names{"velocity"} : Names{};
}

/// The range of a number, as for YAML.
void check(const Optimizer& optimizer, const OptimizerKey& key) {
  if (key.number == nullptr) return;
  const double value = *(optimizer.*key.number);
  const auto expect = [&](bool holds, const char* expected) {
    if (!holds || !std::isfinite(value)) {
      throw Error(fmt::format("optimizer {}: {} is {}, expected {}", name_of(optimizer.kind), key.name, value, expected));
    }
  };
  switch (key.allowed) {
    case Allowed::from_zero:
      return expect(value >= 0, "a finite number of at least 0");
    case Allowed::above_zero:
      return expect(value > 0, "a finite number above 0");
    case Allowed::below_one:
      return expect(value >= 0 && value < 1, "a number in [0, 1)");
  }
}

}  // namespace

std::span<const OptimizerRule> optimizer_rules() {
  static const std::vector<OptimizerRule> rules = {
      {Optimizer::Kind::adam, "adam", {beta1, beta2, epsilon, amsgrad, weight_decay}, no_defaults, moments, adam},
      {Optimizer::Kind::adamw, "adamw", {weight_decay, beta1, beta2, epsilon, amsgrad}, adamw_defaults, moments, adam},
      {Optimizer::Kind::amsgrad, "amsgrad", {beta1, beta2, epsilon, weight_decay}, no_defaults, moments, adam},
      {Optimizer::Kind::sgd, "sgd", {momentum, nesterov, weight_decay}, sgd_defaults, velocity, sgd},
      {Optimizer::Kind::rmsprop, "rmsprop", {rho, epsilon, momentum, centered, weight_decay}, rmsprop_defaults, mean_square, rmsprop},
      {Optimizer::Kind::adagrad,
       "adagrad",
       {epsilon, weight_decay, initial_accumulator},
       adagrad_defaults,
       sum_of_squares,
       adagrad,
       &Optimizer::initial_accumulator},
      {Optimizer::Kind::adadelta, "adadelta", {rho, epsilon, weight_decay}, adadelta_defaults, mean_squares, adadelta},
      {Optimizer::Kind::radam, "radam", {beta1, beta2, epsilon, weight_decay}, no_defaults, moments, radam},
      {Optimizer::Kind::nadam, "nadam", {beta1, beta2, epsilon, weight_decay}, nadam_defaults, moments, nadam},
  };
  return rules;
}

OptimizerDefinition with_defaults(const Optimizer& given) {
  Optimizer defaults;
  defaults.preset = given.preset;
  defaults.learning_rate = 0.001;
  defaults.beta1 = 0.9;
  defaults.beta2 = 0.999;
  defaults.epsilon = given.preset == Preset::keras ? 1e-7 : 1e-8;
  defaults.epsilon_outside_root = false;
  defaults.rho = 0.999;
  defaults.momentum = defaults.weight_decay = defaults.initial_accumulator = 0;
  const OptimizerRule& rule = rule_of(given.kind);
  rule.set_defaults(defaults);
  Optimizer result = given;
  for (const auto field : {&Optimizer::learning_rate, &Optimizer::beta1, &Optimizer::beta2, &Optimizer::epsilon, &Optimizer::rho,
                           &Optimizer::momentum, &Optimizer::weight_decay, &Optimizer::initial_accumulator}) {
    if (!(result.*field)) result.*field = defaults.*field;
  }
  if (!result.epsilon_outside_root) result.epsilon_outside_root = defaults.epsilon_outside_root;
  check(result, learning_rate);
  for (const OptimizerKey& key : rule.keys) check(result, key);
  check(result.schedule);
  return result;
}

void check(const Schedule& s) {
  const auto expect = [&](const char* name, double value, bool holds, const char* expected) {
    if (!holds) throw Error(fmt::format("schedule {}: {} is {}, expected {}", name_of(s.kind), name, value, expected));
  };
  const auto positive = [&](const char* name, double value) { expect(name, value, value > 0, "a number above 0"); };
  const auto not_negative = [&](const char* name, double value) { expect(name, value, value >= 0, "a number of at least 0"); };
  positive("factor", s.factor);
  positive("every", static_cast<double>(s.every));
  not_negative("length", static_cast<double>(s.length));
  not_negative("minimum", s.minimum);
  not_negative("maximum", s.maximum);
  not_negative("gamma", s.gamma);
  not_negative("warmup", static_cast<double>(s.warmup));
  not_negative("warmup_from", s.warmup_from);
  positive("initial_factor", s.initial_factor);
  positive("final_factor", s.final_factor);
  expect("rise", s.rise, s.rise >= 0 && s.rise <= 1, "a number from 0 to 1");
}

const ParameterGroup* group_of(const Optimizer& optimizer, const std::string& parameter) {
  for (const ParameterGroup& group : optimizer.groups) {
    if (yaml::glob_matches(group.match, parameter)) return &group;
  }
  return nullptr;
}

Optimizer with_group(Optimizer optimizer, const ParameterGroup* group) {
  if (group != nullptr && group->weight_decay) optimizer.weight_decay = group->weight_decay;
  return optimizer;
}

void check_groups(const Optimizer& optimizer, std::span<const std::string> parameters) {
  for (const ParameterGroup& group : optimizer.groups) {
    const std::string what = fmt::format("{}optimizer: group '{}'", optimizer.where.empty() ? "" : optimizer.where + ": ", group.match);
    check_glob(what, group.match, parameters);
    const auto expect_from_zero = [&](const char* name, double value) {
      if (!(value >= 0) || !std::isfinite(value)) {
        throw Error(fmt::format("{}: {} is {}, expected a finite number of at least 0", what, name, value));
      }
    };
    expect_from_zero("learning_rate_factor", group.learning_rate_factor);
    if (group.weight_decay) expect_from_zero("weight_decay", *group.weight_decay);
  }
}

const OptimizerRule& rule_of(Optimizer::Kind kind) {
  for (const OptimizerRule& rule : optimizer_rules()) {
    if (rule.kind == kind) return rule;
  }
  throw Error("an optimizer without a row in train/program/optimizers.cpp");
}

}  // namespace tenon::train

namespace tenon {

const char* name_of(OptimizerDefinition::Kind kind) {
  return train::rule_of(kind).name;
}

}  // namespace tenon
