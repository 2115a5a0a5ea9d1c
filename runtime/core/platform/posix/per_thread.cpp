// SPDX-License-Identifier: Apache-2.0
#include "platform/per_thread.h"

namespace tenon::platform {
namespace {

thread_local bool ended = false;

struct End {
  ~End() { ended = true; }
};
struct Values {
  End end;  // destroyed after the values, whose destructors may use others of the thread
  ThreadValues values;
};

ThreadValues& late_values() {
  thread_local ThreadValues* const late = new ThreadValues;
  return *late;
}

}  // namespace

ThreadValues& own_thread_values() {
  if (ended) return late_values();
  thread_local Values own;
  return own.values;
}

bool own_thread_values_ended() {
  return ended;
}

}  // namespace tenon::platform
