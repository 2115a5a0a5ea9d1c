// SPDX-License-Identifier: Apache-2.0
// config/config_table.h - the table of configuration keys with the functions that read, print and copy each of them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/config.h>

#include "config/yaml_names.h"

namespace tenon::config {

/// The names below a key of map type: {"openblas", "threads"} under backends.options. Empty for other keys.
using SubKeys = std::vector<std::string>;

struct Row {
  ConfigKey key;
  std::size_t depth = 0;  ///< levels of user-chosen names below the key: 0 for a value, 1 or 2 for maps
  std::function<void(Config&, const SubKeys&, const Value&)> set;
  std::function<void(Config& to, const Config& from, const SubKeys&)> copy;
  /// Returns the values as YAML in flow style; for depth 0 one entry without names.
  std::function<std::vector<std::pair<SubKeys, std::string>>(const Config&)> show;
};

/// The rows are in the order of to_yaml: keys of one map are adjacent.
const std::vector<Row>& config_table();

/// Reads every key of the table that is in `top` into the config, unless a stronger origin has already set it. The caller calls
/// top.finish(), since `top` may hold keys of other readers too.
void read_config(Section& top, Config& config);
/// Reads a tree that holds nothing else.
Config config_from_tree(const Node& tree);

/// Checks constraints between keys. Errors name both keys and the origin of the first.
void check_config(const Config& config);

/// Formats a YAML scalar: plain where that is safe, otherwise in double quotes.
std::string yaml_text(const std::string& text);

}  // namespace tenon::config
