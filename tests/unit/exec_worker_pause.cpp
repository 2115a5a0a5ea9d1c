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
  pause.count(milliseconds(0), 1, 2, milliseconds(4), at(4));
  CHECK_FALSE(pause.holds(at(4)));
  pause.count(milliseconds(0), 1, 2, milliseconds(4), at(12));  // 4 ms after the first
  CHECK(pause.holds(at(12)));
  CHECK(pause.holds(at(12 + 4 * 4 - 1)));
  CHECK_FALSE(pause.holds(at(12 + 4 * 4)));
  // Right after each pause, which becomes longer: 8, 16, 32, 64 and 64 times the stall.
  int end = 12 + 4 * 4;
  for (const int multiple : {8, 16, 32, 64, 64}) {
    CAPTURE(multiple);
    pause.count(milliseconds(0), 1, 2, milliseconds(4), at(end + 4));
    end += 4 + multiple * 4;
    CHECK(pause.holds(at(end - 1)));
    CHECK_FALSE(pause.holds(at(end)));
  }
}

TEST_CASE("worker pause: stalls far from each other, short stalls and stalls of long loops pause nothing") {
  WorkerPause far, brief, of_long_loops;
  for (int i = 1; i < 10; ++i) {
    far.count(milliseconds(0), 1, 2, milliseconds(4), at(100 * i));
    CHECK_FALSE(far.holds(at(100 * i)));
    brief.count(milliseconds(0), 1, 2, WorkerPause::shortest_stall / 2, at(i));
    CHECK_FALSE(brief.holds(at(i)));
    of_long_loops.count(milliseconds(3), 1, 2, milliseconds(4), at(10 * i));
    CHECK_FALSE(of_long_loops.holds(at(10 * i)));
  }
}

TEST_CASE("worker pause: a stall is compared with what its caller would have taken for the whole loop") {
  WorkerPause of_workers, shared, short_loops;
  for (int i = 1; i < 10; ++i) {
    of_workers.count(milliseconds(0), 0, 16, milliseconds(4), at(8 * i));  // workers did all of it while the caller had no CPU
    CHECK_FALSE(of_workers.holds(at(8 * i)));
    shared.count(milliseconds(1), 2, 16, milliseconds(4), at(8 * i));  // 8 ms on one thread
    CHECK_FALSE(shared.holds(at(8 * i)));
    short_loops.count(milliseconds(1), 8, 16, milliseconds(4), at(8 * i));  // 2 ms on one thread
  }
  CHECK(short_loops.holds(at(72)));
}

}  // namespace tenon::test
