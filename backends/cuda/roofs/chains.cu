// SPDX-License-Identifier: Apache-2.0
#include "roofs/chains.cuh"

#include <cooperative_groups.h>

#include "kernel/group_barrier.cuh"
#include "kernel/previous_kernel.cuh"

namespace tenon::cuda {
namespace {

constexpr int threads = 256;

__global__ void empty_kernel() {
  wait_for_previous_kernel();
}

__global__ void barrier_kernel(int count) {
  for (int i = 0; i < count; ++i) cooperative_groups::this_grid().sync();
}

__global__ void group_barrier_kernel(unsigned* counters, int count) {
  unsigned* const counter = counters + blockIdx.x / group_blocks;
  unsigned arrivals = 0;
  for (int i = 0; i < count; ++i) wait_for_group(counter, group_blocks, arrivals);
  leave_group(counter, group_blocks, arrivals);
}

cudaLaunchConfig_t configuration(cudaStream_t stream, int blocks, cudaLaunchAttribute* attributes, unsigned count) {
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(threads);
  config.stream = stream;
  config.attrs = attributes;
  config.numAttrs = count;
  return config;
}

template <class... Parameters>
cudaError_t enqueue_cooperative(cudaStream_t stream, int blocks, void (*kernel)(Parameters...), Parameters... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  const cudaLaunchConfig_t config = configuration(stream, blocks, &attribute, 1);
  return cudaLaunchKernelEx(&config, kernel, arguments...);
}

}  // namespace

cudaError_t enqueue_chain(cudaStream_t stream, int blocks, int length, bool early) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  const cudaLaunchConfig_t config = configuration(stream, blocks, &attribute, early ? 1 : 0);
  for (int i = 0; i < length; ++i) {
    const cudaError_t error = cudaLaunchKernelEx(&config, empty_kernel);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t enqueue_barriers(cudaStream_t stream, int blocks, int count) {
  return enqueue_cooperative(stream, blocks, barrier_kernel, count);
}

cudaError_t enqueue_group_barriers(cudaStream_t stream, unsigned* counters, int groups, int count) {
  return enqueue_cooperative(stream, groups * group_blocks, group_barrier_kernel, counters, count);
}

}  // namespace tenon::cuda
