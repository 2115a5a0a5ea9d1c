// SPDX-License-Identifier: Apache-2.0
#include "device/status.h"

#include <cudnn_version.h>

namespace tenon::cuda {

tenon_status status_of(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return TENON_OK;
    case cudaErrorMemoryAllocation:
      return TENON_OUT_OF_MEMORY;
    case cudaErrorInvalidValue:
    case cudaErrorInvalidResourceHandle:
    case cudaErrorInvalidDevicePointer:
    case cudaErrorInvalidMemcpyDirection:
      return TENON_INVALID_ARGUMENT;
    case cudaErrorNotReady:
      return TENON_NOT_READY;
    case cudaErrorInvalidDevice:
    case cudaErrorNoDevice:
    case cudaErrorDevicesUnavailable:
      return TENON_DEVICE_NOT_FOUND;
    case cudaErrorInsufficientDriver:
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorUnsupportedPtxVersion:
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return TENON_INCOMPATIBLE;
    case cudaErrorNotSupported:
      return TENON_UNSUPPORTED;
    default:
      return is_sticky(error) ? TENON_DEVICE_LOST : TENON_VENDOR_ERROR;
  }
}

bool is_sticky(cudaError_t error) {
  switch (error) {
    case cudaErrorIllegalAddress:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorIllegalInstruction:
    case cudaErrorHardwareStackError:
    case cudaErrorLaunchFailure:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorMpsClientTerminated:
    case cudaErrorContained:
      return true;
    default:
      return false;
  }
}

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

std::string requirements(int runtime_version) {
  const int major = runtime_version / 1000;
  return "an NVIDIA driver for CUDA " + std::to_string(major) + ".0 or later; for products and BLAS cuBLAS " + std::to_string(major) +
         " (libcublas.so." + std::to_string(major) + "); for convolutions cuDNN " + std::to_string(CUDNN_MAJOR) + " (libcudnn.so." +
         std::to_string(CUDNN_MAJOR) + ")";
}

std::string no_device_reason(const Machine& machine) {
  const std::string built = "this backend was built with CUDA " + version_text(machine.runtime_version);
  const std::string required = "CUDA " + std::to_string(machine.runtime_version / 1000) + ".0 or later";
  if (machine.driver_version == 0) {
    return "no NVIDIA driver (libcuda.so.1) was found, and " + built + ": install a driver for " + required + ", or use another backend";
  }
  const std::string driver = "the NVIDIA driver supports CUDA " + version_text(machine.driver_version);
  if (machine.error == cudaErrorInsufficientDriver || machine.driver_version / 1000 < machine.runtime_version / 1000) {
    return driver + ", " + built + ": update the driver to one for " + required;
  }
  const std::string said = std::string(cudaGetErrorName(machine.error)) + ", " + cudaGetErrorString(machine.error);
  switch (machine.error) {
    case cudaSuccess:
    case cudaErrorNoDevice:
      return driver +
             ", but it serves no GPU here: check what nvidia-smi lists, whether CUDA_VISIBLE_DEVICES hides it and, in a container, whether "
             "it was given the GPUs";
    case cudaErrorNotPermitted:
    case cudaErrorOperatingSystem:
      return driver + ", but its devices cannot be opened (" + said + "): this user must be able to read and write /dev/nvidia*";
    case cudaErrorSystemNotReady:
      return driver + ", but the system is not ready (" + said +
             "): are NVIDIA's services running (nvidia-fabricmanager, where GPUs are linked)?";
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      return driver + ", but its library is not the one of the kernel's driver (" + said +
             "): restart after an update, and keep CUDA's folder `compat` out of LD_LIBRARY_PATH";
    case cudaErrorStubLibrary:
      return "the libcuda.so.1 that was found is a stub for linking (" + said + "): keep CUDA's folder `stubs` out of LD_LIBRARY_PATH";
    case cudaErrorDevicesUnavailable:
      return driver + ", but every GPU is in use by other processes (" + said +
             "): check the processes and the compute mode with nvidia-smi";
    default:
      return driver + ", but counting its devices failed (" + said + "): does nvidia-smi work?";
  }
}

void check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  // Only recurrent layers have cooperative launches.
  const char* const remedy =
      error == cudaErrorCooperativeLaunchTooLarge ? "; backends.options.cuda.recurrent: auto has no such launches" : "";
  throw sdk::Error(status_of(error), std::string(call) + ": " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error) + remedy);
}

}  // namespace tenon::cuda
