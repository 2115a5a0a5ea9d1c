// SPDX-License-Identifier: Apache-2.0
// cuda_testing.h - helpers of the cuda backend's tests on the emulation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "backends/cuda/device/device.h"
#include "backends/cuda/kernel/wide.cuh"
#include "test_numbers.h"

namespace tenon::cuda {

using test::contains;
using test::same_bits;

template <class Body>
sdk::Error error_of(const Body& body) {
  try {
    body();
  } catch (const sdk::Error& e) {
    return e;
  }
  return {TENON_OK, "nothing was thrown"};
}

/// Rounded to T.
template <class T>
std::vector<T> narrowed(const std::vector<float>& x) {
  std::vector<T> y;
  for (const float v : x) y.push_back(narrow<T>(v));
  return y;
}

/// Device memory, written and read through a stream. Places are relative to its first byte.
class DeviceBuffer {
 public:
  DeviceBuffer(Device& device, Stream& stream, std::size_t size_bytes)
      : device_(device), stream_(stream), size_(size_bytes), address_(device.allocate(TENON_MEMORY_DEVICE, size_bytes)) {}
  template <class T>
  DeviceBuffer(Device& device, Stream& stream, const std::vector<T>& values) : DeviceBuffer(device, stream, values.size() * sizeof(T)) {
    write(values);
  }
  ~DeviceBuffer() { device_.deallocate(TENON_MEMORY_DEVICE, address_, size_); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  template <class T = char>
  T* at(std::size_t place = 0) const {
    return reinterpret_cast<T*>(static_cast<std::uintptr_t>(address_ + place));
  }
  template <class T>
  void write(const std::vector<T>& values, std::size_t place = 0) {
    copy(TENON_COPY_HOST_TO_DEVICE, address_ + place, reinterpret_cast<std::uintptr_t>(values.data()), values.size() * sizeof(T));
  }
  /// Waits for the stream.
  template <class T>
  std::vector<T> read(std::size_t count, std::size_t place = 0) {
    std::vector<T> values(count);
    copy(TENON_COPY_DEVICE_TO_HOST, reinterpret_cast<std::uintptr_t>(values.data()), address_ + place, count * sizeof(T));
    stream_.synchronize();
    return values;
  }
  /// The place of an address in this memory.
  std::size_t place_of(const void* address) const { return reinterpret_cast<std::uintptr_t>(address) - address_; }

 private:
  void copy(std::uint32_t direction, std::uint64_t to, std::uint64_t from, std::size_t size_bytes) {
    device_.copy({sizeof(tenon_copy), direction, to, from, size_bytes, nullptr, 0, 0}, stream_);
  }
  Device& device_;
  Stream& stream_;
  std::size_t size_;
  std::uint64_t address_;
};

}  // namespace tenon::cuda
