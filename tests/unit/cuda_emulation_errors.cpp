// SPDX-License-Identifier: Apache-2.0
// Errors on demand, of the emulation: calls that fail once, and a device that faults.
#include "cuda_emulation.h"

namespace tenon::emulation::testing {
namespace {

TEST_CASE("cuda emulation: an injected failure happens once and the call has no effect") {
  void* memory = nullptr;
  fail_next("cudaMalloc", cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&memory, 16) == cudaErrorMemoryAllocation);
  CHECK(memory == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
  const Stream stream;
  int runs = 0;
  fail_next("cudaLaunchKernel", cudaErrorLaunchOutOfResources);
  launch(stream, 1, 1, [&] { ++runs; });
  CHECK(cudaGetLastError() == cudaErrorLaunchOutOfResources);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(runs == 0);
}

TEST_CASE("cuda emulation: a fault is reported by the next wait and by every later call until the device is reset") {
  cudaStream_t stream = nullptr;
  REQUIRE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) == cudaSuccess);
  int runs = 0;
  void* memory = nullptr;
  launch(stream, 1, 1, [&] { ++runs; });
  fault(cudaErrorIllegalAddress);
  launch(stream, 1, 1, [&] { ++runs; });
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorIllegalAddress);
  CHECK(runs == 0);
  CHECK(cudaMalloc(&memory, 16) == cudaErrorIllegalAddress);
  CHECK(cudaSetDevice(0) == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
  CHECK(cudaDeviceReset() == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
  CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
}

}  // namespace
}  // namespace tenon::emulation::testing
