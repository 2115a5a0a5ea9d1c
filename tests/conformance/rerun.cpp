// SPDX-License-Identifier: Apache-2.0
#include "rerun.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "platform/path.h"

namespace tenon::conformance {

std::string shell_word(const std::string& word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || std::string("_-+=./:,@%").find(c) != std::string::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::string command_for(const Options& options, const Report& report, const std::string& profile, const std::string& test) {
  const Options defaults;
  std::string command = options.small ? "TENON_TEST_SIZE=small tenon conformance" : "tenon conformance";
  const auto add = [&](const char* option, const std::string& value) { command += fmt::format(" {} {}", option, shell_word(value)); };
  if (options.plugin.empty()) {
    add("--backend", options.backend);
  } else {
    add("--plugin", report.path);
  }
  if (options.oracle != defaults.oracle) add("--oracle", options.oracle);
  for (const auto& [option, value] : options.options) add("--backend-option", option + "=" + value);
  if (!options.waivers.empty()) add("--waivers", platform::text_of(options.waivers));
  add("--profile", profile);
  if (!options.data.empty()) add("--data", platform::text_of(options.data));
  if (options.models_named) add("--models", platform::text_of(options.models));
  // Quoted in any case: a name may have brackets, a glob has stars.
  command += test == shell_word(test) ? fmt::format(" --filter '{}'", test) : " --filter " + shell_word(test);
  return command + fmt::format(" --seed {}", report.seed);
}

}  // namespace tenon::conformance
