// SPDX-License-Identifier: Apache-2.0
// platform/lock_file.h - a file that only one process has open.
#pragma once

#include <string>
#include <system_error>

#include "platform/file.h"

namespace tenon::platform {

/// Keeps other processes from taking the same file. The system lets go of it if the process dies.
class LockFile {
 public:
  enum class State : std::uint8_t {
    held,
    held_by_another,  ///< `owner()` is what it wrote
    unsupported,      ///< the file system has no locks
    not_regular,      ///< the name is that of another kind of file
    failed,           ///< `error()`
  };
  LockFile() = default;
  ~LockFile() { remove(); }
  LockFile(const LockFile&) = delete;
  LockFile& operator=(const LockFile&) = delete;

  /// Creates the file if there is none, and never waits. The text of whoever holds the file is replaced by `text`, if there is space.
  State acquire(const std::string& path, const std::string& text);
  bool held() const { return static_cast<bool>(file_); }
  const std::string& owner() const { return owner_; }
  const std::error_code& error() const { return error_; }

 private:
  void remove();

  std::string path_;
  File file_;
  std::string owner_;
  std::error_code error_;
};

}  // namespace tenon::platform
