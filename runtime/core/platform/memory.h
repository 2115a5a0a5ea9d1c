// SPDX-License-Identifier: Apache-2.0
// platform/memory.h - aligned memory, and memory by pages.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::platform {

/// Uninitialised memory at a multiple of `alignment`, a power of two of at least sizeof(void*); `size_bytes` is a multiple of it. Null if
/// there is none.
void* allocate_aligned(std::size_t alignment, std::size_t size_bytes) noexcept;
/// Frees memory of allocate_aligned, or null.
void free_aligned(void* memory) noexcept;

/// Asks for huge pages; where the system has none to give on request, nothing happens.
void prefer_huge_pages(void* memory, std::size_t size_bytes) noexcept;

/// Of the processor: what memory is protected by.
std::size_t page_size_bytes() noexcept;
/// Whole pages that can neither be read nor written; null if there are none.
void* reserve_pages(std::size_t size_bytes) noexcept;
/// Makes whole pages of reserve_pages, zeroed, readable and writable. False if there is no memory.
bool open_pages(void* pages, std::size_t size_bytes) noexcept;
void free_pages(void* pages, std::size_t size_bytes) noexcept;

}  // namespace tenon::platform
