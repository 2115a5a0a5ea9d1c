// SPDX-License-Identifier: Apache-2.0
#include "device/machine_code.h"

#include "device/status.h"

namespace tenon::cuda {
namespace {

/// Compiled for the same architectures as all kernels.
__global__ void any_kernel() {}

}  // namespace

void check_machine_code(Device& device) {
  device.enter();
  cudaFuncAttributes attributes{};
  const cudaError_t error = cudaFuncGetAttributes(&attributes, reinterpret_cast<const void*>(&any_kernel));
  if (error != cudaErrorNoKernelImageForDevice && error != cudaErrorUnsupportedPtxVersion && error != cudaErrorInvalidDeviceFunction) {
    device.check(error, "cudaFuncGetAttributes");
    return;
  }
  cudaGetLastError();  // clears it
  const int major = device.compute_capability() / 10, minor = device.compute_capability() % 10;
  throw sdk::Error(TENON_INCOMPATIBLE, "the GPU has compute capability " + std::to_string(major) + "." + std::to_string(minor) +
                                           ", and this build of the backend has no code for it (" + cudaGetErrorName(error) +
                                           "); build it with -DTENON_CUDA_ARCHITECTURES=" + std::to_string(device.compute_capability()) +
                                           ", or update the driver");
}

}  // namespace tenon::cuda
