// SPDX-License-Identifier: Apache-2.0
#include "io/output_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include <tenon/error.h>

namespace tenon::io {
namespace fs = std::filesystem;
namespace {

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw Error(path + ": cannot be written: " + reason);
}

/// The descriptor that a link in /proc/self/fd stands for. /dev/stdout and /dev/fd/N lead there.
std::optional<int> own_descriptor(const fs::path& link) {
  std::error_code error;
  const fs::path descriptors = fs::canonical("/proc/self/fd", error);
  if (error || fs::canonical(link.parent_path(), error) != descriptors || error) return std::nullopt;
  const std::string number = link.filename().string();
  int fd = -1;
  const auto [end, code] = std::from_chars(number.data(), number.data() + number.size(), fd);
  return code == std::errc() && end == number.data() + number.size() ? std::optional(fd) : std::nullopt;
}

/// Opens a device or a pipe as it is.
Descriptor open_special(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a reader, possibly forever.
  Descriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  if (!file) fail(path, errno == ENXIO ? "it is a pipe or socket that nobody reads; start its reader first" : system_message(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) != 0 || S_ISREG(info.st_mode)) fail(path, "it changed while it was opened");
  const int flags = ::fcntl(file.get(), F_GETFL);
  if (flags < 0 || ::fcntl(file.get(), F_SETFL, flags & ~O_NONBLOCK) != 0) fail(path, system_message(errno));
  return file;
}

}  // namespace

OutputTarget find_output(const std::string& path) {
  constexpr int max_links = 40;  // as in Linux
  fs::path at = path;
  for (int links = 0;; ++links) {
    struct stat info {};
    if (::lstat(at.c_str(), &info) != 0) return {at.string(), {}};  // a new file, or a folder that does not exist
    if (S_ISDIR(info.st_mode)) fail(path, "it is a folder");
    if (S_ISREG(info.st_mode)) return {at.string(), {}};
    if (!S_ISLNK(info.st_mode)) return {at.string(), open_special(at.string())};
    if (links == max_links) fail(path, system_message(ELOOP));
    if (const std::optional<int> fd = own_descriptor(at)) {
      Descriptor same(::fcntl(*fd, F_DUPFD_CLOEXEC, 3));
      if (!same) fail(path, system_message(errno));
      return {at.string(), std::move(same)};
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(at, error);
    if (error) fail(path, error.message());
    if (info.st_uid != ::geteuid() && info.st_uid != 0) {
      fail(path, at.string() + " is a symbolic link to " + target.string() + " that user " + std::to_string(info.st_uid) +
                     " made; expected one of your own: give the path of the file itself, or remove the link");
    }
    at = at.parent_path() / target;
  }
}

Descriptor open_growing(const std::string& path, Growth growth) {
  OutputTarget target = find_output(path);
  if (target.in_place) return std::move(target.in_place);
  const int how = growth == Growth::append ? O_APPEND : O_TRUNC;
  Descriptor file(::open(target.path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | how, 0666));
  if (!file) fail(path, system_message(errno));
  return file;
}

}  // namespace tenon::io
