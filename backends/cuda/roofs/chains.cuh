// SPDX-License-Identifier: Apache-2.0
// chains.cuh - what it costs when computations wait for all blocks of the one before: kernels in a graph, or barriers in a kernel.
#pragma once

#include <cuda_runtime_api.h>

namespace tenon::cuda {

/// Enqueues `length` kernels that do nothing, each of which waits for the one before. `early` lets a kernel's blocks be started before that
/// one has ended (programmatic dependent launch, compute capability 9.0 and later).
cudaError_t enqueue_chain(cudaStream_t stream, int blocks, int length, bool early);

/// Enqueues a cooperative kernel in which all blocks wait for each other `count` times. `blocks` is at most the number of multiprocessors.
cudaError_t enqueue_barriers(cudaStream_t stream, int blocks, int count);

}  // namespace tenon::cuda
