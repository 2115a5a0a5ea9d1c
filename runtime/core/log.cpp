// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <mutex>
#include <utility>

#include <tenon/error.h>
#include <tenon/log.h>

#include "core/printable.h"
#include "io/output_target.h"

namespace tenon::log {
namespace {

std::atomic<std::uint32_t> lowest{TENON_LOG_WARNING};
std::mutex mutex;
std::FILE* file = nullptr;  // guarded by mutex; stderr while null
LogSink sink;               // guarded by mutex; empty: lines go to the file

constexpr std::uint32_t levels[] = {TENON_LOG_ERROR + 1, TENON_LOG_ERROR, TENON_LOG_WARNING, TENON_LOG_INFO, TENON_LOG_DEBUG};

LogLevel level_of(std::uint32_t value) {
  const auto* found = std::find(std::begin(levels), std::end(levels), value);
  return found == std::end(levels) ? LogLevel::off : static_cast<LogLevel>(found - levels);
}

/// Writes the text to the file, or without its last line break to the sink.
void emit(LogLevel of, std::string_view text, std::string_view prefix) {
  const std::string line = printable(text);
  std::lock_guard lock(mutex);
  if (sink) {
    try {
      const std::size_t end = line.ends_with('\n') ? line.size() - 1 : line.size();
      sink(of, std::string_view(line).substr(0, end));
    } catch (...) {  // the line is dropped: whoever logs it has no part in this
    }
    return;
  }
  std::FILE* out = file != nullptr ? file : stderr;
  std::fwrite(prefix.data(), 1, prefix.size(), out);
  std::fputs(line.c_str(), out);
  std::fflush(out);
}

}  // namespace

void set_level(LogLevel value) {
  set_level(levels[static_cast<std::size_t>(value)]);
}

void set_level(std::uint32_t value) {
  lowest.store(value);
}
std::uint32_t level() {
  return lowest.load(std::memory_order_relaxed);
}

void set_file(const std::string& path) {
  std::FILE* opened = nullptr;
  if (!path.empty()) opened = io::open_growing_stream(path, io::Growth::append);
  std::lock_guard lock(mutex);
  if (file != nullptr) std::fclose(file);
  file = opened;
}

void write(std::uint32_t at, std::string_view text) {
  at = std::min<std::uint32_t>(at, TENON_LOG_ERROR);  // a newer backend's levels count as errors
  if (at < level()) return;
  static constexpr const char* names[] = {"debug", "info", "warning", "error"};
  emit(level_of(at), fmt::format("{}\n", text), fmt::format("tenon: {}: ", names[at]));
}

void print(std::string_view text) {
  emit(LogLevel::off, text, "");
}

}  // namespace tenon::log

namespace tenon {

void set_log_sink(LogSink sink) {
  LogSink previous;  // destroyed after the lock is released
  const std::lock_guard lock(log::mutex);
  previous = std::exchange(log::sink, std::move(sink));
}

void set_log_level(LogLevel level) {
  log::set_level(level);
}

LogLevel log_level() {
  return log::level_of(log::level());
}

}  // namespace tenon
