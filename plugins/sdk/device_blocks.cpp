// SPDX-License-Identifier: Apache-2.0
#include "device_blocks.h"

namespace tenon::sdk {

DeviceBlocks::~DeviceBlocks() {
  for (const Block& block : blocks_) {
    memory_stats_.remove(block.size);
    device_.deallocate(TENON_MEMORY_DEVICE, block.address, block.size);
  }
}

std::uint64_t DeviceBlocks::allocate(std::uint64_t size_bytes) {
  blocks_.reserve(blocks_.size() + 1);  // allocates before the block exists, so that a failure leaks nothing
  const std::uint64_t address = device_.allocate(TENON_MEMORY_DEVICE, size_bytes);
  blocks_.push_back({address, size_bytes});
  memory_stats_.add(size_bytes);
  return address;
}

std::uint64_t DeviceBlocks::size_bytes() const {
  std::uint64_t total = 0;
  for (const Block& block : blocks_) total += block.size;
  return total;
}

std::uint64_t upload(DeviceBlocks& blocks, Device& device, const void* bytes, std::uint64_t size_bytes, Stream& stream) {
  tenon_copy copy{};
  copy.struct_size = sizeof copy;
  copy.direction = TENON_COPY_HOST_TO_DEVICE;
  copy.destination = blocks.allocate(size_bytes);
  copy.source = reinterpret_cast<std::uintptr_t>(bytes);
  copy.size_bytes = size_bytes;
  device.copy(copy, stream);
  return copy.destination;
}

}  // namespace tenon::sdk
