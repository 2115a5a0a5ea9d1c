// SPDX-License-Identifier: Apache-2.0
// Stream capture and graphs on the emulation: what a capture rejects, and what a replay executes.
#include "cuda_emulation.h"

#include <thread>

namespace tenon::emulation::testing {
namespace {

__global__ void scale(int n, float factor, float* x) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] *= factor;
}

TEST_CASE("cuda emulation: a capture executes nothing, and each replay everything") {
  const Stream stream;
  Buffer<float> x(std::vector<float>{1, 2, 3});
  const Recording recording(stream, [&] {
    launch(stream, 1, 32, [p = x.data] { scale(3, 2.0f, p); });
    cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    REQUIRE(cudaStreamIsCapturing(stream, &status) == cudaSuccess);
    CHECK(status == cudaStreamCaptureStatusActive);
  });
  CHECK(recording.nodes == 1);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(x.read() == std::vector<float>{1, 2, 3});
  REQUIRE(cudaGraphLaunch(recording.executable, stream) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(recording.executable, stream) == cudaSuccess);
  CHECK(x.read() == std::vector<float>{1, 2, 3});
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(x.read() == std::vector<float>{4, 8, 12});
  CHECK(cudaGraphExecDestroy(recording.executable) == cudaSuccess);
  CHECK(cudaGraphLaunch(recording.executable, stream) == cudaErrorInvalidValue);
  cudaGetLastError();
}

TEST_CASE("cuda emulation: calls that are not allowed in a capture invalidate it") {
  const Stream stream, other;
  cudaGraph_t graph = nullptr;
  void* memory = nullptr;
  const Event event;
  REQUIRE(cudaEventRecord(event, other) == cudaSuccess);
  const auto invalidates = [&](cudaError_t expected, auto act) {
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal) == cudaSuccess);
    CHECK(act() == expected);
    launch(stream, 1, 1, [] {});
    CHECK(cudaGetLastError() == cudaErrorStreamCaptureInvalidated);
    CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
    CHECK(graph == nullptr);
    cudaGetLastError();
  };
  invalidates(cudaErrorStreamCaptureUnsupported, [&] { return cudaStreamSynchronize(stream); });
  invalidates(cudaErrorStreamCaptureUnsupported, [&] { return cudaDeviceSynchronize(); });
  invalidates(cudaErrorStreamCaptureUnsupported, [&] { return cudaMalloc(&memory, 16); });
  invalidates(cudaErrorStreamCaptureIsolation, [&] { return cudaStreamWaitEvent(stream, event, 0); });
  invalidates(cudaErrorStreamCaptureUnsupported, [&] {
    cudaError_t error = cudaSuccess;
    std::thread([&] { error = cudaMalloc(&memory, 16); }).join();
    return error;
  });
}

TEST_CASE("cuda emulation: a thread-local capture does not affect other threads") {
  const Stream stream;
  cudaGraph_t graph = nullptr;
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  cudaError_t error = cudaErrorUnknown;
  std::thread([&] {
    void* memory = nullptr;
    error = cudaMalloc(&memory, 16);
    if (error == cudaSuccess) error = cudaFree(memory);
  }).join();
  CHECK(error == cudaSuccess);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  cudaGraphDestroy(graph);
}

TEST_CASE("cuda emulation: a capture forks to a second stream by an event, which must join") {
  const Stream stream, other;
  const Event fork_event, join_event;
  for (const bool join : {true, false}) {
    cudaGraph_t graph = nullptr;
    int runs = 0;
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    REQUIRE(cudaEventRecord(fork_event, stream) == cudaSuccess);
    REQUIRE(cudaStreamWaitEvent(other, fork_event, 0) == cudaSuccess);
    launch(other, 1, 1, [&] { ++runs; });
    REQUIRE(cudaEventRecord(join_event, other) == cudaSuccess);
    if (join) REQUIRE(cudaStreamWaitEvent(stream, join_event, 0) == cudaSuccess);
    CHECK(cudaStreamEndCapture(stream, &graph) == (join ? cudaSuccess : cudaErrorStreamCaptureUnjoined));
    cudaStreamSynchronize(other);
    CHECK(runs == 0);
    float milliseconds = 0;
    CHECK(cudaEventElapsedTime(&milliseconds, fork_event, join_event) == cudaErrorCapturedEvent);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();
  }
}

TEST_CASE("cuda emulation: an external event record in a capture is executed by each replay") {
  const Stream stream;
  const Event begin, end;
  const Recording recording(stream, [&] {
    REQUIRE(cudaEventRecordWithFlags(begin, stream, cudaEventRecordExternal) == cudaSuccess);
    launch(stream, 1, 1, [] {});
    REQUIRE(cudaEventRecordWithFlags(end, stream, cudaEventRecordExternal) == cudaSuccess);
  });
  float milliseconds = -1;
  for (int i = 0; i < 2; ++i) {
    REQUIRE(cudaGraphLaunch(recording.executable, stream) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaErrorNotReady);
    CHECK(cudaEventSynchronize(end) == cudaSuccess);
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end) == cudaSuccess);
    CHECK(milliseconds >= 0);
  }
  cudaGetLastError();
  cudaGraphExecDestroy(recording.executable);
}

TEST_CASE("cuda emulation: a capture waits for an event that is recorded outside of it only by an external wait, and only a capture does") {
  const Stream stream, other;
  const Event event;
  REQUIRE(cudaEventRecord(event, other) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(stream, event, cudaEventWaitExternal) == cudaErrorIllegalState);
  REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
  CHECK(cudaStreamWaitEvent(stream, event, cudaEventWaitDefault) == cudaErrorStreamCaptureIsolation);
  cudaGraph_t graph = nullptr;
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaErrorStreamCaptureInvalidated);
  cudaGetLastError();

  const Buffer<int> x(std::vector<int>{1});
  const Recording recording(stream, [&] {
    REQUIRE(cudaStreamWaitEvent(stream, event, cudaEventWaitExternal) == cudaSuccess);
    launch(stream, 1, 1, [p = x.data] { *p *= 2; });
  });
  launch(other, 1, 1, [p = x.data] { *p += 1; });
  REQUIRE(cudaEventRecord(event, other) == cudaSuccess);
  REQUIRE(cudaGraphLaunch(recording.executable, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(x.read() == std::vector<int>{4});
  cudaGraphExecDestroy(recording.executable);
}

}  // namespace
}  // namespace tenon::emulation::testing
