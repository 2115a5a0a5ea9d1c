// SPDX-License-Identifier: Apache-2.0
// The log of the process and the application's sink.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "testing.h"

using namespace tenon;
using namespace tenon::test;

namespace {

/// Takes the log as long as it lives.
struct Sink {
  std::vector<std::pair<LogLevel, std::string>> lines;
  const LogLevel before = log_level();
  Sink() {
    set_log_sink([this](LogLevel level, std::string_view text) { lines.emplace_back(level, text); });
  }
  ~Sink() {
    set_log_sink(nullptr);
    set_log_level(before);
  }
};

/// A configuration of which contexts warn.
Config logged(LogLevel level) {
  Config config = test_config();
  config.logging.level = level;
  config.memory.limit_mb = std::int64_t{1} << 40;
  return config;
}

}  // namespace

TEST_CASE("log: a sink gets whole lines with their severity, without prefix and line break") {
  Sink sink;
  const Context context(logged(LogLevel::info));
  const auto warning = std::ranges::find_if(sink.lines, [](const auto& line) { return line.first == LogLevel::warning; });
  REQUIRE(warning != sink.lines.end());
  CHECK(warning->second.rfind("device '", 0) == 0);
  CHECK(warning->second.find("': a limit of ") != std::string::npos);
  CHECK(warning->second.find('\n') == std::string::npos);
}

TEST_CASE("log: the level decides what a sink gets, and text that a key asks for comes whatever it is") {
  Sink sink;
  set_log_level(LogLevel::off);
  CHECK(log_level() == LogLevel::off);
  Config config = logged(LogLevel::off);
  const Context quiet(config);
  CHECK(sink.lines.empty());
  config.memory.limit_mb = 0;
  config.log_device_placement = true;
  const Context context(config);
  REQUIRE_FALSE(sink.lines.empty());
  CHECK(sink.lines[0].first == LogLevel::off);
  CHECK(sink.lines[0].second.rfind("Device mapping:", 0) == 0);
  set_log_level(LogLevel::debug);
  CHECK(log_level() == LogLevel::debug);
}

TEST_CASE("log: what a sink throws is dropped with its line") {
  const LogLevel before = log_level();
  int calls = 0;
  set_log_sink([&](LogLevel, std::string_view) {
    ++calls;
    throw std::runtime_error("no");
  });
  CHECK_NOTHROW(Context(logged(LogLevel::info)));
  set_log_sink(nullptr);
  set_log_level(before);
  CHECK(calls > 0);
}
