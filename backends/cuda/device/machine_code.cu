// SPDX-License-Identifier: Apache-2.0
#include "device/machine_code.h"

#include <string>

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
  const int major = device.compute_capability() / 10, minor = device.compute_capability() % 10;
  const std::string gpu = "the GPU has compute capability " + std::to_string(major) + "." + std::to_string(minor) +
                          ", for which this build has ",
                    rebuild = "build it with -DTENON_CUDA_ARCHITECTURES=" + std::to_string(device.compute_capability()),
                    name = std::string(" (") + cudaGetErrorName(error) + "); ";
  switch (error) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
      cudaGetLastError();  // clears it
      throw sdk::Error(TENON_INCOMPATIBLE, gpu + "no code" + name + rebuild);
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorInvalidPtx:
    case cudaErrorJitCompilerNotFound:
    case cudaErrorJitCompilationDisabled:
      cudaGetLastError();
      throw sdk::Error(TENON_INCOMPATIBLE, gpu + "only PTX, which the driver does not compile" + name + "update the driver, or " + rebuild);
    default:
      device.check(error, "cudaFuncGetAttributes");
  }
}

}  // namespace tenon::cuda
