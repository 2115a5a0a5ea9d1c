// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <mutex>

#include <tenon/error.h>

#include "core/printable.h"
#include "io/output_target.h"

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
    io::Descriptor descriptor = io::open_growing(path, io::Growth::append);
    opened = ::fdopen(descriptor.get(), "a");
    if (opened == nullptr) throw Error(fmt::format("log file '{}' cannot be opened: {}", path, std::strerror(errno)));
    descriptor.release();
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
  const std::string line = printable(text);
  std::lock_guard lock(mutex);
  std::FILE* out = file != nullptr ? file : stderr;
  std::fputs(line.c_str(), out);
  std::fflush(out);
}

}  // namespace tenon::log
