// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>

#include <tenon/error.h>

namespace tenon::log {
namespace {

std::atomic<std::uint32_t> lowest{TENON_LOG_WARNING};
std::mutex mutex;
std::FILE* file = nullptr;  // guarded by mutex; stderr while null

}  // namespace

void set_level(std::uint32_t value) {
  lowest.store(value);
}
std::uint32_t level() {
  return lowest.load(std::memory_order_relaxed);
}

void set_file(const std::string& path) {
  std::FILE* opened = nullptr;
  if (!path.empty()) {
    opened = std::fopen(path.c_str(), "a");
    if (opened == nullptr) throw Error(fmt::format("log file '{}' cannot be opened: {}", path, std::strerror(errno)));
  }
  std::lock_guard lock(mutex);
  if (file != nullptr) std::fclose(file);
  file = opened;
}

void write(std::uint32_t at, std::string_view text) {
  if (at < level()) return;
  static constexpr const char* names[] = {"debug", "info", "warning", "error"};
  print(fmt::format("tenon: {}: {}\n", names[at < std::size(names) ? at : std::size(names) - 1], text));
}

void print(std::string_view text) {
  const std::string line(text);
  std::lock_guard lock(mutex);
  std::FILE* out = file != nullptr ? file : stderr;
  std::fputs(line.c_str(), out);
  std::fflush(out);
}

}  // namespace tenon::log
