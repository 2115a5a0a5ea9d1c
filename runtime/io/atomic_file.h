// SPDX-License-Identifier: Apache-2.0
// io/atomic_file.h - atomic replacement of a file.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "platform/file.h"
#include "platform/replacement_file.h"

namespace tenon::io {

/// What a replaced file survives: a crash of the system, at the cost of a flush to the disk, or only that of the process.
enum class Durability { synced, until_crash };

/// Writes a temporary file in the folder of `path` (platform/replacement_file.h) and, on commit, flushes it to disk and renames it to
/// `path`. Until then, and on any failure, `path` is unchanged. The new file has the permissions of the one that it replaces. Of several
/// writers of one path the last to commit wins, with its whole file.
///
/// Symbolic links are followed, and devices and pipes are written in place: see find_output.
///
/// Threads  one at a time.
class AtomicFile {
 public:
  /// Errors  the folder is missing or not writable; those of find_output.
  explicit AtomicFile(const std::string& path);

  /// Errors  disk full etc., with the path, the bytes written and the bytes missing.
  void write(const void* bytes, std::uint64_t size_bytes);
  /// Replaces `path` by the new file.
  void commit(Durability durability = Durability::synced);

 private:
  platform::File& file() { return is_in_place_ ? in_place_ : replacement_.file(); }
  [[noreturn]] void fail(const std::string& what, const std::error_code& error, std::uint64_t missing_bytes);

  std::string path_;  ///< the target, with links followed
  bool is_in_place_ = false;
  platform::File in_place_;  ///< a device or pipe
  platform::ReplacementFile replacement_;
  std::uint64_t written_bytes_ = 0;
};

/// Writes `content` to a file atomically.
void write_atomically(const std::string& path, std::string_view content, Durability durability = Durability::synced);

}  // namespace tenon::io
