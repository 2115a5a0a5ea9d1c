// SPDX-License-Identifier: Apache-2.0
// address_space.h - 64-bit addresses for buffers: OpenCL 1.2 has no device pointers, the plugin ABI has nothing else.
//
// Each buffer has a range of addresses of its own, which nothing else ever has, so the core may add offsets and divide a buffer. A kernel
// gets the buffer and the offset in it. The addresses lie above those of every host pointer.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "libraries/opencl.h"

namespace tenon::opencl {

/// A place in a buffer.
struct Place {
  cl_mem buffer = nullptr;
  std::size_t offset = 0;  ///< bytes
  class Device* owner = nullptr;
};

/// One for all devices: an address says which device it belongs to, so that copies between devices find their source.
///
/// Threads  any
class AddressSpace {
 public:
  /// The one of this process. It is never destroyed: the plugin has no static destructors.
  static AddressSpace& shared();

  /// Assigns a range of addresses and returns its first one.
  std::uint64_t add(Device& owner, cl_mem buffer, std::uint64_t size_bytes);
  /// Forgets the range that starts at this address and returns its buffer.
  cl_mem remove(std::uint64_t address);
  /// The place of `size_bytes` from an address on.
  /// Errors  INVALID_ARGUMENT if they are not inside of one buffer.
  Place find(std::uint64_t address, std::uint64_t size_bytes = 0) const;

 private:
  struct Range {
    cl_mem buffer;
    std::uint64_t size_bytes;
    Device* owner;
  };
  static constexpr std::uint64_t first = std::uint64_t{1} << 56, gap = std::uint64_t{1} << 16;

  mutable std::mutex mutex_;
  std::map<std::uint64_t, Range> ranges_;  ///< by first address
  std::uint64_t next_ = first;
};

}  // namespace tenon::opencl
