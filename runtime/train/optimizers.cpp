#include "train/optimizers.h"

#include <tenon/error.h>

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
const OptimizerKey weight_decay{"weight_decay", &Optimizer::weight_decay, Allowed::from_zero};

void adam(const OptimizerInputs& in) {
  tenon_attributes_adam a{};
  a.beta1 = in.definition.beta1;
  a.beta2 = in.definition.beta2;
  a.epsilon = in.definition.epsilon;
  a.weight_decay = in.definition.kind == Optimizer::Kind::adamw ? in.definition.weight_decay : 0;
  ops::adam_step(in.parameters, in.gradients, in.state, in.lr, in.step, a);
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

void keep(Optimizer&) {}

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

Names two_moments(const Optimizer&) {
  return {"m", "v"};
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
      {Optimizer::Kind::adam, "adam", {beta1, beta2, epsilon}, keep, two_moments, adam},
      {Optimizer::Kind::adamw, "adamw", {weight_decay, beta1, beta2, epsilon}, adamw_defaults, two_moments, adam},
      {Optimizer::Kind::sgd, "sgd", {momentum, nesterov, weight_decay}, sgd_defaults, velocity, sgd},
      {Optimizer::Kind::rmsprop, "rmsprop", {rho, epsilon}, rmsprop_defaults, mean_square, rmsprop},
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
