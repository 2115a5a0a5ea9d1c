// SPDX-License-Identifier: Apache-2.0
// Threads of a block on the emulation: barriers, shuffles, votes, and blocks that deadlock.
#include "cuda_emulation.h"

#include <algorithm>

namespace tenon::emulation::testing {
namespace {

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

}  // namespace
}  // namespace tenon::emulation::testing
