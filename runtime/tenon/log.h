// SPDX-License-Identifier: Apache-2.0
// tenon/log.h - where the lines of the log go. There is one log for a process.
// Threads  any.
#pragma once

#include <functional>
#include <string_view>

#include <tenon/api.h>
#include <tenon/config.h>

namespace tenon {

/// Takes a line of the log, without a line break at its end. LogLevel::off: text that was requested
/// by a configuration key of its own, such as log_device_placement.
using LogSink = std::function<void(LogLevel level, std::string_view text)>;

/// Sends the log to a function in place of stderr or `logging.file`; null: back there. It is called
/// on any thread, one call at a time, and must neither log nor throw: what it throws is dropped.
/// When this function returns, no call of the previous sink is in progress.
TENON_API void set_log_sink(LogSink sink);

/// Logs lines of this severity and higher from now on; a Context that is created later sets its
/// `logging.level`. LogLevel::off: none.
TENON_API void set_log_level(LogLevel level);
/// The lowest severity that is logged.
TENON_API LogLevel log_level();

}  // namespace tenon
