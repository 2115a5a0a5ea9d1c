// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "config/train_blocks.h"
#include "train/names.h"

namespace tenon::config {
namespace {

const std::vector<Choice<Monitor::Mode>> modes = {
    {"auto", Monitor::Mode::automatic}, {"min", Monitor::Mode::min}, {"max", Monitor::Mode::max}};

Monitor read_monitor(Section& section, double min_delta = 0) {
  Monitor monitor;
  monitor.min_delta = min_delta;
  monitor.name = section.get("monitor", "");
  monitor.mode = section.choice("mode", monitor.mode, modes);
  monitor.min_delta = section.get<double>("min_delta", monitor.min_delta, from_zero);
  return monitor;
}

std::string read_file(Section& section) {
  return section.require_value("file", "the path of a file").as_path();
}

CallbackDefinition read_checkpoint(Section& section) {
  Checkpoint::Options options;
  options.directory = section.require_value("directory", "a folder").as_path();
  options.best = section.get<bool>("best", options.best);
  options.overwrite = section.get<bool>("overwrite", options.overwrite);
  if (options.best) {
    options.monitor = read_monitor(section);
  } else {
    options.every_epochs = section.get<std::int64_t>("every_epochs", options.every_epochs, {1, max_count});
    options.keep = section.get<std::int64_t>("keep", options.keep, {0, max_count});
  }
  return options;
}

CallbackDefinition read_early_stopping(Section& section) {
  EarlyStopping::Options options;
  options.monitor = read_monitor(section);
  options.patience = section.get<std::int64_t>("patience", options.patience, {0, max_count});
  options.restore_best = section.get<bool>("restore_best", options.restore_best);
  return options;
}

CallbackDefinition read_plateau(Section& section) {
  return read_plateau_keys(section);
}

CallbackDefinition read_learning_rate(Section& section) {
  LearningRateSchedule::Options options;
  const Schedule::Kind kind = section.require_value("schedule", "the name of a schedule").as_choice(train::schedules());
  options.schedule = read_schedule_keys(section, kind);
  options.initial = section.get_optional<double>("initial", from_zero);
  return options;
}

CallbackDefinition read_terminate(Section&) {
  return TerminateOnNan::Options{};
}

CallbackDefinition read_csv(Section& section) {
  return CsvLog::Options{read_file(section)};
}

CallbackDefinition read_json(Section& section) {
  return JsonLines::Options{read_file(section)};
}

CallbackDefinition read_tensorboard(Section& section) {
  return TensorBoard::Options{section.require_value("directory", "a folder").as_path()};
}

CallbackDefinition read_curves(Section& section) {
  return Curves::Options{read_file(section), section.get("title", "")};
}

using Reader = CallbackDefinition (*)(Section&);
const std::vector<Choice<Reader>> readers = {{"checkpoint", read_checkpoint},
                                             {"early_stopping", read_early_stopping},
                                             {"reduce_on_plateau", read_plateau},
                                             {"learning_rate", read_learning_rate},
                                             {"terminate_on_nan", read_terminate},
                                             {"csv", read_csv},
                                             {"json", read_json},
                                             {"tensorboard", read_tensorboard},
                                             {"curves", read_curves}};

CallbackDefinition read_callback(const Value& item) {
  Node word;
  Node keys;
  keys.kind = Node::Kind::map;
  keys.mark = item.mark();
  if (item.is_map() && item.node().entries.size() == 1) {
    const Node::Entry& entry = item.node().entries[0];
    word.kind = Node::Kind::scalar;
    word.text = entry.key;
    word.mark = entry.mark;
    if (entry.value.kind != Node::Kind::null) keys = entry.value;
  } else if (item.is_scalar()) {
    word = item.node();
  } else {
    item.fail_expected("a callback: a name, or a map of one key such as `early_stopping: {patience: 3}`");
  }
  const Reader reader = Value(word, word.mark, "", item.key()).as_choice(readers);
  Section section(keys, item.key() + " " + word.text);
  CallbackDefinition definition;
  section.attempt_keys([&] { definition = reader(section); });
  section.finish();
  return definition;
}

}  // namespace

ReduceOnPlateau::Options read_plateau_keys(Section& section) {
  ReduceOnPlateau::Options options;
  options.monitor = read_monitor(section, 1e-4);
  options.factor = section.get<double>("factor", options.factor, {.lowest = 0, .highest = 1, .above_lowest = true, .below_highest = true});
  options.patience = section.get<std::int64_t>("patience", options.patience, {1, max_count});
  options.cooldown = section.get<std::int64_t>("cooldown", options.cooldown, {0, max_count});
  options.minimum = section.get<double>("minimum", options.minimum, from_zero);
  return options;
}

std::vector<CallbackDefinition> read_callbacks(const Value& value) {
  std::vector<CallbackDefinition> result;
  yaml::Mistakes mistakes;
  for (const Value& item : value.items("a list of callbacks")) mistakes.attempt([&] { result.push_back(read_callback(item)); });
  mistakes.raise();
  return result;
}

}  // namespace tenon::config
