// SPDX-License-Identifier: Apache-2.0
#include "loader/probe.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>

#include "loader/child.h"
#include "loader/load_error.h"
#include "loader/probe_answers.h"

extern char** environ;

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

/// Starts the helper on the plugin: pipes at descriptors 1, 2 and 3, nothing to read. Spawning is safe in a process with threads, where a
/// plain fork() is not. Returns -1 and sets errno on failure.
pid_t start_helper(const fs::path& helper, const fs::path& plugin, const ChildPipes& pipes) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, pipes.output, 1);
  posix_spawn_file_actions_adddup2(&actions, pipes.output, 2);
  posix_spawn_file_actions_adddup2(&actions, pipes.messages, 3);
  std::string program = helper.string(), argument = plugin.string();
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = -1;
  const int failure = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  errno = failure;
  return failure == 0 ? child : -1;
}

ProbeAnswer ask_child(const ProbeOptions& options, Record& record) {
  const auto begin = std::chrono::steady_clock::now();
  const ChildReport child =
      run_child([&](const ChildPipes& pipes) { return start_helper(options.helper, record.path, pipes); }, options.timeout_seconds);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begin);
  record.probed = fmt::format("{} was loaded in a child process first, which took {} ms", record.path.string(), took.count());
  return {child.text, child.reached, child.output};
}

void check_helper(const ProbeOptions& options) {
  if (access(options.helper.c_str(), X_OK) == 0) return;
  throw LoadError(TENON_INCOMPATIBLE,
                  fmt::format("expected the program that loads it in a child process at {}, got none",
                              options.helper.empty() ? "a folder next to the library" : options.helper.string()),
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
