// SPDX-License-Identifier: Apache-2.0
#include "conv/random_fill.h"

#include "kernel/dispatch.h"
#include "kernel/launch.h"
#include "kernel/thread_index.cuh"
#include "kernel/wide.cuh"

namespace tenon::cuda {
namespace {

/// Source  Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators (2014), the finalizer of SplitMix
__device__ std::uint64_t mixed(std::uint64_t z) {
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
  z = (z ^ z >> 27) * 0x94d049bb133111ebu;
  return z ^ z >> 31;
}

template <class T>
__global__ void fill_kernel(std::int64_t count, std::uint64_t first, T* memory) {
  for (std::int64_t i = thread_index(); i < count; i += thread_count()) {
    const auto bits = static_cast<std::int32_t>(mixed((first + static_cast<std::uint64_t>(i)) * 0x9e3779b97f4a7c15u) >> 40);
    memory[i] = narrow<T>(static_cast<Wide<T>>(bits) * static_cast<Wide<T>>(0x1p-23) - 1);
  }
}

}  // namespace

void fill_random(Stream& stream, tenon_dtype dtype, std::int64_t count, std::uint32_t seed, void* memory) {
  const std::uint64_t first = (std::uint64_t{seed} << 40) + 1;
  dispatch_floating(dtype, [&]<class T>() { launch_over(stream, count, fill_kernel<T>, count, first, static_cast<T*>(memory)); });
}

}  // namespace tenon::cuda
