// SPDX-License-Identifier: Apache-2.0
// chains.cuh - what it costs when computations wait for blocks of the one before: kernels in a graph, or barriers in a kernel.
#pragma once

#include <cuda_runtime_api.h>

namespace tenon::cuda {

/// Enqueues `length` kernels that do nothing, each of which waits for the one before. `early` lets a kernel's blocks be started before that
/// one has ended (programmatic dependent launch, compute capability 9.0 and later).
cudaError_t enqueue_chain(cudaStream_t stream, int blocks, int length, bool early);

/// Enqueues a cooperative kernel in which all blocks wait for each other `count` times. `blocks` is at most the number of multiprocessors.
cudaError_t enqueue_barriers(cudaStream_t stream, int blocks, int count);

/// The blocks of a group below: those of 256 units of lstm in f32.
inline constexpr int group_blocks = 8;
/// Enqueues a cooperative kernel in which the blocks of each group wait for each other `count` times, by the barrier of the recurrent
/// kernels (kernel/group_barrier.cuh). `counters`: one for each group, 0 before the kernel and after it. `groups * group_blocks` is at most
/// the number of multiprocessors.
cudaError_t enqueue_group_barriers(cudaStream_t stream, unsigned* counters, int groups, int count);

}  // namespace tenon::cuda
