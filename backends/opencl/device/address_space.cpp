// SPDX-License-Identifier: Apache-2.0
#include "device/address_space.h"

#include <string>

namespace tenon::opencl {

AddressSpace& AddressSpace::shared() {
  static AddressSpace* const space = new AddressSpace;
  return *space;
}

std::uint64_t AddressSpace::add(Device& owner, cl_mem buffer, std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t address = next_;
  ranges_.emplace(address, Range{buffer, size_bytes, &owner});
  next_ += (size_bytes + 2 * gap - 1) / gap * gap;  // at least one gap between buffers: an address past the end is of no other buffer
  return address;
}

cl_mem AddressSpace::remove(std::uint64_t address) {
  const std::lock_guard lock(mutex_);
  const auto at = ranges_.find(address);
  if (at == ranges_.end()) throw sdk::Error(TENON_INVALID_ARGUMENT, "no buffer begins at address " + std::to_string(address));
  const cl_mem buffer = at->second.buffer;
  ranges_.erase(at);
  return buffer;
}

Place AddressSpace::find(std::uint64_t address, std::uint64_t size_bytes) const {
  const std::lock_guard lock(mutex_);
  auto at = ranges_.upper_bound(address);
  if (at != ranges_.begin()) {
    --at;
    const std::uint64_t offset = address - at->first;
    if (offset <= at->second.size_bytes && size_bytes <= at->second.size_bytes - offset)
      return {at->second.buffer, offset, at->second.owner};
  }
  throw sdk::Error(TENON_INVALID_ARGUMENT,
                   std::to_string(size_bytes) + " bytes from address " + std::to_string(address) + " on are not inside of device memory");
}

}  // namespace tenon::opencl
