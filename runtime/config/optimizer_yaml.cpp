// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "config/model_yaml.h"
#include "config/train_blocks.h"
#include "train/names.h"
#include "train/program/optimizers.h"

namespace tenon::config {
namespace {

using Optimizer = OptimizerDefinition;
using Allowed = train::OptimizerKey::Allowed;

const std::vector<Choice<Schedule::Per>> units = {{"step", Schedule::Per::step}, {"epoch", Schedule::Per::epoch}};

std::vector<Choice<Optimizer::Kind>> optimizer_words() {
  std::vector<Choice<Optimizer::Kind>> words;
  for (const train::OptimizerRule& rule : train::optimizer_rules()) words.push_back({rule.name, rule.kind});
  return words;
}

Range<double> range_of(Allowed allowed) {
  switch (allowed) {
    case Allowed::above_zero:
      return above_zero;
    case Allowed::below_one:
      return below_one;
    case Allowed::from_zero:
      break;
  }
  return from_zero;
}

/// Reads a number, or {schedule: ..., initial: ...}.
void read_learning_rate(const Value& value, Optimizer& optimizer, std::vector<CallbackDefinition>& out_callbacks) {
  if (!value.is_map()) {
    optimizer.learning_rate = value.as_number(from_zero);
    return;
  }
  Section section = value.section_with("initial");
  std::vector<std::string> words = words_of(train::schedules());
  words.emplace_back("on_plateau");
  const std::size_t word = section.require_value("schedule", "the name of a schedule").as_word(words);
  optimizer.learning_rate = section.get<double>("initial", *optimizer.learning_rate, from_zero);
  if (word < train::schedules().size()) {
    optimizer.schedule = read_schedule_keys(section, train::schedules()[word].value);
  } else {
    out_callbacks.emplace_back(read_plateau_keys(section));
  }
  section.finish();
}

/// Reads a list of {match: GLOB, learning_rate_factor: ..., weight_decay: ...}.
std::vector<ParameterGroup> read_groups(const Value& value) {
  std::vector<ParameterGroup> groups;
  for (const Value& item : value.items("a list of maps with the key 'match'")) {
    Section section = item.section();
    ParameterGroup group;
    group.match = section.require_value("match", "a glob of parameter names, as in '*/bias'").as_text();
    group.learning_rate_factor = section.get<double>("learning_rate_factor", group.learning_rate_factor, from_zero);
    group.weight_decay = section.get_optional<double>("weight_decay", from_zero);
    section.finish();
    groups.push_back(std::move(group));
  }
  return groups;
}

/// Reads the keys of this optimizer only: `beta1` under sgd is an error instead of being ignored.
void read_keys(Section& section, Optimizer& optimizer, std::vector<CallbackDefinition>& out_callbacks) {
  if (const auto rate = section.find("learning_rate", "a number, or a map with the key schedule"))
    section.attempt([&] { read_learning_rate(*rate, optimizer, out_callbacks); });
  for (const train::OptimizerKey& key : train::rule_of(optimizer.kind).keys) {
    if (key.flag != nullptr) {
      optimizer.*key.flag = section.get<bool>(key.name, optimizer.*key.flag);
    } else {
      optimizer.*key.number = section.get<double>(key.name, *(optimizer.*key.number), range_of(key.allowed));
    }
  }
  if (optimizer.nesterov && *optimizer.momentum == 0) section.find("nesterov")->fail("requires a momentum above 0");
  if (const auto groups = section.find("groups", "a list of maps with the key 'match'", "null"); groups && !groups->is_null()) {
    section.attempt([&] { optimizer.groups = read_groups(*groups); });
  }
  optimizer.clip.value = section.get_optional<double>("clip_value", above_zero);
  optimizer.clip.norm = section.get_optional<double>("clip_norm", above_zero);
  optimizer.clip.global_norm = section.get_optional<double>("clip_global_norm", above_zero);
}

}  // namespace

Schedule read_schedule_keys(Section& section, Schedule::Kind kind) {
  Schedule schedule;
  schedule.kind = kind;
  schedule.per = section.choice("per", schedule.per, units);
  switch (kind) {
    case Schedule::Kind::constant:
      break;
    case Schedule::Kind::step:
    case Schedule::Kind::exponential:
      schedule.factor = section.get<double>("factor", schedule.factor, above_zero);
      schedule.every = section.get<std::int64_t>("every", schedule.every, {1, max_count});
      break;
    case Schedule::Kind::cosine:
      schedule.length = section.get<std::int64_t>("length", schedule.length, {0, max_count});
      schedule.minimum = section.get<double>("minimum", schedule.minimum, from_zero);
      break;
    case Schedule::Kind::one_cycle:
      schedule.length = section.get<std::int64_t>("length", schedule.length, {0, max_count});
      schedule.rise = section.get<double>("rise", schedule.rise, {0, 1});
      schedule.initial_factor = section.get<double>("initial_factor", schedule.initial_factor, above_zero);
      schedule.final_factor = section.get<double>("final_factor", schedule.final_factor, above_zero);
      break;
    case Schedule::Kind::cyclic:
      schedule.maximum = section.require<double>("maximum", "the highest rate, a number of at least 0", from_zero);
      schedule.every = section.require<std::int64_t>("every", "the length of a rise, an integer of at least 1", {1, max_count});
      break;
    case Schedule::Kind::inv:
      schedule.gamma = section.get<double>("gamma", schedule.gamma, from_zero);
      schedule.power = section.get<double>("power", schedule.power, from_zero);
      break;
  }
  schedule.warmup = section.get<std::int64_t>("warmup", schedule.warmup, {0, max_count});
  schedule.warmup_from = section.get<double>("warmup_from", schedule.warmup_from, {0, 1});
  return schedule;
}

OptimizerDefinition read_optimizer(const Value& value, std::vector<CallbackDefinition>& out_callbacks) {
  Section section = value.section_with("name");
  const auto name = section.find("name", "the name of an optimizer", "adam");
  Optimizer result;
  if (name) result.kind = name->as_choice(optimizer_words());
  result.preset = read_preset(section);
  result = train::with_defaults(result);
  section.attempt_keys([&] { read_keys(section, result, out_callbacks); });
  section.finish();
  result.where = value.mark().str();
  return result;
}

}  // namespace tenon::config
