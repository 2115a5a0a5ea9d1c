// SPDX-License-Identifier: Apache-2.0
// Streams and events on the emulation: work is as late as possible, and only what is waited for runs.
#include "cuda_emulation.h"

namespace tenon::emulation::testing {
namespace {

TEST_CASE("cuda emulation: nothing runs before a wait") {
  const Stream stream;
  int runs = 0;
  launch(stream, 1, 1, [&] { ++runs; });
  launch(stream, 1, 1, [&] { ++runs; });
  CHECK(runs == 0);
  CHECK(cudaStreamQuery(stream) == cudaErrorNotReady);
  CHECK(runs == 1);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(runs == 2);
  CHECK(cudaStreamQuery(stream) == cudaSuccess);
  CHECK(cudaGetLastError() == cudaErrorNotReady);
}

TEST_CASE("cuda emulation: an event orders two streams, and without it the second runs early") {
  const Stream first, second;
  Buffer<int> x(1), y(1), z(1);
  const Event event;
  REQUIRE(cudaMemsetAsync(x.data, 0, sizeof(int), first) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(first) == cudaSuccess);
  launch(first, 1, 1, [p = x.data] { *p = 5; });
  REQUIRE(cudaEventRecord(event, first) == cudaSuccess);
  launch(first, 1, 1, [p = x.data] { *p = 6; });
  REQUIRE(cudaMemcpyAsync(z.data, x.data, sizeof(int), cudaMemcpyDeviceToDevice, second) == cudaSuccess);
  REQUIRE(cudaStreamWaitEvent(second, event, 0) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(y.data, x.data, sizeof(int), cudaMemcpyDeviceToDevice, second) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(second) == cudaSuccess);
  CHECK(z.read()[0] == 0);
  CHECK(y.read()[0] == 5);
  CHECK(cudaEventQuery(event) == cudaSuccess);
}

TEST_CASE("cuda emulation: elapsed time expects two events that were recorded and reached") {
  const Stream stream;
  cudaEvent_t begin = nullptr, end = nullptr;
  REQUIRE(cudaEventCreate(&begin) == cudaSuccess);
  REQUIRE(cudaEventCreate(&end) == cudaSuccess);
  float milliseconds = -1;
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaErrorInvalidResourceHandle);
  cudaEventRecord(begin, stream);
  cudaEventRecord(end, stream);
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaErrorNotReady);
  CHECK(cudaEventSynchronize(end) == cudaSuccess);
  CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess);
  CHECK(milliseconds >= 0);
  cudaGetLastError();
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  CHECK(cudaEventQuery(begin) == cudaErrorInvalidResourceHandle);
  cudaGetLastError();
}

TEST_CASE("cuda emulation: the default stream waits for blocking streams and not for others") {
  cudaStream_t blocking = nullptr;
  REQUIRE(cudaStreamCreate(&blocking) == cudaSuccess);
  const Stream apart;
  int runs = 0, apart_runs = 0;
  launch(blocking, 1, 1, [&] { ++runs; });
  launch(apart, 1, 1, [&] { ++apart_runs; });
  launch(nullptr, 1, 1, [] {});
  CHECK(cudaStreamSynchronize(nullptr) == cudaSuccess);
  CHECK(runs == 1);
  CHECK(apart_runs == 0);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(apart_runs == 1);
  cudaStreamDestroy(blocking);
}

TEST_CASE("cuda emulation: a host function runs in stream order and may not call CUDA") {
  const Stream stream;
  struct Seen {
    int value = 0;
    cudaError_t error = cudaSuccess;
  } seen;
  launch(stream, 1, 1, [&] { seen.value = 3; });
  cudaLaunchHostFunc(
      stream,
      [](void* data) {
        auto& s = *static_cast<Seen*>(data);
        s.value *= 2;
        s.error = cudaDeviceSynchronize();
      },
      &seen);
  CHECK(seen.value == 0);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(seen.value == 6);
  CHECK(seen.error == cudaErrorNotPermitted);
}

}  // namespace
}  // namespace tenon::emulation::testing
