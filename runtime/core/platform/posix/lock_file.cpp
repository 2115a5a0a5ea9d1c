// SPDX-License-Identifier: Apache-2.0
#include "platform/lock_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "platform/posix/descriptor.h"

namespace tenon::platform {
namespace {

/// True if the name still refers to the open file: the last holder may have removed it between open and lock.
bool is_file_at(int fd, const std::string& path) {
  struct stat open_file {
  }, named{};
  return ::fstat(fd, &open_file) == 0 && ::lstat(path.c_str(), &named) == 0 && open_file.st_dev == named.st_dev &&
         open_file.st_ino == named.st_ino;
}

}  // namespace

LockFile::State LockFile::acquire(const std::string& path, const std::string& text) {
  path_ = path;
  int fd = -1;
  do {
    file_ = File(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666));
    if (!file_) {
      error_ = posix::last_error();
      return State::failed;
    }
    fd = posix::descriptor(file_);
    struct stat info {};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
      static_cast<void>(file_.close());
      return State::not_regular;
    }
    if (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
      const bool taken = errno == EWOULDBLOCK;
      char owner[300];
      const ssize_t got = taken ? ::pread(fd, owner, sizeof owner, 0) : 0;
      owner_.assign(owner, got > 0 ? static_cast<std::size_t>(got) : 0);
      static_cast<void>(file_.close());
      return taken ? State::held_by_another : State::unsupported;
    }
  } while (!is_file_at(fd, path));
  // Without the text the lock still holds; a full disk is reported by what is saved.
  if (::ftruncate(fd, 0) == 0) static_cast<void>(!::pwrite(fd, text.data(), text.size(), 0));
  return State::held;
}

void LockFile::remove() {
  if (file_) ::unlink(path_.c_str());  // while the lock is still held
}

}  // namespace tenon::platform
