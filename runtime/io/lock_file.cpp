// SPDX-License-Identifier: Apache-2.0
#include "io/lock_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string>

#include <tenon/error.h>

namespace tenon::io {
namespace {

/// True if the name still refers to the open file: the last holder may have removed it between open and lock.
bool is_file_at(const Descriptor& file, const std::string& path) {
  struct stat open_file {
  }, named{};
  return ::fstat(file.get(), &open_file) == 0 && ::lstat(path.c_str(), &named) == 0 && open_file.st_dev == named.st_dev &&
         open_file.st_ino == named.st_ino;
}

std::string this_process() {
  char host[256] = "";
  static_cast<void>(::gethostname(host, sizeof host - 1));
  return fmt::format("process {} on {}", ::getpid(), host);
}

/// What the holder wrote, on one line; another process may be about to write it.
std::string owner(const Descriptor& file) {
  char text[300];
  const ssize_t got = ::pread(file.get(), text, sizeof text, 0);
  std::string name(text, got > 0 ? static_cast<std::size_t>(got) : 0);
  for (char& c : name) c = c >= ' ' && c <= '~' ? c : ' ';
  while (!name.empty() && name.back() == ' ') name.pop_back();
  return name.empty() ? "another process" : name;
}

}  // namespace

LockFile::LockFile(const std::string& path) : path_(path) {
  for (;;) {
    file_ = Descriptor(::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0666));
    if (!file_) throw Error(path + ": cannot be written: " + system_message(errno));
    struct stat info {};
    if (::fstat(file_.get(), &info) != 0 || !S_ISREG(info.st_mode)) throw Error(path + ": expected a regular file; remove it");
    if (::flock(file_.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) throw Error(fmt::format("{}: locked by {}", path, owner(file_)));
      file_.close();
      return;
    }
    if (is_file_at(file_, path)) break;
  }
  const std::string name = this_process() + "\n";
  // Without the name the lock still holds; a full disk is reported by what is saved.
  if (::ftruncate(file_.get(), 0) != 0 || ::pwrite(file_.get(), name.data(), name.size(), 0) < 0) return;
}

LockFile::~LockFile() {
  if (file_) ::unlink(path_.c_str());  // while the lock is still held
}

}  // namespace tenon::io
