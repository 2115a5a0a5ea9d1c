// SPDX-License-Identifier: Apache-2.0
#include "platform/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>

namespace tenon::platform {

void* allocate_aligned(std::size_t alignment, std::size_t size_bytes) noexcept {
  return std::aligned_alloc(alignment, size_bytes);
}

void free_aligned(void* memory) noexcept {
  std::free(memory);
}

void prefer_huge_pages([[maybe_unused]] void* memory, [[maybe_unused]] std::size_t size_bytes) noexcept {
#ifdef MADV_HUGEPAGE
  ::madvise(memory, size_bytes, MADV_HUGEPAGE);  // a failure only costs time
#endif
}

std::size_t page_size_bytes() noexcept {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void* reserve_pages(std::size_t size_bytes) noexcept {
  void* const memory = ::mmap(nullptr, size_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

bool open_pages(void* pages, std::size_t size_bytes) noexcept {
  return ::mprotect(pages, size_bytes, PROT_READ | PROT_WRITE) == 0;
}

void free_pages(void* pages, std::size_t size_bytes) noexcept {
  ::munmap(pages, size_bytes);
}

}  // namespace tenon::platform
