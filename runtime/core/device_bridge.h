// core/device_bridge.h - what a tensor asks of the device its memory is on. exec/ implements it; plain host memory has none.
#pragma once

#include <cstdint>
#include <memory>

namespace tenon {

struct Storage;

/// Access to the bytes behind device addresses.
/// Threads  every member may be called from any thread; each returns when its bytes have arrived.
struct DeviceMemory {
  virtual ~DeviceMemory() = default;
  /// True if device addresses are host pointers.
  virtual bool host_addressable() const = 0;
  /// Device memory that is freed with the last tensor on it.
  virtual std::shared_ptr<Storage> allocate(std::uint64_t size_bytes) = 0;
  virtual void download(std::uint64_t address, void* host, std::uint64_t size_bytes) = 0;
  virtual void upload(std::uint64_t address, const void* host, std::uint64_t size_bytes) = 0;
  /// Within the device; the ranges do not overlap.
  virtual void move(std::uint64_t to, std::uint64_t from, std::uint64_t size_bytes) = 0;
};

}  // namespace tenon
