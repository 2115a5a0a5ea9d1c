// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstring>

#include "state.h"

using namespace tenon::emulation;

extern "C" {

cudaError_t cudaDriverGetVersion(int* out_version) {
  if (out_version == nullptr) return cudaErrorInvalidValue;
  *out_version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceCount(int* out_count) {
  return call(
      "cudaGetDeviceCount",
      [&] {
        *out_count = static_cast<int>(state().devices.size());
        return *out_count == 0 ? cudaErrorNoDevice : cudaSuccess;
      },
      Lost::allows);
}

cudaError_t cudaSetDevice(int device) {
  return call(
      "cudaSetDevice",
      [&] {
        if (state().devices.empty()) return cudaErrorNoDevice;
        if (!is_device(device)) return cudaErrorInvalidDevice;
        caller().device = device;
        return current_device().lost;
      },
      Lost::allows);
}
cudaError_t cudaGetDevice(int* out_device) {
  return call(
      "cudaGetDevice",
      [&] {
        *out_device = caller().device;
        return state().devices.empty() ? cudaErrorNoDevice : cudaSuccess;
      },
      Lost::allows);
}

cudaError_t cudaDeviceReset() {
  return call(
      "cudaDeviceReset",
      [&] {
        if (state().devices.empty()) return cudaErrorNoDevice;
        const int device = caller().device;
        Device& d = current_device();
        for (const auto& capture : std::vector(state().captures)) {
          if (capture->origin->device == device) {
            for (const auto& member : capture->members) member->capture = nullptr;
            std::erase(state().captures, capture);
          }
        }
        for (const auto& stream : d.streams) {
          stream->queue.clear();
          stream->executed = stream->enqueued;
        }
        std::erase_if(d.streams, [](const auto& stream) { return !stream->legacy; });
        state().streams.remove_if([&](const Stream& stream) { return stream.device == device; });
        state().events.remove_if([&](const Event& event) { return event.device == device; });
        forget_memory(device);
        d.pending_fault = d.lost = cudaSuccess;
        caller().last_error = cudaSuccess;
        return cudaSuccess;
      },
      Lost::allows);
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* out_properties, int device) {
  return call(
      "cudaGetDeviceProperties",
      [&] {
        if (out_properties == nullptr) return cudaErrorInvalidValue;
        if (!is_device(device)) return cudaErrorInvalidDevice;
        const auto attribute = [device](cudaDeviceAttr which) {
          int value = 0;
          device_attribute(&value, which, device);
          return value;
        };
        cudaDeviceProp& p = *out_properties;
        p = {};
        std::snprintf(p.name, sizeof p.name, "CUDA emulation on the host (tests)");
        std::memcpy(p.uuid.bytes, "tenon-emulation", 15);
        p.uuid.bytes[15] = static_cast<char>(device);
        p.totalGlobalMem = device_memory_bytes(device);
        p.sharedMemPerBlock = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlock));
        p.sharedMemPerBlockOptin = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
        p.sharedMemPerMultiprocessor = static_cast<std::size_t>(attribute(cudaDevAttrMaxSharedMemoryPerMultiprocessor));
        p.regsPerBlock = attribute(cudaDevAttrMaxRegistersPerBlock);
        p.regsPerMultiprocessor = attribute(cudaDevAttrMaxRegistersPerMultiprocessor);
        p.warpSize = attribute(cudaDevAttrWarpSize);
        p.maxThreadsPerBlock = attribute(cudaDevAttrMaxThreadsPerBlock);
        p.maxThreadsDim[0] = attribute(cudaDevAttrMaxBlockDimX);
        p.maxThreadsDim[1] = attribute(cudaDevAttrMaxBlockDimY);
        p.maxThreadsDim[2] = attribute(cudaDevAttrMaxBlockDimZ);
        p.maxGridSize[0] = attribute(cudaDevAttrMaxGridDimX);
        p.maxGridSize[1] = attribute(cudaDevAttrMaxGridDimY);
        p.maxGridSize[2] = attribute(cudaDevAttrMaxGridDimZ);
        p.totalConstMem = static_cast<std::size_t>(attribute(cudaDevAttrTotalConstantMemory));
        p.major = attribute(cudaDevAttrComputeCapabilityMajor);
        p.minor = attribute(cudaDevAttrComputeCapabilityMinor);
        p.multiProcessorCount = attribute(cudaDevAttrMultiProcessorCount);
        p.maxThreadsPerMultiProcessor = attribute(cudaDevAttrMaxThreadsPerMultiProcessor);
        p.maxBlocksPerMultiProcessor = attribute(cudaDevAttrMaxBlocksPerMultiprocessor);
        p.l2CacheSize = attribute(cudaDevAttrL2CacheSize);
        p.memoryBusWidth = attribute(cudaDevAttrGlobalMemoryBusWidth);
        p.asyncEngineCount = attribute(cudaDevAttrAsyncEngineCount);
        p.canMapHostMemory = p.unifiedAddressing = p.concurrentKernels = p.memoryPoolsSupported = p.hostRegisterSupported =
            p.streamPrioritiesSupported = p.canUseHostPointerForRegisteredMem = 1;
        p.pciBusID = attribute(cudaDevAttrPciBusId);
        return cudaSuccess;
      },
      Lost::allows);
}

cudaError_t cudaDeviceGetAttribute(int* out_value, cudaDeviceAttr attribute, int device) {
  return call(
      "cudaDeviceGetAttribute",
      [&] {
        if (out_value == nullptr) return cudaErrorInvalidValue;
        return is_device(device) ? device_attribute(out_value, attribute, device) : cudaErrorInvalidDevice;
      },
      Lost::allows);
}

cudaError_t cudaDeviceCanAccessPeer(int* out_can_access, int device, int peer) {
  return call(
      "cudaDeviceCanAccessPeer",
      [&] {
        if (out_can_access == nullptr) return cudaErrorInvalidValue;
        if (!is_device(device) || !is_device(peer)) return cudaErrorInvalidDevice;
        *out_can_access = can_access_peer(device, peer) ? 1 : 0;
        return cudaSuccess;
      },
      Lost::allows);
}

cudaError_t cudaDeviceGetPCIBusId(char* out_id, int length, int device) {
  return call(
      "cudaDeviceGetPCIBusId",
      [&] {
        if (!is_device(device)) return cudaErrorInvalidDevice;
        if (out_id == nullptr || length < 13) return cudaErrorInvalidValue;
        std::snprintf(out_id, static_cast<std::size_t>(length), "0000:%02X:00.0", static_cast<unsigned>(device + 1));
        return cudaSuccess;
      },
      Lost::allows);
}

}  // extern "C"
