// SPDX-License-Identifier: Apache-2.0
#include "bench/child.h"

#include <chrono>
#include <utility>

#include <tenon/error.h>

#include "cli/common.h"
#include "platform/path.h"

namespace tenon::bench {

std::string peer_script(const std::string& name) {
  return platform::text_of(cli::installation_prefix() / "share/tenon/peers" / platform::path_of(name));
}

ChildResult run_child(const std::vector<std::string>& command) {
  return Child(command).wait();
}

Child::Child(const std::vector<std::string>& command) {
  platform::ProcessOptions options;
  options.program = platform::path_of(command[0]);
  options.arguments.assign(command.begin() + 1, command.end());
  options.input = true;
  options.output = platform::ProcessOptions::Output::standard;
  try {
    process_ = std::make_unique<platform::Process>(options);
  } catch (const platform::StartError& error) {
    if (error.lacks_pipe) throw Error(Status::internal, "cannot create a connection to " + command[0] + ": " + error.what());
  }
}

void Child::write_line(const std::string& line) {
  if (process_ != nullptr) process_->write(line + "\n");
}

bool Child::read_more() {
  while (process_ != nullptr) {
    const bool ended = process_->ended();  // first, so that all it wrote before its end is read below
    const std::string text = process_->read_output();
    output_ += text;
    if (!text.empty()) return true;
    if (ended) return false;
    platform::Process* const one[] = {process_.get()};
    platform::wait_for_any(one, std::chrono::milliseconds(1000));
  }
  return false;
}

std::optional<std::string> Child::read_line() {
  std::size_t end = std::string::npos;
  while ((end = output_.find('\n')) == std::string::npos) {
    if (!read_more()) return std::nullopt;
  }
  std::string line = output_.substr(0, end);
  output_.erase(0, end + 1);
  return line;
}

ChildResult Child::wait() {
  if (process_ != nullptr) {
    process_->close_input();
    while (read_more()) continue;
    const platform::ProcessEnd& end = process_->end();
    exit_code_ = end.kind == platform::ProcessEnd::Kind::exited ? end.exit_code : 128;
    process_.reset();
  }
  return {exit_code_, std::exchange(output_, {})};
}

}  // namespace tenon::bench
