// SPDX-License-Identifier: Apache-2.0
#include "platform/output_target.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "platform/posix/descriptor.h"

namespace tenon::platform {
namespace fs = std::filesystem;
namespace {

OutputTarget refuse(const std::string& problem) {
  return {"", {}, problem};
}

std::string text_of_errno() {
  return message_of(posix::last_error());
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
OutputTarget open_special(const std::string& path) {
  // Without O_NONBLOCK, opening a pipe would wait for a reader, possibly forever.
  File file(::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW));
  if (!file) return refuse(errno == ENXIO ? "it is a pipe or socket that nobody reads; start its reader first" : text_of_errno());
  const int fd = posix::descriptor(file);
  struct stat info {};
  if (::fstat(fd, &info) != 0 || S_ISREG(info.st_mode)) return refuse("it changed while it was opened");
  const int flags = ::fcntl(fd, F_GETFL);
  if (flags < 0 || ::fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) != 0) return refuse(text_of_errno());
  return {path, std::move(file), ""};
}

}  // namespace

OutputTarget find_output(const std::string& path) {
  constexpr int max_links = 40;  // as in Linux
  fs::path at = path;
  for (int links = 0;; ++links) {
    struct stat info {};
    if (::lstat(at.c_str(), &info) != 0) return {at.string(), {}, ""};  // a new file, or a folder that does not exist
    if (S_ISDIR(info.st_mode)) return refuse("it is a folder");
    if (S_ISREG(info.st_mode)) return {at.string(), {}, ""};
    if (!S_ISLNK(info.st_mode)) return open_special(at.string());
    if (links == max_links) return refuse(message_of({ELOOP, std::generic_category()}));
    if (const std::optional<int> fd = own_descriptor(at)) {
      File same(::fcntl(*fd, F_DUPFD_CLOEXEC, 3));
      if (!same) return refuse(text_of_errno());
      return {at.string(), std::move(same), ""};
    }
    std::error_code error;
    const fs::path target = fs::read_symlink(at, error);
    if (error) return refuse(error.message());
    if (info.st_uid != ::geteuid() && info.st_uid != 0) {
      return refuse(at.string() + " is a symbolic link to " + target.string() + " that user " + std::to_string(info.st_uid) +
                    " made; expected one of your own: give the path of the file itself, or remove the link");
    }
    at = at.parent_path() / target;
  }
}

}  // namespace tenon::platform
