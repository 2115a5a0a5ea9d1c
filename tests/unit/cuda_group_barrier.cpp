// SPDX-License-Identifier: Apache-2.0
// The barrier among blocks, on the emulation, which runs the blocks of a cooperative launch in turns. Each mutant of a kernel that uses it
// wrongly gives wrong numbers.
#include "backends/cuda/kernel/group_barrier.cuh"

#include <doctest/doctest.h>

#include <vector>

#include "backends/cuda/device/block_counters.h"
#include "backends/cuda/kernel/launch.h"
#include "cuda_emulation.h"
#include "cuda_host.h"
#include "cuda_testing.h"

namespace tenon::cuda {
namespace {

using emulation::testing::Order;

enum class Mutant { none, no_barrier, no_leave };
constexpr int groups = 3, members = 4, rounds = 5, threads = 40;

/// In each round all members of a group store a number, and then each adds up those of all: sums[block] = sum over rounds and members of
/// start + 10 * round + member. Two halves of `numbers` alternate.
template <Mutant mutant>
__global__ void exchange_numbers(int start, unsigned* counters, int* numbers, int* sums) {
  const int group = static_cast<int>(blockIdx.x) / members, member = static_cast<int>(blockIdx.x) % members;
  unsigned arrivals = 0;
  int sum = 0;
  for (int round = 0; round < rounds; ++round) {
    int* const half = numbers + ((round % 2) * groups + group) * members;
    if (threadIdx.x == threads - 1) half[member] = start + 10 * round + member;
    if (mutant == Mutant::no_barrier) {
      __syncthreads();
    } else {
      wait_for_group(counters + group, members, arrivals);
    }
    for (int i = 0; i < members; ++i) sum += half[i];
  }
  if (mutant != Mutant::no_leave) leave_group(counters + group, members, arrivals);
  if (threadIdx.x == 0) sums[blockIdx.x] = sum;
}

struct Bed {
  Bench bench;
  Stream stream{bench.device};
  DeviceBuffer numbers{bench.device, stream, std::vector<int>(2 * groups * members, -1000)};
  DeviceBuffer sums{bench.device, stream, std::vector<int>(groups* members)};

  template <Mutant mutant>
  void launch(int start) {
    launch_cooperative(stream, {groups * members, threads}, exchange_numbers<mutant>, start, block_counters(stream), numbers.at<int>(),
                       sums.at<int>());
  }
  /// What blocks have found by now is right.
  bool right(int start) {
    int expected = 0;
    for (int i = 0; i < rounds * members; ++i) expected += start + 10 * (i / members) + i % members;
    return sums.read<int>(groups * members) == std::vector<int>(groups * members, expected);
  }
};

TEST_CASE("cuda group barrier: after it a block reads what the others of its group have stored, in every launch and order") {
  for (const char* order : {"ascending", "descending", "1", "2"}) {
    CAPTURE(order);
    const Order chosen(order);
    Bed bed;
    for (const int start : {0, 100, 7}) {
      bed.launch<Mutant::none>(start);
      CHECK(bed.right(start));
    }
  }
}

TEST_CASE("cuda group barrier: its counters are 0 after a kernel, and after one that is replayed") {
  Bed bed;
  bed.launch<Mutant::none>(1);
  const auto counters_are_zero = [&](unsigned* counters) {
    std::vector<unsigned> values(groups, 1);
    bed.stream.synchronize();
    REQUIRE(cudaMemcpy(values.data(), counters, groups * sizeof(unsigned), cudaMemcpyDeviceToHost) == cudaSuccess);
    return values == std::vector<unsigned>(groups, 0);
  };
  CHECK(counters_are_zero(block_counters(bed.stream)));
  bed.stream.begin_capture();
  unsigned* const recorded = block_counters(bed.stream);
  bed.launch<Mutant::none>(2);
  const auto capture = bed.stream.end_capture();
  for (int i = 0; i < 2; ++i) {
    capture->replay(bed.stream);
    CHECK(bed.right(2));
    CHECK(counters_are_zero(recorded));
  }
}

TEST_CASE("cuda group barrier: without the barrier, or with a counter that is not reset, the numbers are wrong") {
  Bed without;
  without.launch<Mutant::no_barrier>(1);
  CHECK_FALSE(without.right(1));
  Bed not_reset;
  not_reset.launch<Mutant::no_leave>(1);
  CHECK(not_reset.right(1));  // the first launch
  not_reset.launch<Mutant::no_leave>(2);
  CHECK_FALSE(not_reset.right(2));
}

}  // namespace
}  // namespace tenon::cuda
