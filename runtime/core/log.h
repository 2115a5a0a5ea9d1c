// SPDX-License-Identifier: Apache-2.0
// core/log.h - a line-oriented log to stderr, a file or the application's sink (tenon/log.h).
#pragma once

#include <fmt/core.h>

#include <string>
#include <string_view>

#include <tenon/backend.h>
#include <tenon/config.h>

namespace tenon::log {

/// Lines below this TENON_LOG_* level are dropped. The default is TENON_LOG_WARNING.
void set_level(std::uint32_t level);
void set_level(LogLevel level);
std::uint32_t level();
/// Appends to a file from now on; empty: stderr. Errors: a file that cannot be opened.
void set_file(const std::string& path);
/// Writes "tenon: warning: text". Threads: any.
void write(std::uint32_t level, std::string_view text);

/// Writes text that the user requested with its own configuration key, unchanged and regardless of the level. Threads: any.
void print(std::string_view text);

template <class... Args>
void debug(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= TENON_LOG_DEBUG) write(TENON_LOG_DEBUG, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void info(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= TENON_LOG_INFO) write(TENON_LOG_INFO, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void warning(fmt::format_string<Args...> format, Args&&... args) {
  if (level() <= TENON_LOG_WARNING) write(TENON_LOG_WARNING, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace tenon::log
