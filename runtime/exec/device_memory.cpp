// SPDX-License-Identifier: Apache-2.0
#include "exec/device_memory.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include <tenon/error.h>

#include "core/log.h"
#include "text/counted.h"

namespace tenon::exec {

std::shared_ptr<MemoryAccount> memory_account(const std::string& name) {
  if (name.empty()) return std::make_shared<MemoryAccount>();
  static std::mutex mutex;
  static std::map<std::string, std::weak_ptr<MemoryAccount>> accounts;
  const std::lock_guard lock(mutex);
  std::weak_ptr<MemoryAccount>& known = accounts[name];
  std::shared_ptr<MemoryAccount> account = known.lock();
  if (account == nullptr) known = account = std::make_shared<MemoryAccount>();
  return account;
}

DeviceAllocator::DeviceAllocator(std::string device, MemoryPolicy policy, Allocate allocate, Free free,
                                 std::function<std::uint64_t()> device_free)
    : device_(std::move(device)),
      policy_(std::move(policy)),
      allocate_(std::move(allocate)),
      free_(std::move(free)),
      device_free_(std::move(device_free)),
      account_(memory_account(policy_.account)) {
  if (policy_.pool) {
    pool_.emplace([this](std::uint64_t size_bytes) { return allocate_counted(size_bytes); },
                  [this](const MemoryPool::Block& block) { free_counted(block); }, policy_.alignment_bytes);
  }
}

DeviceAllocator::~DeviceAllocator() {
  pool_.reset();
  log::debug("device '{}': {} in {}, peak {}; {} never freed", device_, counted(allocations_, "request"),
             counted(device_allocations_, "device allocation"), counted(peak_, "byte"), counted(live_, "byte was", "bytes were"));
}

// ---------------------------------------------------------------- the limit

bool DeviceAllocator::claim(std::uint64_t size_bytes) {
  const auto fits = [&] {
    const std::lock_guard lock(account_->mutex);
    const std::uint64_t limit = policy_.limit_size_bytes;
    if (limit != 0 && (size_bytes > limit || account_->reserved_size_bytes > limit - size_bytes)) return false;
    account_->reserved_size_bytes += size_bytes;
    return true;
  };
  if (!fits()) {
    if (!pool_ || !policy_.growth) return false;
    pool_->trim();
    if (!fits()) return false;
  }
  reserved_ += size_bytes;
  return true;
}

void DeviceAllocator::unclaim(std::uint64_t size_bytes) {
  const std::lock_guard lock(account_->mutex);
  account_->reserved_size_bytes -= size_bytes;
  reserved_ -= size_bytes;
}

std::uint64_t DeviceAllocator::left_under_limit() const {
  const std::lock_guard lock(account_->mutex);
  return policy_.limit_size_bytes > account_->reserved_size_bytes ? policy_.limit_size_bytes - account_->reserved_size_bytes : 0;
}

void DeviceAllocator::throw_out_of_memory(const std::string& what, std::uint64_t size_bytes, const std::string& reason) const {
  std::string free_text = fmt::format("{} are free", device_free_());
  const bool limited = policy_.limit_size_bytes != 0;
  if (limited) {
    const std::uint64_t kept = pool_ ? pool_->reserved_size_bytes() - pool_->used_size_bytes() : 0;
    const std::uint64_t largest = pool_ ? pool_->largest_free_bytes() : 0;
    free_text = fmt::format("{} of {} are free", left_under_limit() + kept, policy_.limit_size_bytes);
    if (kept > 0) free_text += fmt::format(" (largest block {})", std::max(left_under_limit(), largest));
  }
  throw Error(Status::out_of_memory,
              fmt::format("device '{}': out of memory{}: requested {} bytes, {}; {} are in use, peak {} ({}). {}ake a smaller "
                          "batch or model, free what is not needed, or use another device",
                          device_, what, size_bytes, free_text, live_, peak_, reason, limited ? "Raise the limit, t" : "T"));
}

// ---------------------------------------------------------------- allocating and freeing

MemoryPool::Block DeviceAllocator::allocate_counted(std::uint64_t size_bytes) {
  if (!claim(size_bytes)) throw Error(Status::out_of_memory, policy_.limit_text);
  try {
    MemoryPool::Block block = allocate_(size_bytes);
    ++device_allocations_;
    return block;
  } catch (...) {
    unclaim(size_bytes);
    throw;
  }
}

void DeviceAllocator::free_counted(const MemoryPool::Block& block) {
  free_(block);
  unclaim(block.size_bytes);
}

std::uint64_t DeviceAllocator::block_size_up_to(std::uint64_t size_bytes) const {
  const std::uint64_t max = policy_.max_allocation_size_bytes;
  return (max == 0 ? size_bytes : std::min(size_bytes, max)) / pool_->alignment() * pool_->alignment();
}

MemoryPool::Block DeviceAllocator::allocate_from_pool(std::uint64_t size_bytes) {
  MemoryPool& pool = *pool_;
  std::uint64_t address = pool.reuse(size_bytes);
  if (address == 0) {
    const std::uint64_t rounded = pool.rounded(size_bytes);
    const auto grow = [&](std::uint64_t block_size_bytes) {
      try {
        pool.grow(block_size_bytes);
        return true;
      } catch (const Error& error) {
        if (error.status() != Status::out_of_memory) throw;
        return false;
      }
    };
    const std::uint64_t shared = block_size_up_to(MemoryPool::small_block_bytes);
    const bool grown = rounded <= std::min(MemoryPool::small_size_bytes, shared) && grow(shared);
    if (!grown && !grow(rounded)) {
      if (policy_.growth) pool.trim();  // cached memory may be what the device lacks
      pool.grow(rounded);
    }
    address = pool.reuse(size_bytes);
  }
  return {address, size_bytes, nullptr};
}

void DeviceAllocator::count(std::uint64_t size_bytes) {
  live_ += size_bytes;
  peak_ = std::max(peak_, live_);
}

MemoryPool::Block DeviceAllocator::allocate(std::uint64_t size_bytes) {
  const std::lock_guard lock(mutex_);
  try {
    const MemoryPool::Block piece = pool_ ? allocate_from_pool(size_bytes) : allocate_counted(size_bytes);
    ++allocations_;
    count(size_bytes);
    return piece;
  } catch (const Error& error) {
    if (error.status() != Status::out_of_memory) throw;
    throw_out_of_memory("", size_bytes, error.what());
  }
}

void DeviceAllocator::release(const MemoryPool::Block& piece) {
  const std::lock_guard lock(mutex_);
  live_ -= piece.size_bytes;
  if (pool_) {
    pool_->release(piece.address);
  } else {
    free_counted(piece);
  }
}

void DeviceAllocator::reserve(std::uint64_t size_bytes, const std::string& what) {
  if (size_bytes == 0) return;
  const std::lock_guard lock(mutex_);
  if (!claim(size_bytes)) throw_out_of_memory(" for operands packed by " + what, size_bytes, policy_.limit_text);
  count(size_bytes);
}

void DeviceAllocator::unreserve(std::uint64_t size_bytes) {
  if (size_bytes == 0) return;
  const std::lock_guard lock(mutex_);
  live_ -= size_bytes;
  unclaim(size_bytes);
}

void DeviceAllocator::preallocate() {
  const std::lock_guard lock(mutex_);
  // Plans pack operands in their own memory, which does not come from the pool.
  const std::uint64_t for_plans = policy_.limit_size_bytes / 8;
  const std::uint64_t left = left_under_limit();
  std::uint64_t missing = left - std::min(left, for_plans);
  try {
    while (const std::uint64_t block = block_size_up_to(missing)) {
      pool_->grow(block);
      missing -= block;
    }
  } catch (const Error& error) {
    if (error.status() != Status::out_of_memory) throw;
    throw_out_of_memory(" for memory.growth: false, which allocates its memory at the start", missing, error.what());
  }
}

void DeviceAllocator::trim() {
  const std::lock_guard lock(mutex_);
  if (pool_ && policy_.growth) pool_->trim();
}

MemoryUse DeviceAllocator::use() const {
  const std::lock_guard lock(mutex_);
  return {live_, peak_, reserved_, policy_.limit_size_bytes, allocations_, device_allocations_};
}

}  // namespace tenon::exec
