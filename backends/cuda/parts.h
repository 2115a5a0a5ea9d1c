// parts.h - a call's scratch memory, handed out in parts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "products.h"

namespace tenon::cuda {

/// Parts of a call's scratch memory, one after the other, each aligned for products. Without memory it counts how much is wanted.
class Parts {
 public:
  explicit Parts(void* scratch) : memory_(scratch == nullptr ? nullptr : static_cast<char*>(aligned(scratch))) {}
  void* take_bytes(std::size_t bytes) {
    void* const part = memory_ == nullptr ? nullptr : memory_ + used_;
    used_ += aligned_size(bytes);
    return part;
  }
  template <class T>
  T* take(std::int64_t count) {
    return static_cast<T*>(take_bytes(static_cast<std::size_t>(count) * sizeof(T)));
  }
  /// What lies behind the parts.
  void* rest() const { return memory_ == nullptr ? nullptr : memory_ + used_; }
  /// Bytes of scratch memory that hold all parts, wherever it starts.
  std::size_t wanted() const { return used_ + 256; }

 private:
  char* memory_;
  std::size_t used_ = 0;
};

}  // namespace tenon::cuda
