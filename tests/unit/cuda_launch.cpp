// SPDX-License-Identifier: Apache-2.0
// Launches of kernels with dynamic shared memory, on the emulation, which checks its limits as CUDA does.
#include "backends/cuda/kernel/launch.h"

#include <doctest/doctest.h>

#include <vector>

#include "backends/cuda/kernel/dynamic_shared.cuh"
#include "cuda_host.h"
#include "cuda_testing.h"

namespace tenon::cuda {
namespace {

constexpr int large = 200 << 10, small = 60 << 10;

/// x = the number of `bytes` of dynamic shared memory that keep what is written to them.
__global__ void count_shared(int bytes, int* x) {
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

}  // namespace
}  // namespace tenon::cuda
