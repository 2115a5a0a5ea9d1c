// SPDX-License-Identifier: Apache-2.0
#include "platform/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "platform/posix/descriptor.h"

namespace tenon::platform {
namespace {

/// The limit of one read or write is 2 GiB.
std::size_t piece(std::uint64_t size_bytes) {
  return static_cast<std::size_t>(std::min<std::uint64_t>(size_bytes, std::uint64_t{1} << 30));
}

}  // namespace

std::string message_of(const std::error_code& error) {
  return error.message();
}

bool is_out_of_space(const std::error_code& error) {
  return error.value() == ENOSPC || error.value() == EDQUOT || error.value() == EFBIG;
}

std::error_code File::close() {
  const int fd = static_cast<int>(release());
  return fd < 0 || ::close(fd) == 0 ? std::error_code() : posix::last_error();
}

std::error_code File::read(void* out_bytes, std::uint64_t size_bytes, std::uint64_t& out_read_bytes) const {
  ssize_t got = -1;
  do {
    got = ::read(posix::descriptor(*this), out_bytes, piece(size_bytes));
  } while (got < 0 && errno == EINTR);
  out_read_bytes = got < 0 ? 0 : static_cast<std::uint64_t>(got);
  return got < 0 ? posix::last_error() : std::error_code();
}

std::error_code File::write(const void* bytes, std::uint64_t size_bytes, std::uint64_t& out_written_bytes) const {
  ssize_t put = -1;
  do {
    put = ::write(posix::descriptor(*this), bytes, piece(size_bytes));
  } while (put < 0 && errno == EINTR);
  out_written_bytes = put < 0 ? 0 : static_cast<std::uint64_t>(put);
  return put < 0 ? posix::last_error() : std::error_code();
}

std::error_code File::seek(std::uint64_t offset) const {
  return ::lseek(posix::descriptor(*this), static_cast<off_t>(offset), SEEK_SET) < 0 ? posix::last_error() : std::error_code();
}

std::error_code File::flush() const {
  return ::fsync(posix::descriptor(*this)) != 0 ? posix::last_error() : std::error_code();
}

InputFile open_input(const std::string& path) {
  InputFile input;
  // Without O_NONBLOCK, opening a pipe would wait for a writer.
  input.file = File(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!input.file || ::fstat(posix::descriptor(input.file), &info) != 0) {
    input.error = posix::last_error();
    return input;
  }
  input.kind = S_ISREG(info.st_mode) ? FileKind::regular : S_ISDIR(info.st_mode) ? FileKind::folder : FileKind::other;
  input.size_bytes = static_cast<std::uint64_t>(info.st_size);
  return input;
}

File open_output(const std::string& path, bool append, std::error_code& out_error) {
  const int how = append ? O_APPEND : O_TRUNC;
  File file(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | how, 0666));
  out_error = file ? std::error_code() : posix::last_error();
  return file;
}

std::FILE* open_stream(File& file, const char* mode, std::error_code& out_error) {
  std::FILE* const stream = ::fdopen(posix::descriptor(file), mode);
  out_error = stream != nullptr ? std::error_code() : posix::last_error();
  if (stream != nullptr) file.release();
  return stream;
}

std::error_code copy_file(const std::string& from, const std::string& to) {
  std::error_code error;
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing, error);
  return error;
}

LinkKind link_kind(const std::string& path) {
  struct stat info {};
  if (::lstat(path.c_str(), &info) != 0) return LinkKind::none;
  if (S_ISLNK(info.st_mode)) return LinkKind::symbolic;
  return S_ISREG(info.st_mode) && info.st_nlink > 1 ? LinkKind::hard : LinkKind::none;
}

}  // namespace tenon::platform
