// SPDX-License-Identifier: Apache-2.0
#include "core/host_memory.h"

#include <algorithm>
#include <exception>
#include <mutex>

#include <tenon/error.h>

#include "core/memory_pool.h"
#include "platform/fork.h"
#include "platform/memory.h"

namespace tenon {
namespace {

constexpr std::uint64_t kibi = 1024, mebi = 1024 * kibi;
constexpr std::uint64_t huge_page = 2 * mebi;
constexpr std::uint64_t min_shared = 512 * kibi, max_shared = 8 * mebi, block_size = 32 * mebi;

// An address sanitizer sees accesses beyond the end of memory that has an allocation of its own.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool shares_blocks = false;
#elif defined(__has_feature)
constexpr bool shares_blocks = !__has_feature(address_sanitizer);
#else
constexpr bool shares_blocks = true;
#endif

/// Memory of its own; null if there is none.
void* allocate_alone(std::uint64_t size_bytes, std::uint64_t alignment, HostPages pages) {
  const bool large = pages == HostPages::huge && size_bytes >= 2 * huge_page;
  alignment = std::max<std::uint64_t>(large ? std::max(alignment, huge_page) : alignment, sizeof(void*));
  const std::uint64_t rounded = (std::max<std::uint64_t>(size_bytes, 1) + alignment - 1) / alignment * alignment;
  if (rounded < size_bytes) return nullptr;
  void* const memory = platform::allocate_aligned(static_cast<std::size_t>(alignment), static_cast<std::size_t>(rounded));
  if (large && memory != nullptr) platform::prefer_huge_pages(memory, static_cast<std::size_t>(rounded));
  return memory;
}

/// Blocks that pieces share. It is never destroyed, since tensors may be freed at the end of the process.
class SharedBlocks {
 public:
  static SharedBlocks& instance() {
    static SharedBlocks& blocks = *new SharedBlocks;
    return blocks;
  }
  void* allocate(std::uint64_t size_bytes) {
    const std::lock_guard lock(mutex_);
    std::uint64_t address = pool_.reuse(size_bytes);
    if (address == 0) {
      pool_.grow(block_size);
      address = pool_.reuse(size_bytes);
    }
    return reinterpret_cast<void*>(address);
  }
  /// False: it is not part of a block.
  bool release(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto address = reinterpret_cast<std::uint64_t>(memory);
    if (!pool_.owns(address)) return false;
    pool_.release(address);
    // Blocks without used pieces stay until there are two of them.
    if (pool_.largest_free_bytes() == block_size && pool_.reserved_size_bytes() - pool_.used_size_bytes() >= 2 * block_size) pool_.trim();
    return true;
  }

 private:
  SharedBlocks() {
    // A child process must not inherit the lock from a thread that it does not have.
    platform::on_fork([] { instance().mutex_.lock(); }, [] { instance().mutex_.unlock(); }, [] { instance().mutex_.unlock(); });
  }
  static MemoryPool::Block allocate_block(std::uint64_t size_bytes) {
    void* const memory = allocate_alone(size_bytes, huge_page, HostPages::huge);
    if (memory == nullptr) throw Error(Status::out_of_memory, "no host memory");
    return {reinterpret_cast<std::uint64_t>(memory), size_bytes, memory};
  }

  std::mutex mutex_;
  MemoryPool pool_{allocate_block, [](const MemoryPool::Block& block) { platform::free_aligned(block.owner); }};
};

}  // namespace

void* allocate_host(std::uint64_t size_bytes, std::uint64_t alignment, HostPages pages) noexcept {
  if (shares_blocks && pages == HostPages::huge && size_bytes >= min_shared && size_bytes < max_shared &&
      alignment <= MemoryPool::min_alignment) {
    try {
      return SharedBlocks::instance().allocate(size_bytes);
    } catch (const std::exception&) {
      // There may be memory for less than a block.
    }
  }
  return allocate_alone(size_bytes, alignment, pages);
}

void free_host(void* memory) noexcept {
  if (memory == nullptr || (shares_blocks && SharedBlocks::instance().release(memory))) return;
  platform::free_aligned(memory);
}

}  // namespace tenon
