// SPDX-License-Identifier: Apache-2.0
// io/atomic_file.cpp - temporary file, fsync, rename, fsync of the folder.
#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <random>

#include <fmt/core.h>
#include <tenon/error.h>

#include "io/output_target.h"

namespace tenon::io {
namespace {

std::string path_of_descriptor(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) {
  OutputTarget target = find_output(path);
  path_ = target.path;
  if (target.in_place) {
    file_ = std::move(target.in_place);
    return;
  }
  const std::filesystem::path whole(path_);
  const std::string folder = whole.has_parent_path() ? whole.parent_path().string() : ".";
  name_ = whole.filename().string();
  if (name_.empty()) throw Error(path + ": cannot be written: expected the name of a file");
  folder_ = Descriptor(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_) {
    const bool missing = errno == ENOENT || errno == ENOTDIR;
    throw Error(path + ": cannot be written: folder " + folder + (missing ? " does not exist" : ": " + system_message(errno)));
  }
  open_temporary();
  struct stat replaced {};
  if (::fstatat(folder_.get(), name_.c_str(), &replaced, AT_SYMLINK_NOFOLLOW) == 0) (void)::fchmod(file_.get(), replaced.st_mode & 0777);
}

AtomicFile::~AtomicFile() {
  remove_temporary();
}

void AtomicFile::open_temporary() {
#ifdef O_TMPFILE
  file_ = Descriptor(::openat(folder_.get(), ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  // Without /proc it could not be given a name.
  if (file_ && ::access(path_of_descriptor(file_.get()).c_str(), F_OK) == 0) return;
#endif
  do {
    name_temporary();
    file_ = Descriptor(::openat(folder_.get(), temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  } while (!file_ && errno == EEXIST);
  if (file_) return;
  const int error = errno;
  temporary_.clear();
  throw Error(path_ + ": cannot be written: " + system_message(error));
}

void AtomicFile::name_temporary() {
  std::random_device random;
  // Names have at most 255 bytes.
  temporary_ = fmt::format(".{}.{:08x}{:08x}.tmp", name_.substr(0, 200), random(), random());
}

void AtomicFile::remove_temporary() {
  if (!temporary_.empty()) ::unlinkat(folder_.get(), temporary_.c_str(), 0);
  temporary_.clear();
}

void AtomicFile::fail(const std::string& what, int error, std::uint64_t missing_bytes) {
  remove_temporary();
  file_.close();
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  std::string text = path_ + ": " + what + ": " + system_message(error) + " after " + std::to_string(written_bytes_) + " bytes";
  if (missing_bytes > 0) text += ", " + std::to_string(missing_bytes) + " more expected";
  if (folder_) text += "; the previous file is unchanged";
  if (full) text += "; free some space or choose another folder";
  throw Error(text);
}

void AtomicFile::write(const void* bytes, std::uint64_t size_bytes) {
  if (!file_) throw Error(Status::internal, path_ + ": write after commit");
  const auto* from = static_cast<const std::byte*>(bytes);
  while (size_bytes > 0) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(size_bytes, std::uint64_t{1} << 30));
    const ssize_t put = ::write(file_.get(), from, part);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) fail("cannot be written", errno, size_bytes);
    from += put;
    size_bytes -= static_cast<std::uint64_t>(put);
    written_bytes_ += static_cast<std::uint64_t>(put);
  }
}

void AtomicFile::commit(Durability durability) {
  const bool synced = durability == Durability::synced;
  if (!file_) throw Error(Status::internal, path_ + ": committed twice");
  if (folder_) {
    if (synced && ::fsync(file_.get()) != 0) fail("cannot be flushed to disk", errno, 0);
    while (temporary_.empty()) {
      name_temporary();
      if (::linkat(AT_FDCWD, path_of_descriptor(file_.get()).c_str(), folder_.get(), temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0) break;
      const int error = errno;
      temporary_.clear();  // it is not ours, or there is none
      if (error != EEXIST) fail("cannot be named", error, 0);
    }
    if (::renameat(folder_.get(), temporary_.c_str(), folder_.get(), name_.c_str()) != 0) fail("cannot be replaced", errno, 0);
    temporary_.clear();
    if (synced)
      (void)::fsync(folder_.get());  // makes the name durable; some file systems cannot (EINVAL), and the file is valid either way
  }
  if (!file_.close()) throw Error(path_ + ": written, but the system reported an error when it was closed: " + system_message(errno));
}

void write_atomically(const std::string& path, std::string_view content, Durability durability) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit(durability);
}

}  // namespace tenon::io
