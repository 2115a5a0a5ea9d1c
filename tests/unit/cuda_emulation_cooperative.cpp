// SPDX-License-Identifier: Apache-2.0
// Cooperative launches on the emulation: blocks that wait for each other, and launches that are rejected.
#include "cuda_emulation.h"

#include <cstdlib>

namespace tenon::emulation::testing {
namespace {

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
                       unsigned& own = *reinterpret_cast<unsigned*>(dynamic_shared());
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

}  // namespace
}  // namespace tenon::emulation::testing
