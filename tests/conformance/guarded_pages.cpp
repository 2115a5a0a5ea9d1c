// SPDX-License-Identifier: Apache-2.0
#include "guarded_pages.h"

#include <new>

#include "platform/memory.h"

namespace tenon::conformance {

GuardedPages::GuardedPages(std::uint64_t size, std::uint64_t alignment, bool at_the_end) {
  const std::uint64_t page = platform::page_size_bytes();
  const std::uint64_t aligned = (size + alignment - 1) / alignment * alignment, inner = (aligned + page - 1) / page * page;
  length_ = inner + 2 * page;
  base_ = static_cast<unsigned char*>(platform::reserve_pages(length_));
  if (base_ == nullptr) throw std::bad_alloc();
  if (inner > 0 && !platform::open_pages(base_ + page, inner)) {
    platform::free_pages(base_, length_);
    throw std::bad_alloc();
  }
  data_ = base_ + page + (at_the_end ? inner - aligned : 0);
}

GuardedPages::~GuardedPages() {
  platform::free_pages(base_, length_);
}

}  // namespace tenon::conformance
