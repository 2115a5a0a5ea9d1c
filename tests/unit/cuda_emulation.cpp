// SPDX-License-Identifier: Apache-2.0
// Tests of the CUDA emulation. A test double that is too lenient proves nothing, so these tests are about its strictness.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "emulation.h"
#include "sanitizers.h"

namespace {

using tenon::emulation::launch;
using tenon::emulation::launch_cooperative;
using tenon::emulation::launch_early;

__global__ void scale(int n, float factor, float* x) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) x[i] *= factor;
}

/// Reverses a block of 64 through shared memory; without the barrier a thread may read before the write.
template <bool Barrier>
__global__ void reverse(int* x) {
  __shared__ int tile[64];
  tile[threadIdx.x] = x[threadIdx.x];
  if constexpr (Barrier) __syncthreads();
  x[threadIdx.x] = tile[63 - threadIdx.x];
}

/// The sum over a block of at most 1024, in every thread.
__global__ void block_sum(const int* x, int* y) {
  __shared__ int part[32];
  int sum = x[threadIdx.x];
  for (int lane = 16; lane > 0; lane /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, lane);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = threadIdx.x % 32 < blockDim.x / 32 ? part[threadIdx.x % 32] : 0;
  for (unsigned lane = 16; lane > 0; lane /= 2) sum += __shfl_down_sync(0xffffffffu, sum, lane);
  y[threadIdx.x] = __shfl_sync(0xffffffffu, sum, 0);
}

/// Half of the threads return before the barrier of the others.
__global__ void half_return(int* x) {
  if (threadIdx.x >= 32) return;
  x[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) x[32] = x[31];
}

__global__ void divided_barrier() {
  if (threadIdx.x == 0)
    __syncthreads();
  else
    __syncwarp(0xffffffffu);
}

/// Adds the indices of blocks one after the other: each block waits until the one before it, of a higher index, has added its own.
__global__ void add_in_turn(volatile unsigned* turn, unsigned* sum) {
  if (threadIdx.x == 0) {
    while (*turn != gridDim.x - 1 - blockIdx.x) __nanosleep(20);
    *sum = 10 * *sum + blockIdx.x;
    *turn = *turn + 1;
  }
  __syncthreads();
}
void launch_in_turn(cudaStream_t stream, unsigned blocks, unsigned* turn, unsigned* sum) {
  launch_cooperative(stream, blocks, 33, [=] { add_in_turn(turn, sum); });
}

struct Order {
  explicit Order(const char* order) { tenon::emulation::set_order(order); }
  ~Order() { tenon::emulation::set_order("ascending"); }
};

struct Stream {
  Stream() { REQUIRE(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking) == cudaSuccess); }
  ~Stream() {
    cudaStreamSynchronize(handle);
    cudaStreamDestroy(handle);
  }
  operator cudaStream_t() const { return handle; }
  cudaStream_t handle = nullptr;
};

struct Event {
  Event() { REQUIRE(cudaEventCreate(&handle) == cudaSuccess); }
  ~Event() { cudaEventDestroy(handle); }
  operator cudaEvent_t() const { return handle; }
  cudaEvent_t handle = nullptr;
};

