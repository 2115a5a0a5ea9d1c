// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>

#include "state.h"

namespace tenon::emulation {
namespace {

/// A number from the environment, or `otherwise`. Read at each call, so that a test can open devices of several kinds.
int number_from(const char* variable, int otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr || *text == '\0' ? otherwise : std::atoi(text);
}
/// Of a block, where it is allowed: 48 KB are allowed in any case.
int max_shared_kilobytes() {
  return number_from("TENON_CUDA_EMULATION_SHARED_KB", 227);
}
/// 10 * major + minor.
int compute_capability() {
  return number_from("TENON_CUDA_EMULATION_CAPABILITY", 90);
}

}  // namespace

bool can_access_peer(int device, int peer) {
  return device != peer && is_device(device) && is_device(peer) && number_from("TENON_CUDA_EMULATION_PEER_ACCESS", 1) != 0;
}

// The attributes of an H100, unless a variable of the environment says less: a kernel that fits there fits here.
cudaError_t device_attribute(int* out_value, cudaDeviceAttr attribute, int device) {
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
    case cudaDevAttrMaxBlockDimX:
    case cudaDevAttrMaxBlockDimY:
      *out_value = 1024;
      break;
    case cudaDevAttrMaxBlockDimZ:
      *out_value = 64;
      break;
    case cudaDevAttrMaxGridDimX:
      *out_value = 2147483647;
      break;
    case cudaDevAttrMaxGridDimY:
    case cudaDevAttrMaxGridDimZ:
      *out_value = 65535;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      *out_value = 48 << 10;
      break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      *out_value = max_shared_kilobytes() << 10;
      break;
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      *out_value = (max_shared_kilobytes() + 1) << 10;
      break;
    case cudaDevAttrTotalConstantMemory:
      *out_value = 64 << 10;
      break;
    case cudaDevAttrWarpSize:
      *out_value = 32;
      break;
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      *out_value = 65536;
      break;
    case cudaDevAttrClockRate:
      *out_value = 1980000;
      break;
    case cudaDevAttrMemoryClockRate:
      *out_value = 2619000;
      break;
    case cudaDevAttrGlobalMemoryBusWidth:
      *out_value = 5120;
      break;
    case cudaDevAttrL2CacheSize:
      *out_value = 50 << 20;
      break;
    case cudaDevAttrMultiProcessorCount:
      *out_value = number_from("TENON_CUDA_EMULATION_MULTIPROCESSORS", 132);
      break;
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      *out_value = 2048;
      break;
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      *out_value = 32;
      break;
    case cudaDevAttrComputeCapabilityMajor:
      *out_value = compute_capability() / 10;
      break;
    case cudaDevAttrComputeCapabilityMinor:
      *out_value = compute_capability() % 10;
      break;
    case cudaDevAttrCooperativeLaunch:
      *out_value = number_from("TENON_CUDA_EMULATION_COOPERATIVE", 1);
      break;
    case cudaDevAttrAsyncEngineCount:
      *out_value = 3;
      break;
    case cudaDevAttrPciBusId:
      *out_value = device + 1;
      break;
    case cudaDevAttrConcurrentKernels:
    case cudaDevAttrCanMapHostMemory:
    case cudaDevAttrUnifiedAddressing:
    case cudaDevAttrStreamPrioritiesSupported:
    case cudaDevAttrMemoryPoolsSupported:
    case cudaDevAttrHostRegisterSupported:
    case cudaDevAttrHostRegisterReadOnlySupported:
    case cudaDevAttrCanUseHostPointerForRegisteredMem:
      *out_value = 1;
      break;
    case cudaDevAttrPciDeviceId:
    case cudaDevAttrPciDomainId:
    case cudaDevAttrIntegrated:
    case cudaDevAttrEccEnabled:
    case cudaDevAttrManagedMemory:
    case cudaDevAttrConcurrentManagedAccess:
    case cudaDevAttrPageableMemoryAccess:
    case cudaDevAttrHostNativeAtomicSupported:
    case cudaDevAttrComputeMode:
    case cudaDevAttrKernelExecTimeout:
    case cudaDevAttrClusterLaunch:
      *out_value = 0;
      break;
    default:
      return cudaErrorInvalidValue;
  }
  return cudaSuccess;
}

}  // namespace tenon::emulation
