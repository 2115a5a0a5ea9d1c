// SPDX-License-Identifier: Apache-2.0
#include "loader/probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <system_error>

#include "loader/child.h"
#include "loader/load_error.h"
#include "loader/probe_answers.h"
#include "platform/path.h"

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

ProbeAnswer ask_child(const ProbeOptions& options, Record& record) {
  const auto begin = std::chrono::steady_clock::now();
  const ChildReport child = run_child(options.helper, {platform::text_of(record.path)}, options.timeout_seconds);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  record.probed = fmt::format("{} was loaded in a child process first, which took {} ms", platform::text_of(record.path), took.count());
  return {child.text, child.reached, child.output};
}

void check_helper(const ProbeOptions& options) {
  std::error_code error;
  if (fs::is_regular_file(options.helper, error)) return;
  throw LoadError(TENON_INCOMPATIBLE,
                  fmt::format("expected the program that loads it in a child process at {}, got none",
                              options.helper.empty() ? "a folder next to the library" : platform::text_of(options.helper)),
                  "install Tenon completely");
}

}  // namespace

void probe(const ProbeOptions& options, Record& record, Result& result) {
  if (options.mode == ProbeMode::never) return;
  std::optional<ProbeAnswer> answer;
  if (options.mode == ProbeMode::once) answer = known_answer(options.cache, record.path);
  if (!answer) {
    try {
      check_helper(options);
      answer = ask_child(options, record);
    } catch (const LoadError& obstacle) {
      if (options.mode == ProbeMode::always) throw;
      const std::string warning =
          fmt::format("a backend file is opened without a probe: {}; {}, or set backends.probe: never if you trust all", obstacle.text,
                      obstacle.remedy);
      if (std::find(result.warnings.begin(), result.warnings.end(), warning) == result.warnings.end()) result.warnings.push_back(warning);
      return;
    }
    keep_answer(options.cache, record.path, *answer);
  }
  if (answer->text.empty()) return;
  record.reached = std::max(record.reached, answer->reached);
  record.output = answer->output;
  throw LoadError(
      TENON_INTERNAL, answer->text,
      fmt::format("report this to the plugin's vendor, and exclude it with `backends: {{deny: [{}]}}`; if the cause was outside the "
                  "file, repair it and run with backends.probe: always",
                  record.name));
}

}  // namespace tenon::loader
