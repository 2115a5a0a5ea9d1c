// status.h - what CUDA says, in the socket's words. Host-side logic alone: no function here calls CUDA.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include <tenon/sdk/error.h>

namespace tenon::cuda {

/// The status that a CUDA error stands for.
tenon_status status_of(cudaError_t error);

/// True for errors after which the process can use the device no more, until it is closed and its context made anew: a fault of a kernel,
/// a fault of the hardware.
bool is_sticky(cudaError_t error);

/// "13.0" for 13000.
std::string version_text(int version);

/// What the machine has, as far as it matters for why there is no device.
struct Machine {
  cudaError_t error = cudaSuccess;        ///< of cudaGetDeviceCount
  int driver_version = 0;                 ///< the newest CUDA that the driver speaks; 0: no driver
  int runtime_version = CUDART_VERSION;   ///< the CUDA that this backend was built with
  const char* visible_devices = nullptr;  ///< CUDA_VISIBLE_DEVICES; NULL: not set
};
/// What the backend needs of a machine: a driver and libraries of the major version it was built with.
std::string requirements(int runtime_version);

/// Why there are no devices, and what to do: a sentence.
std::string no_device_reason(const Machine& machine);

/// Throws "<call>: <CUDA's name and words>" for anything but success.
void check(cudaError_t error, const char* call);

}  // namespace tenon::cuda
