// SPDX-License-Identifier: Apache-2.0
// group_barrier.cuh - a barrier among some blocks of a cooperative launch (launch_cooperative), all of which run at once.
#pragma once

namespace tenon::cuda {

/// All threads of `blocks` blocks that share a counter, which is 0 before the kernel: what any of them has stored before, all of them read
/// after it. `arrivals` is 0 at first, and belongs to the thread.
///
/// Source  CUDA C++ Programming Guide, "Memory Fence Functions".
__device__ inline void wait_for_group(unsigned* counter, unsigned blocks, unsigned& arrivals) {
  arrivals += blocks;
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();  // what this block has stored is visible to the others before the block is counted
    atomicAdd(counter, 1u);
    // The difference, because the number of arrivals may wrap.
    while (static_cast<int>(*static_cast<volatile unsigned*>(counter) - arrivals) < 0) __nanosleep(20);
    __threadfence();  // what the others have stored is read after they were counted
  }
  __syncthreads();
}

/// All threads, after the last wait_for_group(): the last block to call it sets the counter to 0 for the next kernel.
__device__ inline void leave_group(unsigned* counter, unsigned blocks, unsigned arrivals) {
  if (threadIdx.x == 0 && atomicAdd(counter, 1u) + 1 == arrivals + blocks) atomicExch(counter, 0u);
}

}  // namespace tenon::cuda
