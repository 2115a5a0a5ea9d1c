// SPDX-License-Identifier: Apache-2.0
// platform/processors.h - the processors that threads run on, by number.
#pragma once

#include <cstdint>

namespace tenon::platform {

/// The number of processors that this process may run on, by its affinity; >= 1.
std::uint32_t usable_processors();

/// The processor of the calling thread; -1 if unknown.
int current_processor();

/// The memory node (NUMA) of the processor of the calling thread; -1 if unknown.
int current_memory_node();

/// Moves the calling thread off that processor if it is on it and may run elsewhere. The system may wake a thread on the processor where it
/// slept, where its waker is running now: it would wait there for milliseconds, with other processors idle, until the system balances
/// loads. Does nothing on systems whose scheduler looks for an idle processor itself.
void leave_processor(int processor);

}  // namespace tenon::platform
