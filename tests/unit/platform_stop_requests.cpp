// SPDX-License-Identifier: Apache-2.0
// Requests to end the program, as signals of POSIX.
#include "platform/stop_requests.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

using tenon::platform::StopRequests;

namespace {
std::atomic<int> asked{0};
}  // namespace

TEST_CASE("stop requests: the first one calls on_stop on a thread of its own, later ones are ignored, and the old handler returns") {
  asked = 0;
  std::atomic<int> stops{0};
  {
    const StopRequests requests(
        []() noexcept { return asked.fetch_add(1) == 0 ? StopRequests::Answer::stop : StopRequests::Answer::ignore; }, [&] { ++stops; });
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::raise(signal);
    for (int wait = 0; wait < 1000 && stops == 0; ++wait) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(asked == 3);
  }
  CHECK(stops == 1);
  CHECK((std::signal(SIGTERM, SIG_DFL) == SIG_DFL));
}
