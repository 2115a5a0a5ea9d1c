// SPDX-License-Identifier: Apache-2.0
// Dynamic shared memory on the emulation: what it holds, its bounds, and how much of it a kernel is allowed.
#include "cuda_emulation.h"

#include "sanitizers.h"

namespace tenon::emulation::testing {
namespace {

// Only their addresses are used.
__global__ void allowed_kernel() {}
__global__ void other_kernel() {}
__global__ void recorded_kernel() {}

TEST_CASE("cuda emulation: dynamic shared memory is uninitialised in every block, and shared by its threads") {
  const Stream stream;
  Buffer<unsigned> x(std::vector<unsigned>(2 * 4));
  launch(stream, 2, 4,
         [p = x.data] {
           auto* const shared = reinterpret_cast<unsigned*>(dynamic_shared());
           const unsigned found = shared[threadIdx.x];
           __syncthreads();
           shared[threadIdx.x] = threadIdx.x;
           __syncthreads();
           p[blockIdx.x * 4 + threadIdx.x] = found == 0xffffffffu ? shared[3 - threadIdx.x] : 100;
         },
         {4 * sizeof(unsigned), nullptr});
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(x.read() == std::vector<unsigned>{3, 2, 1, 0, 3, 2, 1, 0});
}

TEST_CASE("cuda emulation: a kernel has more than 48 KB of dynamic shared memory only where it was allowed that") {
  const Stream stream;
  const void* const kernel = reinterpret_cast<const void*>(&allowed_kernel);
  const auto error_of_launch = [&](std::size_t bytes) {
    launch(stream, 1, 1, [] {}, {bytes, kernel});
    return cudaGetLastError();
  };
  CHECK(error_of_launch(48 << 10) == cudaSuccess);
  CHECK(error_of_launch((48 << 10) + 1) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (227 << 10) + 1) == cudaErrorInvalidValue);
  CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10) == cudaSuccess);
  cudaGetLastError();
  CHECK(error_of_launch(227 << 10) == cudaSuccess);
  launch(stream, 1, 1, [] {}, {(48 << 10) + 1, reinterpret_cast<const void*>(&other_kernel)});
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

TEST_CASE("cuda emulation: a recorded kernel has to be allowed its dynamic shared memory when its graph is instantiated and launched") {
  const Stream stream;
  const void* const kernel = reinterpret_cast<const void*>(&recorded_kernel);
  const auto allow = [&](int bytes) {
    REQUIRE(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes) == cudaSuccess);
  };
  allow(128 << 10);
  const Recording recording(stream, [&] { launch(stream, 1, 1, [] {}, {128 << 10, kernel}); });
  REQUIRE(cudaGraphLaunch(recording.executable, stream) == cudaSuccess);
  allow(96 << 10);
  CHECK(cudaGraphLaunch(recording.executable, stream) == cudaErrorInvalidValue);
  cudaGraph_t graph = nullptr;
  allow(128 << 10);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  launch(stream, 1, 1, [] {}, {128 << 10, kernel});
  REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  allow(96 << 10);
  cudaGraphExec_t executable = nullptr;
  CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaErrorInvalidValue);
  allow(128 << 10);
  CHECK(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
  for (cudaGraphExec_t made : {recording.executable, executable}) CHECK(cudaGraphExecDestroy(made) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("cuda emulation: a write beyond the dynamic shared memory ends the process") {
  const auto [signal, text] = in_child([] {
    const Stream stream;
    launch(stream, 1, 1, [] { dynamic_shared()[64] = 1; }, {64, nullptr});
    cudaStreamSynchronize(stream);
  });
  if (address_sanitized) return;  // it reports this itself
  CHECK(signal == SIGABRT);
  CHECK(text.find("block (0, 0, 0): wrote beyond its 64 bytes of dynamic shared memory") != std::string::npos);
}

}  // namespace
}  // namespace tenon::emulation::testing
