// SPDX-License-Identifier: Apache-2.0
#include "io/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include <tenon/error.h>

#include "io/posix_file.h"

namespace tenon::io {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const OpenFile file = open_for_reading(path);
  const auto size = static_cast<std::size_t>(file.size_bytes);
  void* address = nullptr;  // the system does not map zero bytes
  if (size > 0) {
    address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor.get(), 0);
    if (address == MAP_FAILED) throw Error(path + ": cannot be mapped: " + system_message(errno));
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(address, size));
}

std::shared_ptr<const MappedFile> MappedFile::of(std::string content) {
  const std::shared_ptr<MappedFile> file(new MappedFile(nullptr, 0));
  file->content_ = std::move(content);
  return file;
}

MappedFile::~MappedFile() {
  if (address_ != nullptr) ::munmap(address_, size_bytes_);
}

void MappedFile::release_pages() const {
  if (address_ != nullptr) ::madvise(address_, size_bytes_, MADV_DONTNEED);
}

}  // namespace tenon::io
