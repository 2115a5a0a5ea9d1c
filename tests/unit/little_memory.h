// SPDX-License-Identifier: Apache-2.0
// little_memory.h - a process with too little memory for the stacks of many threads.
#pragma once

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <fstream>

#include "testing.h"

namespace tenon::test {

/// Runs `body` in a child process whose address space has room for about this many more stacks of threads, and for the heap of a small
/// test. Returns the status of waitpid; what `body` returns is the exit code,
/// 255 if it throws.
template <class Body>
int with_room_for_stacks(int stacks, Body&& body) {
  const pid_t child = fork();
  if (child == 0) {
    rlimit stack{};
    getrlimit(RLIMIT_STACK, &stack);
    const rlim_t stack_size = stack.rlim_cur == RLIM_INFINITY ? rlim_t{8} << 20 : stack.rlim_cur;
    rlim_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlim_t most = pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE)) + static_cast<rlim_t>(stacks) * stack_size + (rlim_t{4} << 20);
    const rlimit limit{most, most};
    setrlimit(RLIMIT_AS, &limit);
    int code = 255;
    try {
      code = body();
    } catch (...) {  // the test goes on in the parent process alone
    }
    _exit(code);
  }
  int status = -1;
  REQUIRE(waitpid(child, &status, 0) == child);
  return status;
}

}  // namespace tenon::test
