// SPDX-License-Identifier: Apache-2.0
// last_block.cuh - of the blocks that share a result, the one that ends last combines their partial results: no second launch.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "device/block_counters.h"

namespace tenon::cuda {

/// How the last block combines partial results.
struct LastBlock {
  unsigned* counters = nullptr;  ///< one for each set of blocks that share results; NULL: another kernel combines them
  int threads = 1;               ///< of the block, that share a result: a power of two
};

/// More partial results of a block's thread than this are combined by the blocks of another kernel, which are faster by more than its
/// launch takes: an estimate, not measured yet.
inline constexpr std::int64_t max_parts_of_thread = 16;

/// For `sets` sets of blocks of `block_threads` threads, each with `results` results of `parts` partial results.
inline LastBlock last_block(Stream& stream, std::int64_t sets, std::int64_t results, std::int64_t parts, int block_threads) {
  if (sets > BlockCounters::count || results * parts > max_parts_of_thread * block_threads) return {};
  const auto power_of_two = [&](std::int64_t x) {
    return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::clamp<std::int64_t>(x, 1, block_threads))));
  };
  return {block_counters(stream), std::min(power_of_two(parts), block_threads / power_of_two(results))};
}

/// Called by all threads of `blocks` blocks that share a counter: true in those of the last block, which may read what the others have
/// stored before their call. The counter is 0 again then.
///
/// Source  CUDA C++ Programming Guide, "Memory Fence Functions".
__device__ inline bool is_last_block(unsigned* counter, int blocks) {
  __shared__ bool is_last;
  __threadfence();  // this thread's stores are visible to the other blocks before the block is counted
  __syncthreads();
  if (threadIdx.x == 0) {
    const auto last = static_cast<unsigned>(blocks) - 1;
    is_last = atomicInc(counter, last) == last;  // the last one resets it
  }
  __syncthreads();
  __threadfence();  // what the other blocks have stored is read after the count
  return is_last;
}

}  // namespace tenon::cuda
