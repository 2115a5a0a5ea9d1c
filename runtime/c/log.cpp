// SPDX-License-Identifier: Apache-2.0
// The log in the C API.
#include <tenon/log.h>

#include "c/object.h"

using namespace tenon;
using namespace tenon::c;

namespace {

// By LogLevel: off, error, warning, info, debug.
constexpr std::uint32_t levels[] = {TENON_LOG_OFF, TENON_LOG_ERROR, TENON_LOG_WARNING, TENON_LOG_INFO, TENON_LOG_DEBUG};

}  // namespace

TenonError* tenon_log_set_sink(void (*sink)(void* user, uint32_t level, const char* text), void* user) {
  return guard(__func__, [&] {
    if (sink == nullptr) return set_log_sink(nullptr);
    set_log_sink([sink, user](LogLevel level, std::string_view text) {
      sink(user, levels[static_cast<std::size_t>(level)], std::string(text).c_str());
    });
  });
}

TenonError* tenon_log_set_level(uint32_t level) {
  return guard(__func__, [&] {
    const auto* found = std::find(std::begin(levels), std::end(levels), level);
    if (found == std::end(levels)) throw BadArgument("level: expected a TENON_LOG_* value, got " + std::to_string(level));
    set_log_level(static_cast<LogLevel>(found - levels));
  });
}
