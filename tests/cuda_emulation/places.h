// SPDX-License-Identifier: Apache-2.0
// places.h - where the memory at an address is.
#pragma once

#include <cstddef>

namespace tenon::emulation {

/// Device memory, memory of the host from cudaHostAlloc or registered, or other memory.
enum class Place { device, pinned, pageable };
Place place_of(const void* pointer);
/// True if so many bytes from the address on are within one allocation; always true for pageable memory, which the emulation does not know.
bool fits(const void* pointer, std::size_t size_bytes);

/// The device whose memory is at an address; -1 for memory of the host.
int device_of(const void* pointer);
/// False for memory of a pool of another device that has not granted this one access to it (cudaMemPoolSetAccess).
bool is_granted(const void* pointer, int device);

}  // namespace tenon::emulation
