// SPDX-License-Identifier: Apache-2.0
// device_blocks.h - device memory of a plan or a packed operand, freed with it.
#pragma once

#include <cstdint>
#include <vector>

#include <tenon/sdk/device.h>

#include "handles.h"

namespace tenon::sdk {

/// Device memory that is freed with its owner.
class DeviceBlocks {
 public:
  DeviceBlocks(Device& device, MemoryStats& memory_stats) : device_(device), memory_stats_(memory_stats) {}
  ~DeviceBlocks();
  DeviceBlocks(const DeviceBlocks&) = delete;
  DeviceBlocks& operator=(const DeviceBlocks&) = delete;
  std::uint64_t allocate(std::uint64_t size_bytes);
  std::uint64_t size_bytes() const;

 private:
  struct Block {
    std::uint64_t address, size;
  };
  Device& device_;
  MemoryStats& memory_stats_;
  std::vector<Block> blocks_;
};

/// A block with bytes of the host, which stay unchanged until the stream is synchronised.
std::uint64_t upload(DeviceBlocks& blocks, Device& device, const void* bytes, std::uint64_t size_bytes, Stream& stream);

}  // namespace tenon::sdk
