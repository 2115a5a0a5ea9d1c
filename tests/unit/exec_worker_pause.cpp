// SPDX-License-Identifier: Apache-2.0
// When the loops of a thread pool do without workers, on invented times.
#include <chrono>

#include "exec/worker_pause.h"
#include "testing.h"

namespace tenon::test {
namespace {

using exec::Clock;
using exec::WorkerPause;
using std::chrono::milliseconds;

Clock::time_point at(int ms) {
  return Clock::time_point(std::chrono::hours(1)) + milliseconds(ms);
}

}  // namespace

TEST_CASE("worker pause: stalls that follow each other closely pause the workers, a single one does not") {
  WorkerPause pause;
  pause.count(milliseconds(0), milliseconds(4), at(4));
  CHECK_FALSE(pause.holds(at(4)));
  pause.count(milliseconds(0), milliseconds(4), at(12));  // 4 ms after the first
  CHECK(pause.holds(at(12)));
  CHECK(pause.holds(at(12 + 16 * 4 - 1)));
  CHECK_FALSE(pause.holds(at(12 + 16 * 4)));
  pause.count(milliseconds(0), milliseconds(4), at(80));  // right after the pause, which becomes longer
  CHECK(pause.holds(at(80 + 32 * 4 - 1)));
  CHECK_FALSE(pause.holds(at(80 + 32 * 4)));
}

TEST_CASE("worker pause: stalls far from each other, short stalls and stalls of long loops pause nothing") {
  WorkerPause far, brief, of_long_loops;
  for (int i = 1; i < 10; ++i) {
    far.count(milliseconds(0), milliseconds(4), at(100 * i));
    CHECK_FALSE(far.holds(at(100 * i)));
    brief.count(milliseconds(0), WorkerPause::shortest_stall / 2, at(i));
    CHECK_FALSE(brief.holds(at(i)));
    of_long_loops.count(milliseconds(5), milliseconds(4), at(10 * i));
    CHECK_FALSE(of_long_loops.holds(at(10 * i)));
  }
}

}  // namespace tenon::test
