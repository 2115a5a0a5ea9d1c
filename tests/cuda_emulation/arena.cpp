// SPDX-License-Identifier: Apache-2.0
#include "arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "sanitizers.h"

namespace tenon::emulation {
namespace {

constexpr std::size_t alignment = 256;
// Memory is protected in large pages: there are five hundred times fewer of them to change at every wait.
constexpr std::size_t page_bytes = 2 << 20;

std::size_t rounded(std::size_t size_bytes, std::size_t unit) {
  return (size_bytes + unit - 1) / unit * unit;
}

}  // namespace

Arena::Arena(std::size_t total_bytes) : total_bytes_(total_bytes) {
  if constexpr (!address_sanitized) {
    // Addresses cost nothing: reserves four times the memory, so that fragmentation never fails an allocation that the total allows.
    const std::size_t reserved = rounded(4 * total_bytes, page_bytes);
    void* memory = mmap(nullptr, reserved + page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
      std::perror("cuda emulation: mmap of device memory");
      std::abort();
    }
    std::size_t space = reserved + page_bytes;
    base_ = static_cast<char*>(std::align(page_bytes, reserved, memory, space));
    madvise(base_, reserved, MADV_HUGEPAGE);  // only a hint: without huge pages waiting is slower
    free_[0] = reserved;
  }
}

void* Arena::allocate(std::size_t size_bytes) {
  if (size_bytes > total_bytes_) return nullptr;
  const std::size_t size = rounded(size_bytes, alignment);
  if (size > total_bytes_ - used_bytes_) return nullptr;
  if constexpr (address_sanitized) {
    // From the allocator that AddressSanitizer instruments, with the exact size, so that out-of-bounds accesses of kernels are detected.
    void* memory = nullptr;
    if (posix_memalign(&memory, alignment, size_bytes) != 0) return nullptr;
    used_bytes_ += size;
    return memory;
  }
  const auto hole = std::find_if(free_.begin(), free_.end(), [size](const auto& entry) { return entry.second >= size; });
  if (hole == free_.end()) return nullptr;
  const std::size_t offset = hole->first, left = hole->second - size;
  free_.erase(hole);
  if (left > 0) free_[offset + size] = left;
  used_bytes_ += size;
  if (offset + size > ever_used_bytes_) {
    const bool open = open_;
    set_open(false);
    ever_used_bytes_ = rounded(offset + size, page_bytes);
    set_open(open);
  }
  return base_ + offset;
}

void Arena::release(void* memory, std::size_t size_bytes) {
  const std::size_t size = rounded(size_bytes, alignment);
  used_bytes_ -= size;
  if constexpr (address_sanitized) {
    std::free(memory);
    return;
  }
  auto at = free_.emplace(static_cast<std::size_t>(static_cast<char*>(memory) - base_), size).first;
  if (const auto next = std::next(at); next != free_.end() && at->first + at->second == next->first) {
    at->second += next->second;
    free_.erase(next);
  }
  if (at == free_.begin()) return;
  if (const auto before = std::prev(at); before->first + before->second == at->first) {
    before->second += at->second;
    free_.erase(at);
  }
}

void Arena::set_open(bool open) {
  if (open == open_ || address_sanitized) return;
  open_ = open;
  if (ever_used_bytes_ == 0) return;
  if (mprotect(base_, ever_used_bytes_, open ? PROT_READ | PROT_WRITE : PROT_NONE) != 0) {
    std::perror("cuda emulation: mprotect of device memory");
    std::abort();
  }
}

}  // namespace tenon::emulation
