// SPDX-License-Identifier: Apache-2.0
// far_memory.h - emulated device memory that the host cannot read.
#pragma once

#include <doctest/doctest.h>

#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include <tenon/tensor.h>

#include "core/device_bridge.h"

namespace tenon::test {

/// Addresses are not host pointers: they count from `base`. Memory is never reused.
struct FarMemory final : DeviceMemory, std::enable_shared_from_this<FarMemory> {
  static constexpr std::uint64_t base = 0x1000;
  std::vector<std::byte> bytes;
  std::uint64_t downloaded = 0, uploaded = 0, moved = 0, filled = 0;

  std::optional<DlpackDevice> place;  ///< in DLPack

  bool host_addressable() const override { return false; }
  std::optional<DlpackDevice> dlpack_device() const override { return place; }
  std::shared_ptr<Storage> allocate(std::uint64_t size_bytes) override {
    auto storage = std::make_shared<Storage>();
    storage->address = base + bytes.size();
    storage->size_bytes = size_bytes;
    storage->device = shared_from_this();
    bytes.resize(bytes.size() + size_bytes);
    return storage;
  }
  void download(std::uint64_t address, void* host, std::uint64_t size_bytes) override {
    std::memcpy(host, at(address, size_bytes), size_bytes);
    downloaded += size_bytes;
  }
  void upload(std::uint64_t address, const void* host, std::uint64_t size_bytes) override {
    std::memcpy(at(address, size_bytes), host, size_bytes);
    uploaded += size_bytes;
  }
  void move(std::uint64_t to, std::uint64_t from, std::uint64_t size_bytes) override {
    std::memcpy(at(to, size_bytes), at(from, size_bytes), size_bytes);
    moved += size_bytes;
  }
  void fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value) override {
    std::memset(at(address, size_bytes), value, size_bytes);
    filled += size_bytes;
  }

 private:
  std::byte* at(std::uint64_t address, std::uint64_t size_bytes) {
    REQUIRE(address >= base);
    REQUIRE(address - base + size_bytes <= bytes.size());
    return bytes.data() + (address - base);
  }
};

/// The elements of a host tensor in far memory.
inline Tensor far_copy(const Tensor& host, const std::shared_ptr<FarMemory>& device) {
  auto storage = device->allocate(static_cast<std::uint64_t>(host.size_bytes()));
  const std::uint64_t address = storage->address;
  Tensor copy = Tensor::make(std::move(storage), address, host.dtype(), host.shape());
  copy.copy_from(host);
  device->downloaded = device->uploaded = device->moved = 0;
  return copy;
}

/// 0, 1, 2, ... in row-major order.
inline Tensor iota(const Shape& shape) {
  Tensor t = Tensor::empty(DType::i32, shape);
  for (std::int64_t i = 0; i < t.count(); ++i) t.data<std::int32_t>()[i] = static_cast<std::int32_t>(i);
  return t;
}

using Ints = std::vector<std::int32_t>;
inline Ints ints(const Tensor& t) {
  return t.to_vector<std::int32_t>();
}

}  // namespace tenon::test
