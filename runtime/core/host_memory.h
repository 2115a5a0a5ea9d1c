// SPDX-License-Identifier: Apache-2.0
// core/host_memory.h - memory of the host for tensors and backends.
#pragma once

#include <cstdint>

namespace tenon {

/// How memory is used: which pages it gets.
enum class HostPages : std::uint8_t {
  normal,  ///< read a few times, such as inputs, and weights that are packed
  /// Read in each run, such as packed weights. What has 512 KiB to 8 MiB shares blocks of 32 MiB, and larger memory has huge pages of its
  /// own. Reading it is faster by a tenth, and there is a page fault for every 2 MiB instead of every 4 KiB.
  huge,
};

/// Uninitialised memory at a multiple of `alignment`, a power of two; null if there is none.
/// Threads  any; also in a child process of fork().
void* allocate_host(std::uint64_t size_bytes, std::uint64_t alignment, HostPages pages) noexcept;
/// Frees memory of allocate_host, or null.
void free_host(void* memory) noexcept;

}  // namespace tenon
