// SPDX-License-Identifier: Apache-2.0
// io/atomic_file.h - atomic replacement of a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/posix_file.h"

namespace tenon::io {

/// What a replaced file survives: a crash of the system, at the cost of a flush to the disk, or only that of the process.
enum class Durability { synced, until_crash };

/// Writes `<path>.tmp` and, on commit, flushes it to disk and renames it to `path`. Until then, and on any failure, `path` is unchanged.
/// On an error the temporary file is removed; if the process is killed it remains, and the next writer truncates it.
///
/// Threads  one thread at a time; a second writer of the same path gets an error.
class AtomicFile {
 public:
  /// Errors  the folder is missing or not writable; another process is writing the same file.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Errors  disk full etc., with the path, the bytes written and the bytes missing.
  void write(const void* bytes, std::uint64_t size_bytes);
  /// Replaces `path` by the new file.
  void commit(Durability durability = Durability::synced);

 private:
  [[noreturn]] void fail(const std::string& what, int error, std::uint64_t missing_bytes);

  std::string path_;  ///< the target, with links followed
  std::string temporary_;
  Descriptor file_;
  std::uint64_t written_bytes_ = 0;
};

/// Writes `content` to a file atomically.
void write_atomically(const std::string& path, std::string_view content, Durability durability = Durability::synced);

}  // namespace tenon::io
