// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

namespace {

struct Name {
  cudaError_t error;
  const char* name;
  const char* words;
};

#define TENON_NAMED(error, words) \
  { error, #error, words }
constexpr Name names[] = {
    TENON_NAMED(cudaSuccess, "no error"),
    TENON_NAMED(cudaErrorInvalidValue, "invalid argument"),
    TENON_NAMED(cudaErrorMemoryAllocation, "out of memory"),
    TENON_NAMED(cudaErrorInitializationError, "initialization error"),
    TENON_NAMED(cudaErrorInvalidConfiguration, "invalid configuration argument"),
    TENON_NAMED(cudaErrorInvalidMemcpyDirection, "invalid copy direction for memcpy"),
    TENON_NAMED(cudaErrorInsufficientDriver, "CUDA driver version is insufficient for CUDA runtime version"),
    TENON_NAMED(cudaErrorDevicesUnavailable, "CUDA-capable device(s) is/are busy or unavailable"),
    TENON_NAMED(cudaErrorNoDevice, "no CUDA-capable device is detected"),
    TENON_NAMED(cudaErrorInvalidDevice, "invalid device ordinal"),
    TENON_NAMED(cudaErrorNoKernelImageForDevice, "no kernel image is available for execution on the device"),
    TENON_NAMED(cudaErrorECCUncorrectable, "uncorrectable ECC error encountered"),
    TENON_NAMED(cudaErrorUnsupportedPtxVersion, "the provided PTX was compiled with an unsupported toolchain"),
    TENON_NAMED(cudaErrorOperatingSystem, "OS call failed or operation not supported on this OS"),
    TENON_NAMED(cudaErrorInvalidResourceHandle, "invalid resource handle"),
    TENON_NAMED(cudaErrorIllegalState, "the operation cannot be performed in the present state"),
    TENON_NAMED(cudaErrorNotReady, "device not ready"),
    TENON_NAMED(cudaErrorIllegalAddress, "an illegal memory access was encountered"),
    TENON_NAMED(cudaErrorLaunchOutOfResources, "too many resources requested for launch"),
    TENON_NAMED(cudaErrorLaunchTimeout, "the launch timed out and was terminated"),
    TENON_NAMED(cudaErrorPeerAccessAlreadyEnabled, "peer access is already enabled"),
    TENON_NAMED(cudaErrorPeerAccessNotEnabled, "peer access has not been enabled"),
    TENON_NAMED(cudaErrorAssert, "device-side assert triggered"),
    TENON_NAMED(cudaErrorHostMemoryAlreadyRegistered, "part or all of the requested memory range is already mapped"),
    TENON_NAMED(cudaErrorHostMemoryNotRegistered, "pointer does not correspond to a registered memory region"),
    TENON_NAMED(cudaErrorHardwareStackError, "hardware stack error"),
    TENON_NAMED(cudaErrorIllegalInstruction, "an illegal instruction was encountered"),
    TENON_NAMED(cudaErrorMisalignedAddress, "misaligned address"),
    TENON_NAMED(cudaErrorInvalidAddressSpace, "operation not supported on global/shared address space"),
    TENON_NAMED(cudaErrorInvalidPc, "invalid program counter"),
    TENON_NAMED(cudaErrorLaunchFailure, "unspecified launch failure"),
    TENON_NAMED(cudaErrorNotPermitted, "operation not permitted"),
    TENON_NAMED(cudaErrorNotSupported, "operation not supported"),
    TENON_NAMED(cudaErrorSystemDriverMismatch, "system has unsupported display driver / cuda driver combination"),
    TENON_NAMED(cudaErrorStreamCaptureUnsupported, "operation not permitted when stream is capturing"),
    TENON_NAMED(cudaErrorStreamCaptureInvalidated, "operation failed due to a previous error during capture"),
    TENON_NAMED(cudaErrorStreamCaptureMerge, "operation would result in a merge of separate capture sequences"),
    TENON_NAMED(cudaErrorStreamCaptureUnmatched, "capture was not ended in the same stream as it began"),
    TENON_NAMED(cudaErrorStreamCaptureUnjoined, "capturing stream has unjoined work"),
    TENON_NAMED(cudaErrorStreamCaptureIsolation, "dependency created on uncaptured work in another stream"),
    TENON_NAMED(cudaErrorStreamCaptureImplicit, "operation would make the legacy stream depend on a capturing blocking stream"),
    TENON_NAMED(cudaErrorCapturedEvent, "operation not permitted on an event last recorded in a capturing stream"),
    TENON_NAMED(cudaErrorStreamCaptureWrongThread, "attempt to terminate a thread-local capture sequence from another thread"),
    TENON_NAMED(cudaErrorUnknown, "unknown error"),
};
#undef TENON_NAMED

constexpr const char* unknown = "unrecognized error code";

}  // namespace

extern "C" {

const char* cudaGetErrorName(cudaError_t error) {
  for (const Name& name : names) {
    if (name.error == error) return name.name;
  }
  return unknown;
}
const char* cudaGetErrorString(cudaError_t error) {
  for (const Name& name : names) {
    if (name.error == error) return name.words;
  }
  return unknown;
}

}  // extern "C"
