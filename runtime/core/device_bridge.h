// SPDX-License-Identifier: Apache-2.0
// core/device_bridge.h - the operations that a tensor needs from the device of its memory. Implemented in exec/; plain host memory has
// none.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <tenon/dlpack.h>

namespace tenon {

struct Storage;

/// Access to device memory.
/// Threads  any member may be called from any thread; each returns when its bytes have arrived.
struct DeviceMemory {
  virtual ~DeviceMemory() = default;
  /// True if device addresses are host pointers.
  virtual bool host_addressable() const = 0;
  /// Allocates device memory that is freed with the last tensor on it.
  virtual std::shared_ptr<Storage> allocate(std::uint64_t size_bytes) = 0;
  virtual void download(std::uint64_t address, void* host, std::uint64_t size_bytes) = 0;
  virtual void upload(std::uint64_t address, const void* host, std::uint64_t size_bytes) = 0;
  /// Copies within the device; the ranges must not overlap.
  virtual void move(std::uint64_t to, std::uint64_t from, std::uint64_t size_bytes) = 0;
  /// Sets every byte.
  virtual void fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value) = 0;
  /// Its place in DLPack, where its addresses are pointers; nothing if it has none.
  virtual std::optional<DlpackDevice> dlpack_device() const { return std::nullopt; }
};

}  // namespace tenon
