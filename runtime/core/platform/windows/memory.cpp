// SPDX-License-Identifier: Apache-2.0
#include "platform/memory.h"

#include <malloc.h>
#include <windows.h>

namespace tenon::platform {

void* allocate_aligned(std::size_t alignment, std::size_t size_bytes) noexcept {
  return _aligned_malloc(size_bytes, alignment);
}

void free_aligned(void* memory) noexcept {
  _aligned_free(memory);
}

void prefer_huge_pages(void*, std::size_t) noexcept {}  // they need a privilege that users do not have

std::size_t page_size_bytes() noexcept {
  SYSTEM_INFO info{};
  GetSystemInfo(&info);
  return info.dwPageSize;
}

void* reserve_pages(std::size_t size_bytes) noexcept {
  return VirtualAlloc(nullptr, size_bytes, MEM_RESERVE, PAGE_NOACCESS);
}

bool open_pages(void* pages, std::size_t size_bytes) noexcept {
  return VirtualAlloc(pages, size_bytes, MEM_COMMIT, PAGE_READWRITE) != nullptr;
}

void free_pages(void* pages, std::size_t) noexcept {
  VirtualFree(pages, 0, MEM_RELEASE);
}

}  // namespace tenon::platform
