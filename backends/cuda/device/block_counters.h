// SPDX-License-Identifier: Apache-2.0
// block_counters.h - counters in device memory for the blocks of a kernel: they find out which of them is the last (kernel/last_block.cuh),
// or wait for each other (kernel/group_barrier.cuh).
#pragma once

#include <cstdint>

#include "device/device.h"

namespace tenon::cuda {

/// The counters of a stream, or of a recording: kernels that use them never run at once. All are 0 between kernels.
class BlockCounters {
 public:
  /// Sets of blocks that can share results: plans divide lines only for fewer (enough_blocks of norm/channel_plan.cpp). Groups of blocks
  /// that wait for each other are at most half as many as the multiprocessors.
  static constexpr std::int64_t count = 1056;

  explicit BlockCounters(Stream& stream);
  ~BlockCounters();
  BlockCounters(const BlockCounters&) = delete;
  BlockCounters& operator=(const BlockCounters&) = delete;

  unsigned* at() const { return at_; }

 private:
  unsigned* at_ = nullptr;
};

/// The first of the stream's counters.
unsigned* block_counters(Stream& stream);

}  // namespace tenon::cuda
