// SPDX-License-Identifier: Apache-2.0
// malloc_counter.h - counts every allocation of the process. It replaces malloc and related functions, so only one file of a program
// includes it.
//
// TENON_MALLOC_IS_TAKEN is defined where something else has replaced them already: sanitizers, or another C library.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdlib>  // what __GLIBC__ comes from

#include "sanitized.h"

#if TENON_IS_SANITIZED || !defined(__GLIBC__)
#define TENON_MALLOC_IS_TAKEN
#endif

#ifndef TENON_MALLOC_IS_TAKEN
namespace {
std::atomic<long> allocations{0};
}

// operator new passes here too, and so do the host table's aligned_alloc and libraries.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void* malloc(std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return __libc_memalign(alignment, size);
}
}
#endif
