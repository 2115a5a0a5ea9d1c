// SPDX-License-Identifier: Apache-2.0
// config/yaml_names.h - the names of yaml/ that every reader of this folder uses. Named one by one: `Value` is also that of a graph.
#pragma once

#include "yaml/reader.h"

namespace tenon::config {

using yaml::Choice;
using yaml::Mark;
using yaml::Node;
using yaml::Range;
using yaml::Section;
using yaml::Source;
using yaml::Value;

}  // namespace tenon::config
