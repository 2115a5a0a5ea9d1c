// exec/device_memory.h - what a context takes of one device: its limit, its pool, and the books.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <tenon/context.h>

#include "exec/memory_pool.h"

namespace tenon::exec {

/// Bytes taken from one device by all contexts of the process.
struct MemoryAccount {
  std::mutex mutex;
  std::uint64_t taken_size_bytes = 0;
};
/// The account of that name, which lives as long as somebody has it.
std::shared_ptr<MemoryAccount> memory_account(const std::string& name);

/// What the configuration says about one device.
struct MemoryPolicy {
  std::uint64_t limit_size_bytes = 0;  ///< 0: none
  std::string limit_text = {};         ///< where it comes from: "memory.limit_mb: 64 (tenon.yaml:3:5)"
  bool pool = false;
  bool growth = true;
  std::string account = {};  ///< the device in this process; empty: an account of its own
};

/// Threads  any.
class DeviceBooks {
 public:
  using Take = MemoryPool::Take;
  using Give = MemoryPool::Give;
  /// How memory is got from the device and given back, and how much it says it has left. `take` throws Error.
  DeviceBooks(std::string device, MemoryPolicy policy, Take take, Give give, std::function<std::uint64_t()> device_free);
  ~DeviceBooks();
  DeviceBooks(const DeviceBooks&) = delete;
  DeviceBooks& operator=(const DeviceBooks&) = delete;

  /// A piece of the pool or of the device. Errors: OUT_OF_MEMORY with requested, free and peak bytes, and what to do.
  MemoryPool::Block allocate(std::uint64_t size_bytes);
  void release(const MemoryPool::Block& piece);
  /// Memory that a plan has taken for itself: over the limit it is refused, and then not counted.
  void charge_plan(std::uint64_t size_bytes, const std::string& what);
  void refund_plan(std::uint64_t size_bytes);
  /// Takes what the limit allows now, for memory.growth: false, but for an eighth that plans may come to need.
  void take_at_start();
  void trim();
  MemoryUse use() const;

 private:
  MemoryPool::Block take_counted(std::uint64_t size_bytes);
  void give_counted(const MemoryPool::Block& block);
  /// Room for so many bytes under the limit is taken up, after a trim if need be; false if there is none.
  bool claim(std::uint64_t size_bytes);
  void unclaim(std::uint64_t size_bytes);
  MemoryPool::Block allocate_from_pool(std::uint64_t size_bytes);
  void count(std::uint64_t size_bytes);
  std::uint64_t left_under_limit() const;
  [[noreturn]] void refuse(const std::string& what, std::uint64_t size_bytes, const std::string& reason) const;

  const std::string device_;
  const MemoryPolicy policy_;
  const Take take_;
  const Give give_;
  const std::function<std::uint64_t()> device_free_;
  const std::shared_ptr<MemoryAccount> account_;
  mutable std::mutex mutex_;  ///< guards all below; taken before the account's
  std::optional<MemoryPool> pool_;
  std::uint64_t live_ = 0, peak_ = 0, taken_ = 0;
  std::uint64_t allocations_ = 0, device_allocations_ = 0;
};

}  // namespace tenon::exec
