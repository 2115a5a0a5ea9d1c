// config/config_table.h - the table of configuration keys with what reads, writes and copies each.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/config.h>

#include "config/yaml_reader.h"

namespace tenon::config {

/// Names below a row of map type: {"openblas", "threads"} under backends.options. Empty for all others.
using SubKeys = std::vector<std::string>;

struct Row {
  ConfigKey key;
  std::size_t depth = 0;  ///< levels of free names below the key: 0 for a value, 1 or 2 for maps
  std::function<void(Config&, const SubKeys&, const Value&)> set;
  std::function<void(Config& to, const Config& from, const SubKeys&)> copy;
  /// Values as YAML in flow style; one entry, without names, for depth 0.
  std::function<std::vector<std::pair<SubKeys, std::string>>(const Config&)> show;
};

/// In the order of to_yaml: keys of one map stand together.
const std::vector<Row>& config_table();

/// Takes every key of the table that is in `top` into the config, unless a stronger origin set it before. The caller finishes `top`, which
/// may hold keys of other readers too.
void read_config(Section& top, Config& config);

/// Checks that need several keys at once. Errors name both keys and where the first came from.
void check_config(const Config& config);

/// A YAML scalar: plain where that is safe, else in double quotes.
std::string yaml_text(const std::string& text);

}  // namespace tenon::config
