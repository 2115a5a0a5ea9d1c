// SPDX-License-Identifier: Apache-2.0
// train/program/optimizers.h - the table of optimizers. A new one needs an enumerator in tenon/definition.h and a row in the table.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/definition.h>
#include <tenon/functions.h>

namespace tenon::train {

/// Inputs of an optimizer's step; state in the order of ops::<name>_step.
struct OptimizerInputs {
  const OptimizerDefinition& definition;
  const std::vector<Value>& parameters;
  const std::vector<Value>& gradients;
  const std::vector<Value>& state;
  Value lr;    ///< f64 scalar, or f32 for a device without f64
  Value step;  ///< i64 scalar, from 1
};

/// A numeric or boolean option of an optimizer in YAML, in addition to learning_rate.
struct OptimizerKey {
  enum class Allowed { from_zero, above_zero, below_one };
  const char* name;
  std::optional<double> OptimizerDefinition::*number;  ///< null: a boolean option
  Allowed allowed = Allowed::from_zero;
  bool OptimizerDefinition::*flag = nullptr;
};

struct OptimizerRule {
  OptimizerDefinition::Kind kind;
  const char* name;
  std::vector<OptimizerKey> keys;
  /// Changes the defaults that all kinds share to those of the kind with definition.preset.
  void (*set_defaults)(OptimizerDefinition& definition);
  /// The suffixes of the state of each parameter: {"m", "v"} for adam.
  std::vector<std::string> (*state)(const OptimizerDefinition& definition);
  void (*build)(const OptimizerInputs& inputs);
  /// The initial value of the state; null: 0.
  std::optional<double> OptimizerDefinition::*start = nullptr;
};
std::span<const OptimizerRule> optimizer_rules();
const OptimizerRule& rule_of(OptimizerDefinition::Kind kind);
/// A copy whose fields are all set: those that are not, to the defaults of the kind and preset.
/// Errors  a value that is out of range, with the name of its key.
OptimizerDefinition with_defaults(const OptimizerDefinition& definition);
/// Errors  a field of the schedule that is out of range.
void check(const Schedule& schedule);
/// The group that a parameter belongs to; null: none.
const ParameterGroup* group_of(const OptimizerDefinition& optimizer, const std::string& parameter);
/// The optimizer with the options of a group, which may be null.
OptimizerDefinition with_group(OptimizerDefinition optimizer, const ParameterGroup* group);
/// Errors  a group without parameters, or with a negative factor or weight decay.
void check_groups(const OptimizerDefinition& optimizer, std::span<const std::string> parameters);

}  // namespace tenon::train
