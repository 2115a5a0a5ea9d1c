// SPDX-License-Identifier: Apache-2.0
// launch.h - kernel launches. This file and dynamic_shared.cuh are the only ones that differ when the sources are compiled for the host
// (tests/cuda_emulation).
#pragma once

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <type_traits>

#include <tenon/sdk/kernel.h>

#include "device/device.h"
#include "device/options.h"

namespace tenon::cuda {

struct Geometry {
  std::int64_t blocks = 0;       ///< 0: nothing is launched
  int threads = 256;             ///< of a block
  std::size_t shared_bytes = 0;  ///< dynamic shared memory of a block
};

/// The geometry of a grid-stride loop over `items`: at most as many blocks as the device holds at once.
inline Geometry grid_stride(const Device& device, std::int64_t items, int threads = 256) {
  const std::int64_t resident = std::int64_t{device.multiprocessors()} * (2048 / threads);
  return {std::min((items + threads - 1) / threads, resident), threads};
}

/// The geometry of a grid with a thread for each of `items`, as long as a grid has so many blocks; a grid-stride loop takes the rest. Where
/// a block needs no preparation the memory is 5 % busier than with the blocks that the device holds at once: these end at the same time.
inline Geometry one_thread_each(std::int64_t items, int threads = 256) {
  return {std::min<std::int64_t>((items + threads - 1) / threads, std::numeric_limits<std::int32_t>::max()), threads};
}

inline Stream& stream_of(const sdk::Call& call) {
  return static_cast<Stream&>(sdk::stream_of(call.stream));
}

namespace detail {

/// The launch of all kernels, with these attributes.
template <class... Parameters>
void launch_with(std::span<cudaLaunchAttribute> attributes, Stream& stream, Geometry geometry, void (*kernel)(Parameters...),
                 Parameters&... arguments) {
  static_assert((sizeof(Parameters) + ... + 0) <= 32764, "a kernel cannot have so many bytes of parameters");
  if (geometry.blocks == 0) return;
  Device& device = stream.device();
  device.enter();
  const dim3 grid(static_cast<unsigned>(geometry.blocks)), block(static_cast<unsigned>(geometry.threads));
  const void* const code = reinterpret_cast<const void*>(kernel);
  if (geometry.shared_bytes > 0) device.allow_shared(code);
#ifdef TENON_CUDA_EMULATION
  const auto enqueue = attributes.empty()                                   ? &emulation::launch
                       : attributes[0].id == cudaLaunchAttributeCooperative ? &emulation::launch_cooperative
                                                                            : &emulation::launch_early;
  enqueue(stream.handle(), grid, block, [=] { kernel(arguments...); }, {geometry.shared_bytes, code});
  device.check(cudaGetLastError(), "cudaLaunchKernel");
#else
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = geometry.shared_bytes;
  config.stream = stream.handle();
  config.attrs = attributes.data();
  config.numAttrs = static_cast<unsigned>(attributes.size());
  void* pointers[] = {static_cast<void*>(&arguments)..., nullptr};  // never of size 0
  device.check(cudaLaunchKernelExC(&config, code, pointers), "cudaLaunchKernel");
#endif
}

}  // namespace detail

/// Enqueues kernel(arguments...) on a stream.
/// Errors  those of the launch; errors during execution are reported when the stream is synchronized.
template <class... Parameters>
void launch(Stream& stream, Geometry geometry, void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  detail::launch_with({}, stream, geometry, kernel, arguments...);
}

/// As launch(), for a kernel whose blocks wait for each other (kernel/group_barrier.cuh): all of them run at once, whatever other streams
/// do. Recorded graphs keep this.
/// Errors  also those of a device without Device::cooperative(), and of more blocks than its multiprocessors hold at once: check() names
/// the option without such launches.
///
/// Source  CUDA C++ Programming Guide, "Grid Synchronization"
template <class... Parameters>
void launch_cooperative(Stream& stream, Geometry geometry, void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  detail::launch_with({&attribute, 1}, stream, geometry, kernel, arguments...);
}

/// Whether kernels of a device are launched early: if the user has asked for it, the GPU can, and the machine code was compiled for GPUs
/// that can, since the wait of other code does nothing. Attached to a device, which asks the first kernel.
struct EarlyLaunches {
  bool enabled;
  EarlyLaunches(const Options& options, Device& device, const void* kernel)
      : enabled(options.programmatic_launch && device.compute_capability() >= 90) {
    if (!enabled) return;
    device.enter();
    cudaFuncAttributes attributes{};
    device.check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
    enabled = attributes.ptxVersion >= 90;
  }
};

/// As launch(), for a kernel whose threads all call wait_for_previous_kernel() before they access global memory: its blocks may be started
/// while the kernel before it still runs, so that the next launch takes less time. Recorded graphs keep this.
///
/// Source  CUDA C++ Programming Guide, "Programmatic Dependent Launch and Synchronization"
template <class... Parameters>
void launch_early(Stream& stream, Geometry geometry, void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  Device& device = stream.device();
  const bool early = device.attached.get<EarlyLaunches>(options_of(device), device, reinterpret_cast<const void*>(kernel)).enabled;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  detail::launch_with({&attribute, early ? 1u : 0u}, stream, geometry, kernel, arguments...);
}

/// Enqueues a kernel that was compiled at run time. `pointers`: to its arguments, in order.
inline void launch_compiled(Stream& stream, Geometry geometry, const void* kernel, void** pointers) {
  if (geometry.blocks == 0) return;
  stream.device().enter();
#ifdef TENON_CUDA_EMULATION
  static_cast<void>(kernel), static_cast<void>(pointers);
  throw sdk::Error(TENON_INTERNAL, "the emulation runs no machine code");
#else
  const dim3 grid(static_cast<unsigned>(geometry.blocks)), block(static_cast<unsigned>(geometry.threads));
  stream.device().check(cudaLaunchKernel(kernel, grid, block, pointers, 0, stream.handle()), "cudaLaunchKernel");
#endif
}

/// Enqueues a kernel with a grid-stride loop over `items`.
template <class... Parameters>
void launch_over(Stream& stream, std::int64_t items, void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  launch(stream, one_thread_each(items), kernel, arguments...);
}
template <class... Parameters>
void launch_over(const sdk::Call& call, std::int64_t items, void (*kernel)(Parameters...), std::type_identity_t<Parameters>... arguments) {
  launch_over(stream_of(call), items, kernel, arguments...);
}

}  // namespace tenon::cuda
