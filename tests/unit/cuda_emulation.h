// SPDX-License-Identifier: Apache-2.0
// cuda_emulation.h - what the tests of the CUDA emulation share: handles that are destroyed, memory, recordings, processes that end.
#pragma once

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "emulation.h"

namespace tenon::emulation::testing {

/// The order of threads and blocks during its lifetime.
struct Order {
  explicit Order(const char* order) { set_order(order); }
  ~Order() { set_order("ascending"); }
};

/// A stream that does not synchronise with the default stream.
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

/// Memory of the device, or pinned memory of the host.
template <class T>
struct Buffer {
  explicit Buffer(std::size_t n, bool is_pinned = false) : pinned(is_pinned), size(n) {
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
  return Buffer<T>(n, true);
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

/// 0, 1, ... n - 1
inline std::vector<int> counted(int n) {
  std::vector<int> values(static_cast<std::size_t>(n));
  std::iota(values.begin(), values.end(), 0);
  return values;
}

}  // namespace tenon::emulation::testing
