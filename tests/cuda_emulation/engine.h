// SPDX-License-Identifier: Apache-2.0
// engine.h - runs the threads of a launch, one at a time, as fibers where they must wait for each other.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "control.h"

namespace tenon::emulation {

/// The order in which threads of a block, and blocks, are started.
struct Order {
  enum Kind { ascending, descending, shuffled } kind = ascending;
  std::uint64_t seed = 0;
};
/// Throws std::invalid_argument for anything but "ascending", "descending" and digits.
Order parse_order(const char* text);

/// Runs `body` for every thread of every block. Aborts, naming block and thread, when a block deadlocks, and when it has written beyond its
/// dynamic shared memory, which holds 0xFF bytes at first, as the static one does in the first blocks of a kernel. `set_open`, if there is
/// one, closes the memory of the device at the start of each block, and opens it when a thread waits for the previous kernel. Blocks run
/// one after the other; those of a `cooperative` launch in turns, so that they may wait for each other, and if all of them only wait, that
/// is a deadlock too. It aborts as well where a cooperative launch, one of the first eight of a kernel, has written to static shared
/// memory.
///
/// Threads  one at a time in the process: the caller holds the lock of the emulation.
void run_grid(dim3 grid, dim3 block, Order order, const std::function<void()>& body, const SharedMemory& shared,
              const std::function<void(bool)>& set_open = {}, bool cooperative = false);

/// The block and thread of the kernel that runs, "block (1, 0, 0), thread (31, 0, 0)"; empty outside of kernels.
std::string running_thread();

}  // namespace tenon::emulation