/// What body() submits to the stream, as a graph.
template <class Body>
struct Recording {
  Recording(cudaStream_t stream, const Body& body) {
    cudaGraph_t graph = nullptr;
    REQUIRE(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess);
    body();
    REQUIRE(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
    REQUIRE(cudaGraphGetNodes(graph, nullptr, &nodes) == cudaSuccess);
    REQUIRE(cudaGraphInstantiate(&executable, graph, 0) == cudaSuccess);
    REQUIRE(cudaGraphDestroy(graph) == cudaSuccess);
  }
  std::size_t nodes = 0;
  cudaGraphExec_t executable = nullptr;
};

template <class T>
struct Buffer {
  explicit Buffer(std::size_t n, int device_memory = 1) : pinned(device_memory == 0), size(n) {
    void* memory = nullptr;
    REQUIRE((pinned ? cudaHostAlloc(&memory, n * sizeof(T), 0) : cudaMalloc(&memory, n * sizeof(T))) == cudaSuccess);
    data = static_cast<T*>(memory);
  }
  explicit Buffer(const std::vector<T>& values) : Buffer(values.size()) {
    REQUIRE(cudaMemcpy(data, values.data(), size * sizeof(T), cudaMemcpyHostToDevice) == cudaSuccess);
  }
  ~Buffer() { pinned ? cudaFreeHost(data) : cudaFree(data); }
  std::vector<T> read() const {
    std::vector<T> values(size);
    REQUIRE(cudaMemcpy(values.data(), data, size * sizeof(T), cudaMemcpyDeviceToHost) == cudaSuccess);
    return values;
  }
  const bool pinned;
  const std::size_t size;
  T* data = nullptr;
};
template <class T>
Buffer<T> pinned(std::size_t n) {
  return Buffer<T>(n, 0);
}

/// The signal that ended a child process that ran `body` (0 if it returned) and its stderr.
template <class F>
std::pair<int, std::string> in_child(F body) {
  int pipe_ends[2];
  REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    for (const int signal : {SIGSEGV, SIGABRT}) std::signal(signal, SIG_DFL);
    dup2(pipe_ends[1], STDERR_FILENO);
    body();
    _exit(0);
  }
  close(pipe_ends[1]);
  std::string text;
  char piece[512];
  for (ssize_t n; (n = read(pipe_ends[0], piece, sizeof piece)) > 0;) text.append(piece, static_cast<std::size_t>(n));
  close(pipe_ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFSIGNALED(status) ? WTERMSIG(status) : 0, text};
}

std::vector<int> counted(int n) {
  std::vector<int> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

}  // namespace

TEST_CASE("cuda emulation: every thread of every block runs once") {
  for (const char* order : {"ascending", "descending", "1", "2"}) {
    const Order chosen(order);
    const Stream stream;
    Buffer<unsigned> counts(std::vector<unsigned>(3 * 2 * 2 * 5 * 4 * 3));
    unsigned* const x = counts.data;
    launch(stream, dim3(3, 2, 2), dim3(5, 4, 3), [=] {
      const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
      const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
      atomicAdd(x + block * 60 + thread, 1u);
    });
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(counts.read() == std::vector<unsigned>(720, 1));
  }
}

TEST_CASE("cuda emulation: a barrier makes what was written before it visible, in every order") {
  for (const char* order : {"ascending", "descending", "1", "2", "3"}) {
    const Order chosen(order);
    const Stream stream;
    Buffer<int> x(counted(64));
    launch(stream, 1, 64, [p = x.data] { reverse<true>(p); });
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    std::vector<int> expected = counted(64);
    std::reverse(expected.begin(), expected.end());
    CHECK(x.read() == expected);
  }
}

TEST_CASE("cuda emulation: a missing barrier shows as wrong data") {
  const Stream stream;
  Buffer<int> x(counted(64));
  launch(stream, 1, 64, [p = x.data] { reverse<false>(p); });
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(x.read()[0] != 63);
}

TEST_CASE("cuda emulation: shuffles and barriers add up a block") {
  for (const char* order : {"ascending", "descending", "17"}) {
    for (const int threads : {32, 96, 256, 1024}) {
      const Order chosen(order);
      const Stream stream;
      Buffer<int> x(counted(threads)), y(std::vector<int>(static_cast<std::size_t>(threads)));
      launch(stream, 1, static_cast<unsigned>(threads), [p = x.data, q = y.data] { block_sum(p, q); });
      REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
      CHECK(y.read() == std::vector<int>(static_cast<std::size_t>(threads), threads * (threads - 1) / 2));
    }
  }
}

