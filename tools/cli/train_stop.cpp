// SPDX-License-Identifier: Apache-2.0
#include "cli/train_stop.h"

#include <atomic>
#include <chrono>
#include <cstdint>

#include "platform/streams.h"

namespace tenon::cli {
namespace {

using Answer = platform::StopRequests::Answer;

constexpr std::int64_t patience_s = 2;

std::atomic<bool> stop_requested{false};
std::atomic<std::int64_t> requested_at_s{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free,
              "a signal handler may only use lock-free atomics");

std::int64_t now_s() noexcept {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Answer on_request() noexcept {
  if (!stop_requested.exchange(true)) {
    requested_at_s.store(now_s());
    platform::write_to_standard_error(
        "\nStopping, and saving the state after the last complete step. A signal after more than 2 seconds ends the process at once.\n");
    return Answer::stop;
  }
  return now_s() - requested_at_s.load() > patience_s ? Answer::end : Answer::ignore;
}

}  // namespace

StopOnSignal::StopOnSignal() : requests_((stop_requested.store(false), on_request), [this] { source_.request_stop(); }) {}

}  // namespace tenon::cli
