// SPDX-License-Identifier: Apache-2.0
// CUDA errors as messages and statuses of the plugin ABI; no CUDA call is made here.
#include "backends/cuda/device/status.h"

#include <doctest/doctest.h>

#include <string>

#include "cuda_testing.h"

namespace tenon::cuda {
namespace {

std::string reason(cudaError_t error, int driver_version = 13000) {
  return no_device_reason({.error = error, .driver_version = driver_version, .runtime_version = 13000});
}

TEST_CASE("cuda status: without a driver the message has its library, the version and the remedy") {
  CHECK(reason(cudaErrorInsufficientDriver, 0) ==
        "no NVIDIA driver (libcuda.so.1) was found, and this backend was built with CUDA 13.0: install a driver for CUDA 13.0 or later, or "
        "use "
        "another backend");
}

TEST_CASE("cuda status: a driver that is too old is distinguished from none, with both versions") {
  CHECK(reason(cudaErrorInsufficientDriver, 11020) ==
        "the NVIDIA driver supports CUDA 11.2, this backend was built with CUDA 13.0: update the driver to one for CUDA 13.0 or later");
  CHECK(contains(reason(cudaErrorNoDevice, 12090), "supports CUDA 12.9"));  // an older major version is too old, whatever the device count
}

TEST_CASE("cuda status: a driver of the same major version is never called too old") {
  CHECK_FALSE(contains(no_device_reason({.error = cudaErrorNoDevice, .driver_version = 13000, .runtime_version = 13020}), "update"));
}

TEST_CASE("cuda status: where no GPU is found, all that hides one is named") {
  for (const cudaError_t error : {cudaErrorNoDevice, cudaSuccess}) {
    for (const char* const part : {"nvidia-smi", "CUDA_VISIBLE_DEVICES", "container"}) CHECK(contains(reason(error), part));
  }
}

TEST_CASE("cuda status: each distinguishable cause has its own remedy") {
  CHECK(contains(reason(cudaErrorOperatingSystem), "/dev/nvidia*"));
  CHECK(contains(reason(cudaErrorSystemNotReady), "nvidia-fabricmanager"));
  CHECK(contains(reason(cudaErrorSystemDriverMismatch), "`compat`"));
  CHECK(contains(reason(cudaErrorStubLibrary), "`stubs`"));
  CHECK(contains(reason(cudaErrorDevicesUnavailable), "in use by other processes"));
  CHECK(contains(reason(cudaErrorUnknown), "cudaErrorUnknown"));
}

TEST_CASE("cuda status: requirements name the major version of the build") {
  CHECK(requirements(13020) ==
        "an NVIDIA driver for CUDA 13.0 or later; for products and BLAS cuBLAS 13 (libcublas.so.13); "
        "for convolutions cuDNN 9 (libcudnn.so.9)");
}

TEST_CASE("cuda status: an error has CUDA's name and the failed call") {
  std::string text;
  tenon_status status = TENON_OK;
  try {
    check(cudaErrorIllegalAddress, "cudaStreamSynchronize");
  } catch (const sdk::Error& error) {
    text = error.what();
    status = error.status();
  }
  CHECK(status == TENON_DEVICE_LOST);
  CHECK(contains(text, "cudaStreamSynchronize: cudaErrorIllegalAddress, "));
  CHECK_NOTHROW(check(cudaSuccess, "cudaFree"));
}

TEST_CASE("cuda status: the error of a cooperative launch that does not fit names the option without such launches") {
  const auto text_of = [](cudaError_t error) {
    try {
      check(error, "cudaLaunchKernel");
    } catch (const sdk::Error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(contains(text_of(cudaErrorCooperativeLaunchTooLarge), "backends.options.cuda.recurrent: auto"));
  CHECK_FALSE(contains(text_of(cudaErrorInvalidValue), "recurrent"));
}

TEST_CASE("cuda status: kernel faults make the device unusable, invalid calls do not") {
  for (const cudaError_t error : {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorECCUncorrectable}) {
    CHECK(is_sticky(error));
    CHECK(status_of(error) == TENON_DEVICE_LOST);
  }
  CHECK_FALSE(is_sticky(cudaErrorMemoryAllocation));
  CHECK(status_of(cudaErrorMemoryAllocation) == TENON_OUT_OF_MEMORY);
  CHECK(status_of(cudaErrorInvalidDevice) == TENON_DEVICE_NOT_FOUND);
  CHECK(status_of(cudaErrorInsufficientDriver) == TENON_INCOMPATIBLE);
  CHECK(status_of(cudaErrorNoKernelImageForDevice) == TENON_INCOMPATIBLE);
  CHECK(status_of(cudaErrorInvalidValue) == TENON_INVALID_ARGUMENT);
  CHECK(status_of(cudaErrorUnknown) == TENON_VENDOR_ERROR);
}

}  // namespace
}  // namespace tenon::cuda
