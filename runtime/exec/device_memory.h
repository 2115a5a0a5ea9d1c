// SPDX-License-Identifier: Apache-2.0
// exec/device_memory.h - a context's memory on one device: limit, pool and allocator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <tenon/context.h>

#include "core/memory_pool.h"

namespace tenon::exec {

/// Bytes that all contexts of the process have allocated on one device.
struct MemoryAccount {
  std::mutex mutex;
  std::uint64_t reserved_size_bytes = 0;
};
/// The account of that name, which lives as long as it is referenced.
std::shared_ptr<MemoryAccount> memory_account(const std::string& name);

/// The memory configuration of one device.
struct MemoryPolicy {
  std::uint64_t limit_size_bytes = 0;  ///< 0: none
  std::string limit_text = {};         ///< its origin: "memory.limit_mb: 64 (tenon.yaml:3:5)"
  bool pool = false;
  bool growth = true;
  std::uint64_t alignment_bytes = 1;            ///< that pieces of memory need
  std::uint64_t max_allocation_size_bytes = 0;  ///< of one block of the pool; 0: none
  std::string account = {};                     ///< identifies the device in this process; empty: a private account
};

/// Threads  any.
class DeviceAllocator {
 public:
  using Allocate = MemoryPool::Allocate;
  using Free = MemoryPool::Free;
  /// Functions that allocate and free device memory and report how much is free. The allocating one throws Error.
  DeviceAllocator(std::string device, MemoryPolicy policy, Allocate allocate, Free free, std::function<std::uint64_t()> device_free);
  ~DeviceAllocator();
  DeviceAllocator(const DeviceAllocator&) = delete;
  DeviceAllocator& operator=(const DeviceAllocator&) = delete;

  /// Allocates from the pool or the device. Errors: OUT_OF_MEMORY with requested, free and peak bytes, and a remedy.
  MemoryPool::Block allocate(std::uint64_t size_bytes);
  void release(const MemoryPool::Block& piece);
  /// Accounts for memory that a plan allocates itself. Errors: the limit is exceeded; nothing is reserved then.
  void reserve(std::uint64_t size_bytes, const std::string& what);
  void unreserve(std::uint64_t size_bytes);
  /// Allocates up to the limit now, in blocks as large as possible, for memory.growth: false, except for an eighth that plans may need.
  void preallocate();
  void trim();
  MemoryUse use() const;

 private:
  MemoryPool::Block allocate_counted(std::uint64_t size_bytes);
  void free_counted(const MemoryPool::Block& block);
  /// Claims bytes under the limit, trimming the pool if necessary; false if that is not possible.
  bool claim(std::uint64_t size_bytes);
  void unclaim(std::uint64_t size_bytes);
  MemoryPool::Block allocate_from_pool(std::uint64_t size_bytes);
  /// The largest block of the pool of at most that size.
  std::uint64_t block_size_up_to(std::uint64_t size_bytes) const;
  void count(std::uint64_t size_bytes);
  std::uint64_t left_under_limit() const;
  [[noreturn]] void throw_out_of_memory(const std::string& what, std::uint64_t size_bytes, const std::string& reason) const;

  const std::string device_;
  const MemoryPolicy policy_;
  const Allocate allocate_;
  const Free free_;
  const std::function<std::uint64_t()> device_free_;
  const std::shared_ptr<MemoryAccount> account_;
  mutable std::mutex mutex_;  ///< guards all below; locked before the account's
  std::optional<MemoryPool> pool_;
  std::uint64_t live_ = 0, peak_ = 0, reserved_ = 0;
  std::uint64_t allocations_ = 0, device_allocations_ = 0;
};

}  // namespace tenon::exec
