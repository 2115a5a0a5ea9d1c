// SPDX-License-Identifier: Apache-2.0
#include "guarded_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

namespace tenon::conformance {

GuardedPages::GuardedPages(std::uint64_t size, std::uint64_t alignment, bool at_the_end) {
  const auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  const std::uint64_t aligned = (size + alignment - 1) / alignment * alignment, inner = (aligned + page - 1) / page * page;
  length_ = inner + 2 * page;
  void* const memory = mmap(nullptr, length_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  base_ = static_cast<unsigned char*>(memory);
  if (inner > 0 && mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) != 0) {
    munmap(base_, length_);
    throw std::bad_alloc();
  }
  data_ = base_ + page + (at_the_end ? inner - aligned : 0);
}

GuardedPages::~GuardedPages() {
  munmap(base_, length_);
}

}  // namespace tenon::conformance
