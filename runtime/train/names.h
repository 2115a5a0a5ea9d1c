// SPDX-License-Identifier: Apache-2.0
// train/names.h - the words for the enumerations of definitions that have no table of rules. The first word of a value is its name.
#pragma once

#include <vector>

#include <tenon/definition.h>
#include <tenon/train_definition.h>

#include "yaml/reader.h"

namespace tenon::train {

const std::vector<yaml::Choice<Preset>>& presets();
const std::vector<yaml::Choice<Schedule::Kind>>& schedules();
/// Without Normalize::given, which has no word: it is a map of numbers.
const std::vector<yaml::Choice<Normalize>>& normalizations();
const std::vector<yaml::Choice<DataCache>>& caches();
const std::vector<yaml::Choice<LogStyle>>& log_styles();

}  // namespace tenon::train
