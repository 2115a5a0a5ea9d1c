// SPDX-License-Identifier: Apache-2.0
#include "child.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <tenon/error.h>

#include "platform/path.h"
#include "platform/system.h"

namespace tenon::conformance {
namespace {

using nlohmann::json;

constexpr std::size_t max_printed = 4096;     ///< bytes of the output that are kept
constexpr std::size_t max_lines = 12;         ///< lines of the output that a report quotes
constexpr std::chrono::seconds patience{10};  ///< the time to wait for a killed process before it is left to the system

platform::ProcessOptions process_for(const ChildRequest& request) {
  platform::ProcessOptions options;
  options.program = platform::path_of(platform::executable_path());
  options.arguments = {child_verb, to_text(request)};
  options.output = platform::ProcessOptions::Output::all;
  options.messages = true;
  options.own_group = true;
  return options;
}

std::string last_lines(const std::string& printed) {
  std::string text;
  std::size_t end = printed.find_last_not_of(" \t\r\n") + 1, begin = end;
  for (std::size_t line = 0; line < max_lines && begin > 0; ++line) {
    begin = printed.rfind('\n', begin - 1);
    if (begin == std::string::npos) begin = 0;
  }
  for (const char c : printed.substr(begin, end - begin)) {
    if (c == '\n') {
      if (!text.empty()) text += "\n| ";
    } else if (c != '\r') {
      text += static_cast<unsigned char>(c) < ' ' && c != '\t' ? '?' : c;
    }
  }
  return text;
}

}  // namespace

Child::Child(const Options& options, const std::vector<Case>& cases, Chunk chunk, bool shuts_down) try
    : options_(options),
      chunk_(chunk),
      process_(process_for(request_for(options, cases, chunk, shuts_down))),
      heard_(std::chrono::steady_clock::now()) {
} catch (const platform::StartError& error) {
  throw Error(Status::internal, fmt::format("conformance: a child process cannot be started: {}", error.what()));
}

void Child::handle(const std::string& line) {
  const json message = json::parse(line, nullptr, false);
  if (!message.is_object()) return;  // the backend wrote to a descriptor that it does not own
  const auto text = [&](const char* key) { return message.value(key, std::string()); };
  if (message.contains("backend")) {
    backend_ = text("backend");
    version_ = text("version");
    device_ = text("device");
  }
  if (message.contains("refusal")) refusal_ = text("refusal");
  if (message.contains("wrong_use")) wrong_use_ = text("wrong_use");
  if (message.contains("device_lost")) device_lost_ = true;
  if (message.contains("end")) ended_ = next() == chunk_.end;
  if (message.value("done", std::size_t{0} - 1) != next()) return;
  Verdict verdict;
  verdict.outcome = static_cast<Class>(message.value("class", static_cast<int>(Class::fail)));
  verdict.text = text("text");
  verdict.seconds = message.value("seconds", 0.0);
  if (message.contains("facts")) {
    for (const auto& [name, field] : fact_fields) verdict.facts.*field = message["facts"].value(name, std::string());
  }
  verdicts_.push_back(std::move(verdict));
}

void Child::advance() {
  if (over_) return;
  // First check whether it is alive, so that all it wrote before its death is read below.
  const bool dead = process_.ended();
  const auto now = std::chrono::steady_clock::now();
  const std::string said = process_.read_messages();
  if (!said.empty()) heard_ = now;
  unread_ += said;
  std::size_t begin = 0;
  for (std::size_t line; (line = unread_.find('\n', begin)) != std::string::npos; begin = line + 1)
    handle(unread_.substr(begin, line - begin));
  unread_.erase(0, begin);
  printed_ += process_.read_output();
  std::erase(printed_, '\r');  // Windows ends lines with two characters
  if (printed_.size() > max_printed) printed_.erase(0, printed_.size() - max_printed);
  if (dead) {
    over_ = true;
  } else if (killed_) {
    over_ = now - heard_ > patience;  // it sleeps in a driver that no signal interrupts
  } else if (std::chrono::duration<double>(now - heard_).count() > options_.timeout_s) {
    timed_out_ = true;
    heard_ = now;
    process_.kill();
    killed_ = true;
  }
}

bool Child::exited_well() const {
  using Kind = platform::ProcessEnd::Kind;
  return over_ && !timed_out_ && process_.end().kind == Kind::exited && process_.end().exit_code == 0;
}

std::string Child::fate() const {
  const platform::ProcessEnd& end = process_.end();
  std::string text;
  if (timed_out_) {
    text = fmt::format("no message for {} s: the process was killed", options_.timeout_s);
  } else if (end.kind == platform::ProcessEnd::Kind::crashed) {
    text = fmt::format("the process died of {} ({})", end.cause, end.name);
  } else {
    text = fmt::format("the process ended with exit code {}", end.exit_code);
  }
  const std::string lines = last_lines(printed_);
  return lines.empty() ? text : text + "; it printed last:\n| " + lines;
}

}  // namespace tenon::conformance
