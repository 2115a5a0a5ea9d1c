// SPDX-License-Identifier: Apache-2.0
// Copies and fills: when they read and write, what is in bounds, and what CUDA rejects.
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "places.h"
#include "state.h"

namespace tenon::emulation {
namespace {

bool agrees(cudaMemcpyKind kind, Place to, Place from) {
  switch (kind) {
    case cudaMemcpyHostToHost:
      return to != Place::device && from != Place::device;
    case cudaMemcpyHostToDevice:
      return to == Place::device && from != Place::device;
    case cudaMemcpyDeviceToHost:
      return to != Place::device && from == Place::device;
    case cudaMemcpyDeviceToDevice:
      return to == Place::device && from == Place::device;
    case cudaMemcpyDefault:
      return true;
  }
  return false;
}

/// The stream's device makes the copy, unless the devices of both operands are named: then it needs no access to either.
/// Source: the CUDA Runtime API's page "API synchronization behavior"; the CUDA C++ Programming Guide, "Stream Ordered Memory Allocator".
enum class Access { stream, named };
cudaError_t copy(void* to, const void* from, std::size_t size_bytes, cudaMemcpyKind kind, cudaStream_t handle,
                 Access access = Access::stream) {
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = find_stream(handle, &stream); error != cudaSuccess) return error;
  if (size_bytes == 0) return cudaSuccess;
  if (to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  const Place to_place = place_of(to), from_place = place_of(from);
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return cudaErrorInvalidMemcpyDirection;
  if (!agrees(kind, to_place, from_place) || !fits(to, size_bytes) || !fits(from, size_bytes)) return cudaErrorInvalidValue;
  for (const void* operand : {static_cast<const void*>(to), from}) {
    if (access == Access::stream && !is_granted(operand, stream->device)) return cudaErrorInvalidValue;
  }
  const auto later = [&](Work work) { return enqueue(stream, {std::move(work), Reach::all, ItemKind::copy}); };
  const bool recorded = stream->capture != nullptr;  // a replay reads the memory at that time
  cudaError_t error = cudaSuccess;
  if (from_place == Place::pageable && !recorded) {
    // The caller may change its memory as soon as the call returns.
    const char* const begin = static_cast<const char*>(from);
    error = later([to, staged = std::vector<char>(begin, begin + size_bytes)] { std::memmove(to, staged.data(), staged.size()); });
  } else {
    error = later([=] { std::memmove(to, from, size_bytes); });
  }
  if (error != cudaSuccess || recorded || to_place != Place::pageable) return error;
  drain(*stream);
  return outcome(stream->device);
}

cudaError_t copy_now(void* to, const void* from, std::size_t size_bytes, cudaMemcpyKind kind) {
  if (const cudaError_t error = refuse_in_capture(); error != cudaSuccess) return error;
  if (const cudaError_t error = copy(to, from, size_bytes, kind, nullptr); error != cudaSuccess) return error;
  drain(*current_device().legacy);
  return outcome(caller().device);
}

/// Memory of the host that CUDA knows is memory of every device.
bool is_memory_of(int device, const void* pointer) {
  return place_of(pointer) == Place::pinned || device_of(pointer) == device;
}

cudaError_t copy_between(void* to, int to_device, const void* from, int from_device, std::size_t size_bytes, cudaStream_t stream) {
  if (!is_device(to_device) || !is_device(from_device)) return cudaErrorInvalidDevice;
  if (size_bytes > 0 && (!is_memory_of(to_device, to) || !is_memory_of(from_device, from))) return cudaErrorInvalidValue;
  return copy(to, from, size_bytes, cudaMemcpyDefault, stream, Access::named);
}

cudaError_t fill(void* to, int value, std::size_t size_bytes, cudaStream_t handle) {
  std::shared_ptr<Stream> stream;
  if (const cudaError_t error = find_stream(handle, &stream); error != cudaSuccess) return error;
  if (size_bytes == 0) return cudaSuccess;
  if (to == nullptr || place_of(to) == Place::pageable || !fits(to, size_bytes)) return cudaErrorInvalidValue;
  return enqueue(stream, {[=] { std::memset(to, value, size_bytes); }, Reach::all, ItemKind::copy});
}

}  // namespace
}  // namespace tenon::emulation

using namespace tenon::emulation;

extern "C" {

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t size_bytes, cudaMemcpyKind kind) {
  return call("cudaMemcpy", [&] { return copy_now(to, from, size_bytes, kind); });
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t size_bytes, cudaMemcpyKind kind, cudaStream_t stream) {
  return call("cudaMemcpyAsync", [&] { return copy(to, from, size_bytes, kind, stream); });
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t size_bytes, cudaStream_t stream) {
  return call("cudaMemcpyPeerAsync", [&] { return copy_between(to, to_device, from, from_device, size_bytes, stream); });
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t size_bytes, cudaStream_t stream) {
  return call("cudaMemsetAsync", [&] { return fill(to, value, size_bytes, stream); });
}

}  // extern "C"
