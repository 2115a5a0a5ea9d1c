// SPDX-License-Identifier: Apache-2.0
#include "loader/child.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>

#include "loader/load_error.h"

namespace tenon::loader {
namespace {

const char* describe(Phase phase) {
  switch (phase) {
    case Phase::querying:
      return "while loading the library and calling its tenon_backend_query";
    case Phase::creating:
      return "in its `create` or while listing its devices";
    case Phase::opening:
      return "while opening and closing its devices";
    case Phase::closing:
      return "during shutdown";
    case Phase::exiting:
      return "after shutdown, when the process was to end";
  }
  return "";
}

std::unique_ptr<platform::Process> start(const std::filesystem::path& program, const std::vector<std::string>& arguments) {
  platform::ProcessOptions options;
  options.program = program;
  options.arguments = arguments;
  options.output = platform::ProcessOptions::Output::all;
  options.messages = true;
  options.own_group = true;
  try {
    return std::make_unique<platform::Process>(options);
  } catch (const platform::StartError& error) {
    throw LoadError(
        TENON_OUT_OF_MEMORY, fmt::format("a child process for it cannot be started: {}", error.what()),
        error.lacks_pipe ? "raise the limit of open files (ulimit -n)" : "raise the limit of processes (ulimit -u), or free memory");
  }
}

/// Reads until the child has ended. Returns false when the time is up.
bool receive_all(platform::Process& child, double timeout_seconds, std::string& out_messages, std::string& out_output) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_seconds));
  constexpr std::size_t max_output = 16384;
  platform::Process* const processes[] = {&child};
  for (bool ended = false; !ended;) {
    ended = child.ended();
    out_messages += child.read_messages();
    out_output += child.read_output();
    if (out_output.size() > 2 * max_output) out_output.erase(0, out_output.size() - max_output);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    if (!ended && left.count() <= 0) return false;
    if (!ended) platform::wait_for_any(processes, left);
  }
  return true;
}

/// The last `count` lines of the text.
std::string last_lines(const std::string& text, int count) {
  std::size_t begin = text.find_last_not_of('\n');
  if (begin == std::string::npos) return {};
  const std::size_t end = begin + 1;
  for (; begin > 0; --begin) {
    if (text[begin - 1] == '\n' && --count == 0) break;
  }
  return text.substr(begin, end - begin);
}

}  // namespace

void tell(const platform::MessageChannel& messages, const std::string& line) {
  if (!messages.send(line + "\n")) platform::exit_now(1);  // the parent no longer reads
}
void tell(const platform::MessageChannel& messages, Phase phase) {
  tell(messages, std::string(1, static_cast<char>(phase)));
}

ChildReport run_child(const std::filesystem::path& program, const std::vector<std::string>& arguments, double timeout_seconds) {
  const std::unique_ptr<platform::Process> child = start(program, arguments);
  ChildReport report;
  std::string sent, printed;
  report.timed_out = !receive_all(*child, timeout_seconds, sent, printed);
  if (report.timed_out) child->kill();
  std::erase(printed, '\r');  // Windows ends lines with two characters
  report.output = last_lines(printed, 20);

  Phase phase = Phase::querying;
  for (std::size_t begin = 0, end = 0; (end = sent.find('\n', begin)) != std::string::npos; begin = end + 1) {
    if (end - begin == 1) {
      phase = static_cast<Phase>(sent[begin]);
    } else {
      report.lines.push_back(sent.substr(begin, end - begin));
    }
  }
  if (phase == Phase::querying) report.reached = Stage::found;
  if (phase == Phase::creating) report.reached = Stage::self_check;
  const platform::ProcessEnd& end = child->end();
  using Kind = platform::ProcessEnd::Kind;
  if (report.timed_out) {
    report.text = fmt::format("did not return within {:g} s", timeout_seconds);
  } else if (end.kind == Kind::crashed) {
    report.text = fmt::format("crashed ({}, {})", end.cause, end.name);
  } else if (phase != Phase::exiting || end.exit_code != 0) {
    report.text = end.kind == Kind::exited ? fmt::format("exited the process (exit code {})", end.exit_code) : "ended the process";
  } else {
    return report;
  }
  report.text = fmt::format("the plugin {} {}", report.text, describe(phase));
  return report;
}

}  // namespace tenon::loader
