// train/optimizers.h - optimizers: one table. A new one is an enumerator in tenon/definition.h and a row here.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tenon/definition.h>
#include <tenon/functions.h>

namespace tenon::train {

/// What an optimizer's step is made from; state as ops::<name>_step wants it.
struct OptimizerInputs {
  const OptimizerDefinition& definition;
  const std::vector<Value>& parameters;
  const std::vector<Value>& gradients;
  const std::vector<Value>& state;
  Value lr;    ///< f64 scalar
  Value step;  ///< i64 scalar, from 1
};

/// A number or a switch that the optimizer takes from YAML, beside learning_rate.
struct OptimizerKey {
  enum class Allowed { from_zero, above_zero, below_one };
  const char* name;
  double OptimizerDefinition::*number;  ///< null: a switch
  Allowed allowed = Allowed::from_zero;
  bool OptimizerDefinition::*flag = nullptr;
};

struct OptimizerRule {
  OptimizerDefinition::Kind kind;
  const char* name;
  std::vector<OptimizerKey> keys;
  /// What its preset says.
  void (*set_defaults)(OptimizerDefinition& definition);
  /// Beside each parameter, by suffix: {"m", "v"} for adam.
  std::vector<std::string> (*state)(const OptimizerDefinition& definition);
  void (*build)(const OptimizerInputs& inputs);
  /// What state starts from; null: 0.
  double OptimizerDefinition::*start = nullptr;
};
std::span<const OptimizerRule> optimizer_rules();
const OptimizerRule& rule_of(OptimizerDefinition::Kind kind);
/// With the defaults of its preset.
OptimizerDefinition default_optimizer(OptimizerDefinition::Kind kind, Preset preset);

}  // namespace tenon::train
