// SPDX-License-Identifier: Apache-2.0
// yaml/write.h - values as YAML text.
#pragma once

#include <string>

#include "yaml/json.h"
#include "yaml/tree.h"

namespace tenon::yaml {

/// The value on one line: `{units: 10, activation: relu}`. Texts that would read as something else are quoted.
std::string flow(const Json& value);
/// The same of a value that was read.
std::string flow(const Node& value);

}  // namespace tenon::yaml
