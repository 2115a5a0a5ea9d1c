// SPDX-License-Identifier: Apache-2.0
// scratch_arena.h - a bump allocator for the scratch memory of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "gemm/products.h"

namespace tenon::cuda {

/// Allocates consecutive blocks of scratch memory, each aligned for products. With NULL it only counts the required bytes.
class ScratchArena {
 public:
  explicit ScratchArena(void* scratch) : memory_(scratch == nullptr ? nullptr : static_cast<char*>(aligned(scratch))) {}
  void* allocate_bytes(std::size_t bytes) {
    void* const part = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += aligned_size(bytes);
    return part;
  }
  template <class T>
  T* allocate(std::int64_t count) {
    return static_cast<T*>(allocate_bytes(static_cast<std::size_t>(count) * sizeof(T)));
  }
  /// The unused memory after the allocated blocks.
  void* rest() const { return memory_ == nullptr ? nullptr : memory_ + used_; }
  /// Bytes of scratch memory that hold all blocks, for any start address.
  std::size_t required_bytes() const { return used_ + 256; }

 private:
  char* memory_;
  std::size_t used_ = 0;
};

}  // namespace tenon::cuda