TEST_CASE("cuda emulation: votes count the lanes of their mask; a partial warp has only its existing lanes") {
  const Stream stream;
  Buffer<unsigned> x(std::vector<unsigned>(40));
  launch(stream, 1, 40, [p = x.data] {
    const unsigned mask = threadIdx.x < 32 ? 0xffffffffu : 0xffu;
    const unsigned odd = __ballot_sync(mask, threadIdx.x % 2 == 1);
    p[threadIdx.x] = __any_sync(mask, threadIdx.x == 39) && !__all_sync(mask, threadIdx.x == 39) ? odd + 0x10000u : odd;
  });
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  const std::vector<unsigned> seen = x.read();
  CHECK(seen[0] == 0xaaaaaaaau);
  CHECK(seen[31] == 0xaaaaaaaau);
  CHECK(seen[32] == 0x100aau);
}

TEST_CASE("cuda emulation: shuffles up, down and across stay within their width") {
  const Stream stream;
  Buffer<int> x(std::vector<int>(128));
  launch(stream, 1, 32, [p = x.data] {
    const int own = static_cast<int>(threadIdx.x);
    p[own] = __shfl_up_sync(0xffffffffu, own, 3u, 8);
    p[32 + own] = __shfl_down_sync(0xffffffffu, own, 3u, 8);
    p[64 + own] = __shfl_sync(0xffffffffu, own, 9, 8);
    p[96 + own] = static_cast<int>(__shfl_xor_sync(0xffffffffu, static_cast<double>(own), 5));
  });
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  const std::vector<int> y = x.read();
  for (std::size_t i = 0; i < 32; ++i) {
    const int own = static_cast<int>(i), first = own / 8 * 8;
    CHECK(y[i] == (own - 3 < first ? own : own - 3));
    CHECK(y[32 + i] == (own + 3 > first + 7 ? own : own + 3));
    CHECK(y[64 + i] == first + 1);
    CHECK(y[96 + i] == (own ^ 5));
  }
}

TEST_CASE("cuda emulation: threads that have returned are not waited for") {
  const Stream stream;
  Buffer<int> x(std::vector<int>(64));
  launch(stream, 1, 64, [p = x.data] { half_return(p); });
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(x.read()[32] == 1);
}

TEST_CASE("cuda emulation: a deadlocked block reports its threads") {
  const auto [signal, text] = in_child([] {
    const Stream stream;
    launch(stream, 1, 4, [] { divided_barrier(); });
    cudaStreamSynchronize(stream);
  });
  CHECK(signal == SIGABRT);
  CHECK(text.find("block (0, 0, 0)") != std::string::npos);
  CHECK(text.find("thread (0, 0, 0) waits in __syncthreads") != std::string::npos);
  CHECK(text.find("thread (1, 0, 0) waits in __syncwarp") != std::string::npos);
}

TEST_CASE("cuda emulation: an invalid launch is rejected, and its error is returned once") {
  const Stream stream;
  for (const auto& [grid, block] : {std::pair(dim3(1), dim3(1025)),
                                    {dim3(0), dim3(1)},
                                    {dim3(1), dim3(1, 0)},
                                    {dim3(1, 65536), dim3(1)},
                                    {dim3(1), dim3(1, 1, 65)},
                                    {dim3(0x80000000u), dim3(1)}}) {
    launch(stream, grid, block, [] {});
    CHECK(cudaPeekAtLastError() == cudaErrorInvalidConfiguration);
    CHECK(cudaGetLastError() == cudaErrorInvalidConfiguration);
    CHECK(cudaGetLastError() == cudaSuccess);
  }
}

TEST_CASE("cuda emulation: dynamic shared memory is uninitialised in every block, and shared by its threads") {
  const Stream stream;
  Buffer<unsigned> x(std::vector<unsigned>(2 * 4));
  launch(stream, 2, 4,
         [p = x.data] {
           auto* const shared = reinterpret_cast<unsigned*>(tenon::emulation::dynamic_shared());
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
  const void* const kernel = reinterpret_cast<const void*>(&divided_barrier);
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
  launch(stream, 1, 1, [] {}, {(48 << 10) + 1, reinterpret_cast<const void*>(&block_sum)});
  CHECK(cudaGetLastError() == cudaErrorInvalidValue);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
}

TEST_CASE("cuda emulation: a recorded kernel has to be allowed its dynamic shared memory when its graph is instantiated and launched") {
  const Stream stream;
  const void* const kernel = reinterpret_cast<const void*>(&half_return);
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
    launch(stream, 1, 1, [] { tenon::emulation::dynamic_shared()[64] = 1; }, {64, nullptr});
    cudaStreamSynchronize(stream);
  });
  if (tenon::emulation::address_sanitized) return;  // it reports this itself
  CHECK(signal == SIGABRT);
  CHECK(text.find("block (0, 0, 0): wrote beyond its 64 bytes of dynamic shared memory") != std::string::npos);
}

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

