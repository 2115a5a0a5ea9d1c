// SPDX-License-Identifier: Apache-2.0
// guarded_pages.h - host memory next to pages that cannot be accessed.
#pragma once

#include <cstdint>

namespace tenon::conformance {

/// `size` bytes between two pages that can neither be read nor written: a reader that passes their end, or begins too early, is stopped by
/// a signal. Errors: std::bad_alloc.
class GuardedPages {
 public:
  /// The bytes end at the second page, up to the alignment; otherwise they begin behind the first one.
  GuardedPages(std::uint64_t size, std::uint64_t alignment, bool at_the_end);
  ~GuardedPages();
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;
  unsigned char* data() const { return data_; }

 private:
  unsigned char* base_ = nullptr;
  std::uint64_t length_ = 0;
  unsigned char* data_ = nullptr;
};

}  // namespace tenon::conformance
