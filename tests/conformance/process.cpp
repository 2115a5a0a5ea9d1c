// SPDX-License-Identifier: Apache-2.0
#include "process.h"

#include <fmt/format.h>

#include <algorithm>
#include <cfenv>
#include <cfloat>
#include <clocale>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

#include "platform/path.h"
#include "platform/process_state.h"

namespace tenon::conformance {
namespace {

Reading read_floating_point() {
  const auto name_of_rounding = [](int mode) -> std::string {
    switch (mode) {
      case FE_TONEAREST:
        return "to nearest";
      case FE_UPWARD:
        return "upward";
      case FE_DOWNWARD:
        return "downward";
      case FE_TOWARDZERO:
        return "towards zero";
      default:
        return fmt::format("mode {}", mode);
    }
  };
  // The effect of the control register shows in arithmetic.
  volatile double smallest_normal = DBL_MIN, denormal = DBL_MIN / 4, three = 3, one = 1;
  const volatile double half = smallest_normal / 2, again = denormal * 2, third = one / three;
  Reading reading = platform::floating_point_control();
  reading["the rounding mode"] = name_of_rounding(std::fegetround());
  reading["the result of the smallest normal number / 2"] = half == 0 ? "0 (flush-to-zero)" : "a denormal";
  reading["the result of a denormal * 2"] = again == 0 ? "0 (denormals-are-zero)" : "not 0";
  reading["1 / 3"] = fmt::format("{:a}", static_cast<double>(third));
  return reading;
}

Reading read_locale() {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", 0.5);
  const char* all = std::setlocale(LC_ALL, nullptr);
  Reading reading = platform::thread_locale();
  reading["the locale"] = all != nullptr ? all : "unknown";
  reading["0.5 as printf writes it"] = text;
  return reading;
}

Reading read_files() {
  Reading reading = platform::file_settings();
  std::error_code error;
  reading["the working directory"] = platform::text_of(std::filesystem::current_path(error));
  return reading;
}

}  // namespace

const std::vector<Facet>& process_facets() {
  static const std::vector<Facet> facets = {
      {"floating_point", read_floating_point, false},
      {"signals", platform::crash_handling, false},
      {"locale", read_locale, false},
      {"environment", platform::environment_variables, false},
      {"affinity", platform::affinity, false},
      {"files", read_files, false},
      {"limits", platform::limits, false},
      {"threads", platform::threads, true},
      {"descriptors", platform::descriptors, true},
  };
  return facets;
}

const Facet& process_facet(const std::string& name) {
  const auto& facets = process_facets();
  const auto found = std::find_if(facets.begin(), facets.end(), [&](const Facet& f) { return f.name == name; });
  if (found == facets.end()) throw std::logic_error("conformance: no facet " + name);
  return *found;
}

ProcessState process_state() {
  ProcessState state;
  for (const Facet& facet : process_facets()) {
    if (!facet.once) state[facet.name] = facet.read();
  }
  return state;
}

std::string change_between(const Reading& before, const Reading& after) {
  std::string text;
  const auto say = [&](const std::string& sentence) { text += (text.empty() ? "" : "; ") + sentence; };
  for (const auto& [what, value] : before) {
    const auto now = after.find(what);
    if (now == after.end()) {
      say(fmt::format("{} was {}, is gone", what, value));
    } else if (now->second != value) {
      say(fmt::format("{} was {}, is now {}", what, value, now->second));
    }
  }
  for (const auto& [what, value] : after) {
    if (before.count(what) == 0) say(fmt::format("{} is new: {}", what, value));
  }
  return text;
}

}  // namespace tenon::conformance
