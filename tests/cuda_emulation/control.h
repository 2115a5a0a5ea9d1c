// SPDX-License-Identifier: Apache-2.0
// control.h - controls the emulation from tests and emulated vendor libraries, in addition to CUDA's own calls.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <functional>

namespace tenon::emulation {

/// The dynamic shared memory of a launch. Beyond 48 KB the kernel must have been allowed it by cudaFuncSetAttribute: when it is launched,
/// and if it is recorded, also when its graph is instantiated and launched.
struct SharedMemory {
  std::size_t bytes = 0;
  const void* kernel = nullptr;  ///< its static shared memory is filled with 0xFF bytes before its first blocks (static_shared.h)
};

/// Enqueues a kernel on a stream, as <<<grid, block, shared.bytes, stream>>> would: `body` runs once per thread with threadIdx, blockIdx,
/// blockDim and gridDim set, when the stream is waited for.
///
/// Errors   as a launch: kept for cudaGetLastError; cudaErrorInvalidConfiguration for launches that no GPU accepts,
///          cudaErrorInvalidValue for more shared memory than is allowed.
/// Threads  any.
void launch(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> body, SharedMemory shared = {});

/// The same with programmatic stream serialization: until the first thread of a block calls cudaGridDependencySynchronize(), no memory of
/// the device can be accessed, and a thread that ends without it aborts the process.
void launch_early(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> body, SharedMemory shared = {});

/// The same as a cooperative launch: its blocks run in turns and may wait for each other in __nanosleep().
///
/// Errors  cudaErrorNotSupported if the device has no such launches, cudaErrorCooperativeLaunchTooLarge if its multiprocessors cannot have
///         all blocks at once: by their threads and shared memory, since the emulation knows no registers.
void launch_cooperative(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> body, SharedMemory shared = {});

/// Enqueues host work on a stream, for emulated vendor libraries: it may access device memory and must not call CUDA.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

/// The next call of the named function ("cudaMallocFromPoolAsync"; a launch is "cudaLaunchKernel") returns `error` and does nothing else.
/// Called twice, it affects the next two calls. TENON_CUDA_EMULATION_FAIL="cudaStreamCreateWithFlags=2,..." does the same from outside of
/// the process.
void fail_next(const char* function_name, cudaError_t error);

/// From here on cudaFuncGetAttributes reports so much static shared memory of a block, which leaves less for the dynamic one. The emulation
/// knows no kernel's: it is 0 otherwise.
void set_static_shared(const void* kernel, std::size_t bytes);

/// The caller's current device faults at the next item that it executes. The next call that waits, and every later one, reports the fault
/// until cudaDeviceReset.
void fault(cudaError_t error);

/// In which order threads and blocks run: "ascending", "descending" or a seed in digits. TENON_CUDA_EMULATION_ORDER does the same.
void set_order(const char* order);

}  // namespace tenon::emulation
