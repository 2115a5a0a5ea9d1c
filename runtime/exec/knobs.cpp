#include "exec/knobs.h"

#include <fmt/format.h>

#include <charconv>
#include <vector>

#include <tenon/error.h>

#include "config/suggest.h"

namespace tenon::exec {
namespace {

std::vector<tenon_knob> knobs_of(const tenon_backend_info& info) {
  std::vector<tenon_knob> knobs;
  for (std::uint32_t i = 0; i < info.knob_count; ++i) {
    knobs.push_back(*reinterpret_cast<const tenon_knob*>(reinterpret_cast<const char*>(info.knobs) + std::size_t{i} * info.knob_stride));
  }
  return knobs;
}

void check_value(const std::string& where, const tenon_knob& knob, const std::string& value) {
  const auto fail = [&](const std::string& wanted) {
    throw Error(fmt::format("{}.{}: wanted {}, got '{}'", where, knob.name, wanted, value));
  };
  if (knob.type == TENON_KNOB_INTEGER) {
    std::int64_t number = 0;
    const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), number);
    if (code != std::errc{} || end != value.data() + value.size() || number < knob.lowest || number > knob.highest) {
      fail(fmt::format("an integer in [{}, {}]", knob.lowest, knob.highest));
    }
  } else if (knob.type == TENON_KNOB_BOOLEAN) {
    if (value != "true" && value != "false") fail("true or false");
  } else if (knob.type == TENON_KNOB_CHOICE) {
    const std::string all = fmt::format("|{}|", knob.choices);
    if (value.find('|') != std::string::npos || all.find("|" + value + "|") == std::string::npos)
      fail(fmt::format("one of {}", knob.choices));
  }
}

}  // namespace

std::map<std::string, std::string> knob_values(const tenon_backend_info& info, const std::map<std::string, std::string>& given,
                                               const std::string& where) {
  std::map<std::string, std::string> values;
  std::vector<std::string> names;
  const std::vector<tenon_knob> knobs = knobs_of(info);
  for (const tenon_knob& knob : knobs) {
    values[knob.name] = knob.default_value != nullptr ? knob.default_value : "";
    names.emplace_back(knob.name);
  }
  for (const auto& [key, value] : given) {
    if (values.count(key) == 0) {
      const std::string known = names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", "));
      throw Error(fmt::format("{}: unknown knob '{}'{}; {}", where, key, config::did_you_mean(key, names), known));
    }
    for (const tenon_knob& knob : knobs) {
      if (key == knob.name) check_value(where, knob, value);
    }
    values[key] = value;
  }
  return values;
}

}  // namespace tenon::exec