TEST_CASE("cuda emulation: a copy from pageable memory reads the bytes in the call, from pinned memory later") {
  const Stream stream;
  Buffer<int> x(1), y(1);
  const Buffer<int> fixed = pinned<int>(1);
  int pageable = 1;
  *fixed.data = 1;
  REQUIRE(cudaMemcpyAsync(x.data, &pageable, sizeof(int), cudaMemcpyHostToDevice, stream) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(y.data, fixed.data, sizeof(int), cudaMemcpyHostToDevice, stream) == cudaSuccess);
  pageable = *fixed.data = 2;
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(x.read()[0] == 1);
  CHECK(y.read()[0] == 2);
}

TEST_CASE("cuda emulation: a copy to pageable memory is done when the call returns, to pinned memory later") {
  const Stream stream;
  Buffer<int> x(std::vector<int>{7});
  const Buffer<int> fixed = pinned<int>(1);
  *fixed.data = 0;
  REQUIRE(cudaMemcpyAsync(fixed.data, x.data, sizeof(int), cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(*fixed.data == 0);
  int pageable = 0;
  REQUIRE(cudaMemcpyAsync(&pageable, x.data, sizeof(int), cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(pageable == 7);
  CHECK(*fixed.data == 7);
}

TEST_CASE("cuda emulation: a copy out of bounds or of a wrong kind is rejected") {
  const Stream stream;
  Buffer<int> x(4);
  std::vector<int> host(8);
  CHECK(cudaMemcpyAsync(x.data, host.data(), 5 * sizeof(int), cudaMemcpyHostToDevice, stream) == cudaErrorInvalidValue);
  CHECK(cudaMemcpyAsync(x.data, host.data(), sizeof(int), cudaMemcpyDeviceToDevice, stream) == cudaErrorInvalidValue);
  CHECK(cudaMemsetAsync(x.data + 1, 0, 4 * sizeof(int), stream) == cudaErrorInvalidValue);
  cudaGetLastError();
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

TEST_CASE("cuda emulation: new and freed memory is filled with 0xFF") {
  const Stream stream, other;
  void *first = nullptr, *second = nullptr;
  REQUIRE(cudaMallocAsync(&first, 256, stream) == cudaSuccess);
  unsigned value = 0;
  REQUIRE(cudaMemcpyAsync(&value, first, sizeof value, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(value == 0xffffffffu);
  REQUIRE(cudaMemsetAsync(first, 0, 256, stream) == cudaSuccess);
  REQUIRE(cudaFreeAsync(first, stream) == cudaSuccess);
  CHECK(cudaFreeAsync(first, stream) == cudaErrorInvalidValue);
  REQUIRE(cudaMallocAsync(&second, 256, stream) == cudaSuccess);
  REQUIRE(cudaMemcpyAsync(&value, second, sizeof value, cudaMemcpyDeviceToHost, stream) == cudaSuccess);
  CHECK(value == 0xffffffffu);
  REQUIRE(cudaFreeAsync(second, stream) == cudaSuccess);
  cudaGetLastError();
}

TEST_CASE("cuda emulation: more memory than the device has is rejected, and freed memory is available again") {
  std::size_t before = 0, total = 0, after = 0;
  REQUIRE(cudaMemGetInfo(&before, &total) == cudaSuccess);
  void* memory = nullptr;
  CHECK(cudaMalloc(&memory, total + 1) == cudaErrorMemoryAllocation);
  CHECK(memory == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  REQUIRE(cudaMalloc(&memory, 1 << 20) == cudaSuccess);
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK(after == before - (1 << 20));
  REQUIRE(cudaFree(memory) == cudaSuccess);
  REQUIRE(cudaMemGetInfo(&after, &total) == cudaSuccess);
  CHECK(after == before);
}

TEST_CASE("cuda emulation: a pool counts its allocations") {
  const Stream stream;
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  cudaMemPool_t pool = nullptr;
  REQUIRE(cudaMemPoolCreate(&pool, &properties) == cudaSuccess);
  void* memory = nullptr;
  REQUIRE(cudaMallocFromPoolAsync(&memory, 1000, pool, stream) == cudaSuccess);
  CHECK(reinterpret_cast<std::uintptr_t>(memory) % 256 == 0);
  std::uint64_t used = 0;
  REQUIRE(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
  CHECK(used == 1000);
  REQUIRE(cudaFreeAsync(memory, stream) == cudaSuccess);
  REQUIRE(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used) == cudaSuccess);
  CHECK(used == 0);
  CHECK(cudaMemPoolDestroy(pool) == cudaSuccess);
}

TEST_CASE("cuda emulation: the host cannot read device memory, nor can a host function") {
  if (tenon::emulation::address_sanitized) return;  // device memory is ordinary memory then, in exchange for bounds
  Buffer<int> x(std::vector<int>{1});
  CHECK(in_child([&] { _exit(*static_cast<volatile int*>(x.data)); }).first == SIGSEGV);
  CHECK(in_child([&] {
          const Stream stream;
          launch(stream, 1, 1, [p = x.data] { *p = 2; });
          cudaLaunchHostFunc(
              stream, [](void* p) { _exit(*static_cast<volatile int*>(p)); }, x.data);
          cudaStreamSynchronize(stream);
        }).first == SIGSEGV);
  CHECK(x.read()[0] == 1);
}

TEST_CASE("cuda emulation: a kernel that was launched early accesses memory when it has waited for the previous kernel") {
  const Stream stream;
  const Buffer<int> x(std::vector<int>{1}), y(std::vector<int>(8, 0));
  launch(stream, 1, 1, [p = x.data] { *p = 2; });
  launch_early(stream, 2, 4, [from = x.data, to = y.data] {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    cudaGridDependencySynchronize();
    to[i] = *from + static_cast<int>(i);
  });
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(y.read() == std::vector<int>{2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("cuda emulation: a kernel that was launched early and does not wait ends the process") {
  const auto [signal, text] = in_child([] {
    const Stream stream;
    launch_early(stream, 2, 4, [] {
      if (blockIdx.x == 0 || threadIdx.x != 2) cudaGridDependencySynchronize();
    });
    cudaStreamSynchronize(stream);
  });
  CHECK(signal == SIGABRT);
  CHECK(text.find("block (1, 0, 0): thread (2, 0, 0) of a kernel that was launched early ends without a wait") != std::string::npos);
  if (tenon::emulation::address_sanitized) return;  // device memory is ordinary memory then, in exchange for bounds
  const Buffer<int> x(std::vector<int>{1});
  CHECK(in_child([&] {
          const Stream stream;
          launch_early(stream, 1, 1, [p = x.data] {
            *p = 2;
            cudaGridDependencySynchronize();
          });
          cudaStreamSynchronize(stream);
        }).first == SIGSEGV);
}

TEST_CASE("cuda emulation: blocks of a cooperative launch wait for each other, in every order") {
  for (const char* order : {"ascending", "descending", "1", "2"}) {
    const Order chosen(order);
    const Stream stream;
    Buffer<unsigned> x(std::vector<unsigned>(2));
    launch_in_turn(stream, 5, x.data, x.data + 1);
    REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
    CHECK(x.read() == std::vector<unsigned>{5, 43210});
  }
}

TEST_CASE("cuda emulation: a cooperative launch that is recorded is cooperative when it is replayed") {
  const Stream stream;
  Buffer<unsigned> x(std::vector<unsigned>(2));
  const Recording recording(stream, [&] { launch_in_turn(stream, 4, x.data, x.data + 1); });
  CHECK(recording.nodes == 1);
  REQUIRE(cudaGraphLaunch(recording.executable, stream) == cudaSuccess);
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(x.read() == std::vector<unsigned>{4, 3210});
  CHECK(cudaGraphExecDestroy(recording.executable) == cudaSuccess);
}

TEST_CASE("cuda emulation: blocks of a cooperative launch have dynamic shared memory of their own") {
  const Stream stream;
  Buffer<unsigned> x(std::vector<unsigned>(1 + 4));
  launch_cooperative(stream, 4, 1,
                     [p = x.data] {
                       unsigned& own = *reinterpret_cast<unsigned*>(tenon::emulation::dynamic_shared());
                       own = blockIdx.x;
                       atomicAdd(p, 1u);
                       while (*static_cast<volatile unsigned*>(p) != gridDim.x) __nanosleep(20);
                       p[1 + blockIdx.x] = own;
                     },
                     {sizeof(unsigned)});
  REQUIRE(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(x.read() == std::vector<unsigned>{4, 0, 1, 2, 3});
}

TEST_CASE("cuda emulation: a block that waits for another one ends the process if the launch is not cooperative") {
  const auto [signal, text] = in_child([] {
    const Stream stream;
    Buffer<unsigned> x(std::vector<unsigned>(2));
    launch(stream, 2, 1, [p = x.data] { add_in_turn(p, p + 1); });
    cudaStreamSynchronize(stream);
  });
  CHECK(signal == SIGABRT);
  CHECK(text.find("block (0, 0, 0): thread (0, 0, 0) waits for another block, and the launch is not cooperative") != std::string::npos);
}

TEST_CASE("cuda emulation: blocks that all wait for each other are a deadlock") {
  const auto [signal, text] = in_child([] {
    const Stream stream;
    Buffer<unsigned> x(std::vector<unsigned>{7, 0});
    launch_in_turn(stream, 2, x.data, x.data + 1);
    cudaStreamSynchronize(stream);
  });
  CHECK(signal == SIGABRT);
  CHECK(text.find("deadlock:\n  thread (0, 0, 0) waits in __nanosleep for another block") != std::string::npos);
  CHECK(text.find("thread (1, 0, 0) waits in __syncthreads") != std::string::npos);
}

TEST_CASE("cuda emulation: a cooperative launch of more blocks than the device holds at once is rejected") {
  const Stream stream;
  const auto error_of = [&](unsigned blocks, unsigned threads, std::size_t shared_bytes) {
    launch_cooperative(stream, blocks, threads, [] {}, {shared_bytes});
    return cudaGetLastError();
  };
  CHECK(error_of(132 * 2, 1024, 0) == cudaSuccess);
  CHECK(error_of(132 * 2 + 1, 1024, 0) == cudaErrorCooperativeLaunchTooLarge);
  CHECK(error_of(132 * 4, 32, 48 << 10) == cudaSuccess);
  CHECK(error_of(132 * 4 + 1, 32, 48 << 10) == cudaErrorCooperativeLaunchTooLarge);
  CHECK(error_of(132 * 32 + 1, 32, 0) == cudaErrorCooperativeLaunchTooLarge);
  ::setenv("TENON_CUDA_EMULATION_COOPERATIVE", "0", 1);
  CHECK(error_of(1, 32, 0) == cudaErrorNotSupported);
  ::unsetenv("TENON_CUDA_EMULATION_COOPERATIVE");
}

TEST_CASE("cuda emulation: an injected failure happens once and the call has no effect") {
  void* memory = nullptr;
  tenon::emulation::fail_next("cudaMalloc", cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&memory, 16) == cudaErrorMemoryAllocation);
  CHECK(memory == nullptr);
  CHECK(cudaGetLastError() == cudaErrorMemoryAllocation);
  CHECK(cudaMalloc(&memory, 16) == cudaSuccess);
  CHECK(cudaFree(memory) == cudaSuccess);
  const Stream stream;
  int runs = 0;
  tenon::emulation::fail_next("cudaLaunchKernel", cudaErrorLaunchOutOfResources);
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
  tenon::emulation::fault(cudaErrorIllegalAddress);
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
