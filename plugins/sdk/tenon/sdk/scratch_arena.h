// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/scratch_arena.h - a bump allocator for the scratch memory of a call.
#pragma once

#include <cstddef>
#include <cstdint>

#include <tenon/sdk/rounding.h>

namespace tenon::sdk {

/// Allocates consecutive aligned blocks of Call::scratch. Without memory it only counts their
/// bytes, so that one function can say what a kernel needs, for Traits::scratch, and allocate it.
class ScratchArena {
 public:
  /// `scratch` is aligned to 64, or NULL: every block is NULL too. `alignment` is at least 64.
  explicit ScratchArena(void* scratch, std::size_t alignment = block_alignment)
      : memory_(static_cast<char*>(scratch)), alignment_(alignment) {
    if (memory_ != nullptr) memory_ += padding(reinterpret_cast<std::uintptr_t>(memory_));
  }

  void* allocate_bytes(std::size_t bytes) {
    void* const block = rest();
    used_ += aligned_size(bytes, alignment_);
    return block;
  }
  template <class T>
  T* allocate(std::int64_t count) {
    return static_cast<T*>(allocate_bytes(static_cast<std::size_t>(count) * sizeof(T)));
  }

  /// The memory after the allocated blocks.
  void* rest() const { return memory_ == nullptr ? nullptr : memory_ + used_; }
  /// Bytes of scratch memory that hold all blocks, wherever it begins.
  std::size_t required_bytes() const { return used_ + alignment_ - block_alignment; }

 private:
  std::size_t padding(std::uintptr_t address) const { return aligned_size(address, alignment_) - address; }

  char* memory_;
  std::size_t alignment_;
  std::size_t used_ = 0;
};

}  // namespace tenon::sdk
