// SPDX-License-Identifier: Apache-2.0
#include "platform/mapping.h"

#include "platform/windows/error.h"

namespace tenon::platform {

Mapping::Mapping(const File& file, std::size_t size_bytes, std::error_code& out_error) {
  const File section = windows::owned(CreateFileMappingW(windows::handle(file), nullptr, PAGE_READONLY, 0, 0, nullptr));
  if (section.native() == 0) {
    out_error = windows::last_error();
    return;
  }
  void* const address = MapViewOfFile(windows::handle(section), FILE_MAP_READ, 0, 0, size_bytes);
  if (address == nullptr) {
    out_error = windows::last_error();
    return;
  }
  out_error.clear();
  address_ = static_cast<std::byte*>(address);
  size_bytes_ = size_bytes;
}

Mapping::~Mapping() {
  if (address_ != nullptr) UnmapViewOfFile(address_);
}

void Mapping::release_pages() const {
  // Unlocking pages that are not locked takes them out of the working set, and fails by intention.
  if (address_ != nullptr) VirtualUnlock(address_, size_bytes_);
}

}  // namespace tenon::platform
