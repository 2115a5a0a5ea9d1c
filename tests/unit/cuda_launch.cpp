// SPDX-License-Identifier: Apache-2.0
// Launches of kernels with dynamic shared memory, on the emulation, which checks its limits as CUDA does.
#include "backends/cuda/kernel/launch.h"

#include <doctest/doctest.h>

#include <vector>

#include "backends/cuda/kernel/dynamic_shared.cuh"
#include "backends/cuda/kernel/previous_kernel.cuh"
#include "cuda_host.h"
#include "cuda_testing.h"

namespace tenon::cuda {
namespace {

constexpr int large = 200 << 10, small = 60 << 10;

/// x = the number of `bytes` of dynamic shared memory that keep what is written to them.
__global__ void count_shared(int bytes, int* x) {
  wait_for_previous_kernel();
  char* const shared = dynamic_shared();
  for (int i = 0; i < bytes; ++i) shared[i] = static_cast<char>(i % 100);
  int count = 0;
  for (int i = 0; i < bytes; ++i) count += shared[i] == static_cast<char>(i % 100) ? 1 : 0;
  *x = count;
}

TEST_CASE("cuda launch: launches of a kernel with more and with less shared memory do not disturb each other") {
  Bench bench;
  Stream stream(bench.device);
  DeviceBuffer x(bench.device, stream, std::vector<int>(2));
  stream.begin_capture();
  launch(stream, {1, 1, large}, count_shared, large, x.at<int>());
  launch(stream, {1, 1, small}, count_shared, small, x.at<int>(sizeof(int)));
  const auto capture = stream.end_capture();
  launch(stream, {1, 1, small}, count_shared, small, x.at<int>());
  capture->replay(stream);
  CHECK(x.read<int>(2) == std::vector<int>{large, small});
}

TEST_CASE("cuda launch: a kernel that is launched early has dynamic shared memory, too") {
  for (const char* const programmatic_launch : {"off", "on"}) {
    Bench bench("programmatic_launch", programmatic_launch);
    Stream stream(bench.device);
    DeviceBuffer x(bench.device, stream, std::vector<int>(2));
    launch_early(stream, {1, 1, 64}, count_shared, 64, x.at<int>());
    launch_early(stream, {1, 1, large}, count_shared, large, x.at<int>(sizeof(int)));
    CHECK(x.read<int>(2) == std::vector<int>{64, large});
  }
}

}  // namespace
}  // namespace tenon::cuda
