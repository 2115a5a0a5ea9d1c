// SPDX-License-Identifier: Apache-2.0
// platform/mapping.h - files as memory, and memory by pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <system_error>
#include <utility>

#include "platform/file.h"

namespace tenon::platform {

/// The content of a file as memory that can only be read. Pages are read when they are used.
class Mapping {
 public:
  Mapping() = default;
  /// Maps `size_bytes` > 0 of a file, from its beginning; the file may be closed after that.
  Mapping(const File& file, std::size_t size_bytes, std::error_code& out_error);
  ~Mapping();
  Mapping(Mapping&& other) noexcept : address_(std::exchange(other.address_, nullptr)), size_bytes_(std::exchange(other.size_bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_bytes_, other.size_bytes_);
    return *this;
  }

  /// Null if there is no mapping.
  std::byte* address() const { return address_; }
  std::size_t size_bytes() const { return size_bytes_; }
  /// Lets the system take the pages back until they are read again.
  void release_pages() const;

 private:
  std::byte* address_ = nullptr;
  std::size_t size_bytes_ = 0;
};

}  // namespace tenon::platform
