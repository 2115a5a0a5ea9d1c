// SPDX-License-Identifier: Apache-2.0
// status.h - CUDA errors as statuses of the plugin ABI. Host side: no function here calls CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include <tenon/sdk/error.h>

namespace tenon::cuda {

/// The ABI status of a CUDA error.
tenon_status status_of(cudaError_t error);

/// True for kernel and hardware faults after which the process cannot use the device until it is closed and its context is recreated.
bool is_sticky(cudaError_t error);

/// "13.0" for 13000.
std::string version_text(int version);

/// The facts about a machine that explain why there is no device.
struct Machine {
  cudaError_t error = cudaSuccess;       ///< result of cudaGetDeviceCount
  int driver_version = 0;                ///< the newest CUDA version that the driver supports; 0: no driver
  int runtime_version = CUDART_VERSION;  ///< the CUDA version that this backend was built with
};
/// The requirements of the backend: a driver and libraries of the major version it was built with.
std::string requirements(int runtime_version);

/// Why there are no devices, and the remedy, as one sentence.
std::string no_device_reason(const Machine& machine);

/// Throws "<call>: <CUDA's error name and description>" unless `error` is success.
void check(cudaError_t error, const char* call);

}  // namespace tenon::cuda
