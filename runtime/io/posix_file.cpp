// SPDX-License-Identifier: Apache-2.0
// io/posix_file.cpp - opening and reading files, with errors that name them.
#include "io/posix_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include <tenon/error.h>

namespace tenon::io {

std::string system_message(int error) {
  return std::generic_category().message(error);
}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = other.release();
  }
  return *this;
}

bool Descriptor::close() {
  const int fd = release();
  return fd < 0 || ::close(fd) == 0;
}

int Descriptor::release() {
  return std::exchange(fd_, -1);
}

OpenFile open_for_reading(const std::string& path) {
  OpenFile file;
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  file.descriptor = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.descriptor) {
    const int error = errno;
    throw Error(path + ": " + (error == ENOENT ? "file not found" : "cannot be opened: " + system_message(error)));
  }
  struct stat info {};
  if (::fstat(file.descriptor.get(), &info) != 0) throw Error(path + ": cannot be examined: " + system_message(errno));
  if (S_ISDIR(info.st_mode)) throw Error(path + ": expected a file, got a folder");
  if (!S_ISREG(info.st_mode)) throw Error(path + ": expected a file, got a device or pipe");
  file.size_bytes = static_cast<std::uint64_t>(info.st_size);
  return file;
}

void read_exactly(const Descriptor& file, const std::string& path, void* out_bytes, std::uint64_t size_bytes) {
  auto* to = static_cast<std::byte*>(out_bytes);
  std::uint64_t done = 0;
  while (done < size_bytes) {
    const std::size_t part =
        static_cast<std::size_t>(std::min<std::uint64_t>(size_bytes - done, std::uint64_t{1} << 30));  // the system's limit is 2 GiB
    const ssize_t got = ::read(file.get(), to + done, part);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw Error(path + ": cannot be read: " + system_message(errno));
    if (got == 0)
      throw Error(path + ": expected " + std::to_string(size_bytes) + " more bytes, got " + std::to_string(done) +
                  ": the file was truncated while reading");
    done += static_cast<std::uint64_t>(got);
  }
}

}  // namespace tenon::io
