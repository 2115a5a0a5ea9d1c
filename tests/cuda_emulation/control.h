// control.h - what a test, or an emulated vendor library, says to the emulation beside CUDA's own calls.
#pragma once

#include <cuda_runtime_api.h>

#include <functional>

namespace tenon::emulation {

/// Gives a kernel to a stream, as <<<grid, block, 0, stream>>> would: `body` runs once per thread with threadIdx, blockIdx, blockDim and
/// gridDim set, when somebody waits for the stream.
///
/// Errors   as a launch: kept for cudaGetLastError; cudaErrorInvalidConfiguration for what no GPU takes.
/// Threads  any.
void launch(cudaStream_t stream, dim3 grid, dim3 block, std::function<void()> body);

/// Gives work that is one piece to a stream, for libraries that are emulated whole: it may touch device memory and calls no CUDA.
cudaError_t enqueue(cudaStream_t stream, std::function<void()> work);

/// The next call of the named function ("cudaMallocFromPoolAsync"; a launch is "cudaLaunchKernel") returns `error` and does nothing else.
/// Called twice, the next two calls do. TENON_CUDA_EMULATION_FAIL="cudaStreamCreateWithFlags=2,..." says the same to a process from
/// outside.
void fail_next(const char* function_name, cudaError_t error);

/// The caller's current device faults at the next thing that it executes. The next call that waits reports it, and every later one; only
/// cudaDeviceReset helps.
void fault(cudaError_t error);

/// In which order threads and blocks run: "ascending", "descending" or a seed in digits. TENON_CUDA_EMULATION_ORDER says the same.
void set_order(const char* order);

}  // namespace tenon::emulation
