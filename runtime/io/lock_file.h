// SPDX-License-Identifier: Apache-2.0
// io/lock_file.h - a file by which one process keeps others out of a folder.
#pragma once

#include <string>

#include "platform/lock_file.h"

namespace tenon::io {

/// Holds an advisory lock on a file that says who holds it: "process 1234 on host". The system releases the lock if the process dies; the
/// destructor also removes the file. On a file system without locks there is none, with a warning by the caller (`held` is false).
class LockFile {
 public:
  /// Errors  the file cannot be made; somebody else holds the lock, named in the text.
  explicit LockFile(const std::string& path);
  bool held() const { return file_.held(); }

 private:
  platform::LockFile file_;
};

}  // namespace tenon::io
