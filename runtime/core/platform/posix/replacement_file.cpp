// SPDX-License-Identifier: Apache-2.0
#include "platform/replacement_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "platform/posix/descriptor.h"
#include "platform/temporary_name.h"

namespace tenon::platform {
namespace {

std::string path_of_descriptor(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace

std::error_code ReplacementFile::open_folder(const std::string& folder, const std::string& name) {
  folder_ = folder;
  name_ = name;
  folder_file_ = File(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return folder_file_ ? std::error_code() : posix::last_error();
}

std::error_code ReplacementFile::create() {
  const int folder = posix::descriptor(folder_file_);
#ifdef O_TMPFILE
  file_ = File(::openat(folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  // Without /proc it could not be given a name.
  if (file_ && ::access(path_of_descriptor(posix::descriptor(file_)).c_str(), F_OK) != 0) static_cast<void>(file_.close());
#endif
  while (!file_) {
    temporary_ = temporary_name(name_);
    file_ = File(::openat(folder, temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
    if (file_ || errno == EEXIST) continue;
    temporary_.clear();
    return posix::last_error();
  }
  struct stat replaced {};
  if (::fstatat(folder, name_.c_str(), &replaced, AT_SYMLINK_NOFOLLOW) == 0) {
    static_cast<void>(::fchmod(posix::descriptor(file_), replaced.st_mode & 0777));
  }
  return {};
}

std::error_code ReplacementFile::name() {
  while (temporary_.empty()) {
    temporary_ = temporary_name(name_);
    const std::string open_file = path_of_descriptor(posix::descriptor(file_));
    if (::linkat(AT_FDCWD, open_file.c_str(), posix::descriptor(folder_file_), temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0) break;
    const std::error_code error = posix::last_error();
    temporary_.clear();  // it is not ours, or there is none
    if (error != std::errc::file_exists) return error;
  }
  return {};
}

std::error_code ReplacementFile::replace(bool synced) {
  const int folder = posix::descriptor(folder_file_);
  if (::renameat(folder, temporary_.c_str(), folder, name_.c_str()) != 0) return posix::last_error();
  temporary_.clear();
  if (synced) static_cast<void>(::fsync(folder));  // some file systems cannot (EINVAL), and the file is valid either way
  return {};
}

void ReplacementFile::discard() {
  if (!temporary_.empty()) ::unlinkat(posix::descriptor(folder_file_), temporary_.c_str(), 0);
  temporary_.clear();
}

}  // namespace tenon::platform
