// SPDX-License-Identifier: Apache-2.0
// io/atomic_file.cpp - temporary file, fsync, rename, fsync of the folder.
#include "io/atomic_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include <tenon/error.h>

namespace tenon::io {
namespace fs = std::filesystem;
namespace {

std::string folder_of(const std::string& path) {
  const fs::path folder = fs::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// Follows a symbolic link, so that its target is replaced and not the link.
std::string follow_links(const std::string& path) {
  std::error_code ignored;
  if (!fs::is_symlink(path, ignored)) return path;
  const fs::path target = fs::weakly_canonical(path, ignored);
  return ignored ? path : target.string();
}

/// True if the name still refers to the open file: another writer may have renamed it between open and lock.
bool is_file_at(const Descriptor& file, const std::string& path) {
  struct stat open_file {
  }, named{};
  return ::fstat(file.get(), &open_file) == 0 && ::lstat(path.c_str(), &named) == 0 && open_file.st_dev == named.st_dev &&
         open_file.st_ino == named.st_ino;
}

/// Opens the temporary file, locked against other writers and empty. The system releases the lock if the process dies.
Descriptor open_temporary(const std::string& path, const std::string& temporary) {
  for (;;) {
    Descriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
    if (!file) throw Error(path + ": cannot be written: " + temporary + ": " + system_message(errno));
    if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
      throw Error(path + ": cannot be written: " + (errno == EWOULDBLOCK ? "another process is writing it now" : system_message(errno)));
    }
    if (!is_file_at(file, temporary)) continue;
    if (::ftruncate(file.get(), 0) != 0) throw Error(path + ": cannot be written: " + system_message(errno));
    return file;
  }
}

}  // namespace

AtomicFile::AtomicFile(const std::string& path) : path_(follow_links(path)), temporary_(path_ + ".tmp") {
  std::error_code ignored;
  if (!fs::is_directory(folder_of(path_), ignored))
    throw Error(path + ": cannot be written: folder " + folder_of(path_) + " does not exist");
  if (fs::is_directory(path_, ignored)) throw Error(path + ": cannot be written: it is a folder");
  file_ = open_temporary(path, temporary_);
}

AtomicFile::~AtomicFile() {
  if (file_) ::unlink(temporary_.c_str());  // while the lock is still held
}

void AtomicFile::fail(const std::string& what, int error, std::uint64_t missing_bytes) {
  ::unlink(temporary_.c_str());
  file_.close();
  const bool full = error == ENOSPC || error == EDQUOT || error == EFBIG;
  std::string text = path_ + ": " + what + ": " + system_message(error) + " after " + std::to_string(written_bytes_) + " bytes";
  if (missing_bytes > 0) text += ", " + std::to_string(missing_bytes) + " more expected";
  text += "; the previous file is unchanged";
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
  if (synced && ::fsync(file_.get()) != 0) fail("cannot be flushed to disk", errno, 0);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail("cannot be replaced", errno, 0);
  // The new name is durable once its folder is. Some file systems cannot sync a folder (EINVAL), and the file is valid either way.
  if (synced) {
    const std::string folder = folder_of(path_);
    const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (opened) (void)::fsync(opened.get());
  }
  if (!file_.close()) throw Error(path_ + ": written, but the system reported an error when it was closed: " + system_message(errno));
}

void write_atomically(const std::string& path, std::string_view content, Durability durability) {
  AtomicFile file(path);
  file.write(content.data(), content.size());
  file.commit(durability);
}

}  // namespace tenon::io
