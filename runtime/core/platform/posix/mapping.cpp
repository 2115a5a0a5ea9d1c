// SPDX-License-Identifier: Apache-2.0
#include "platform/mapping.h"

#include <sys/mman.h>

#include "platform/posix/descriptor.h"

namespace tenon::platform {

Mapping::Mapping(const File& file, std::size_t size_bytes, std::error_code& out_error) {
  // Private: what is written by mistake must not reach the file.
  void* const address = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, posix::descriptor(file), 0);
  if (address == MAP_FAILED) {
    out_error = posix::last_error();
    return;
  }
  out_error.clear();
  address_ = static_cast<std::byte*>(address);
  size_bytes_ = size_bytes;
}

Mapping::~Mapping() {
  if (address_ != nullptr) ::munmap(address_, size_bytes_);
}

void Mapping::release_pages() const {
  if (address_ != nullptr) ::madvise(address_, size_bytes_, MADV_DONTNEED);
}

}  // namespace tenon::platform
