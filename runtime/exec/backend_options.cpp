// SPDX-License-Identifier: Apache-2.0
#include "exec/backend_options.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include <tenon/error.h>

#include "yaml/suggest.h"

namespace tenon::exec {
namespace {

std::vector<tenon_option> options_of(const tenon_backend_info& info) {
  std::vector<tenon_option> options;
  for (std::uint32_t i = 0; i < info.option_count; ++i) {
    options.push_back(
        *reinterpret_cast<const tenon_option*>(reinterpret_cast<const char*>(info.options) + std::size_t{i} * info.option_stride));
  }
  return options;
}

void check_value(const std::string& where, const tenon_option& option, const std::string& value) {
  const auto fail = [&](const std::string& expected) {
    throw Error(fmt::format("{}.{}: expected {}, got '{}'", where, option.name, expected, value));
  };
  if (option.type == TENON_OPTION_INTEGER) {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (code != std::errc{} || end != value.data() + value.size() || number < option.lowest || number > option.highest) {
      fail(fmt::format("an integer in [{}, {}]", option.lowest, option.highest));
    }
  } else if (option.type == TENON_OPTION_BOOLEAN) {
    if (value != "true" && value != "false") fail("true or false");
  } else if (option.type == TENON_OPTION_CHOICE) {
    const std::string all = fmt::format("|{}|", option.choices);
    if (value.find('|') != std::string::npos || all.find("|" + value + "|") == std::string::npos)
      fail(fmt::format("one of {}", option.choices));
  }
}

}  // namespace

std::map<std::string, std::string> option_values(const tenon_backend_info& info, const std::map<std::string, std::string>& given,
                                                 const std::string& where) {
  std::map<std::string, std::string> values;
  std::vector<std::string> names;
  const std::vector<tenon_option> options = options_of(info);
  for (const tenon_option& option : options) {
    values[option.name] = option.default_value != nullptr ? option.default_value : "";
    names.emplace_back(option.name);
  }
  for (const auto& [key, value] : given) {
    if (values.count(key) == 0) {
      const std::string known = names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", "));
      throw Error(fmt::format("{}: unknown option '{}'{}; {}", where, key, yaml::did_you_mean(key, names), known));
    }
    for (const tenon_option& option : options) {
      if (key == option.name) check_value(where, option, value);
    }
    values[key] = value;
  }
  return values;
}

}  // namespace tenon::exec
