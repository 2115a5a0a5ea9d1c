// SPDX-License-Identifier: Apache-2.0
// core/host_memory.h - memory of the host for tensors and backends.
#pragma once

#include <cstdint>

namespace tenon {

/// Uninitialised memory at a multiple of `alignment`, a power of two; null if there is none.
///
/// What has 512 KiB to 8 MiB shares blocks of 32 MiB in huge pages, and larger memory has huge pages of its own: the weights of a model
/// are then written and packed with a page fault for every 2 MiB instead of every 4 KiB.
/// Threads  any; also in a child process of fork().
void* allocate_host(std::uint64_t size_bytes, std::uint64_t alignment) noexcept;
/// Frees memory of allocate_host, or null.
void free_host(void* memory) noexcept;

}  // namespace tenon
