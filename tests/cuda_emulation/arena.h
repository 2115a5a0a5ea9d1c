// SPDX-License-Identifier: Apache-2.0
// arena.h - the memory of one device, which the host can access only while the device works.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>

namespace tenon::emulation {

/// Threads  one at a time: under the lock of the emulation.
class Arena {
 public:
  explicit Arena(std::size_t total_bytes);
  ~Arena() = delete;  ///< never destroyed

  /// NULL when out of memory. The memory holds 0xFF bytes only after `poison`.
  void* allocate(std::size_t size_bytes);
  void release(void* memory, std::size_t size_bytes);
  void set_open(bool open);

  std::size_t total_bytes() const { return total_bytes_; }
  std::size_t used_bytes() const { return used_bytes_; }

 private:
  const std::size_t total_bytes_;
  std::size_t used_bytes_ = 0;
  char* base_ = nullptr;
  std::size_t ever_used_bytes_ = 0;
  bool open_ = false;
  std::map<std::size_t, std::size_t> free_;  ///< offset to size
};

}  // namespace tenon::emulation
