// SPDX-License-Identifier: Apache-2.0
// previous_kernel.cuh - the wait of kernels that launch_early() enqueues.
#pragma once

namespace tenon::cuda {

/// Waits until the kernel before this one has ended and what it wrote is visible, then lets the blocks of the next kernel be started. All
/// threads call it. Before it a kernel may read its parameters and compute indices, and must not access global memory. It does nothing in a
/// kernel that was not launched early, and in machine code for GPUs that cannot.
__device__ inline void wait_for_previous_kernel() {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900
  cudaGridDependencySynchronize();
  cudaTriggerProgrammaticLaunchCompletion();  // the next kernel waits for the end of this one in any case
#endif
}

}  // namespace tenon::cuda
