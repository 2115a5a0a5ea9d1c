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

/// Writes a temporary file in the folder of `path` and, on commit, flushes it to disk and renames it to `path`. Until then, and on any
/// failure, `path` is unchanged. The new file has the permissions of the one that it replaces.
///
/// The temporary file has no name until commit, where the system supports that (O_TMPFILE), so that a killed process leaves nothing;
/// elsewhere it has a random one, `.<name>.<digits>.tmp`. A link or file of that name, planted in a shared folder, is never written to.
/// Of several writers of one path the last to commit wins, with its whole file.
///
/// Symbolic links are followed, and devices and pipes are written in place: see find_output.
///
/// Threads  one at a time.
class AtomicFile {
 public:
  /// Errors  the folder is missing or not writable; those of find_output.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Errors  disk full etc., with the path, the bytes written and the bytes missing.
  void write(const void* bytes, std::uint64_t size_bytes);
  /// Replaces `path` by the new file.
  void commit(Durability durability = Durability::synced);

 private:
  void open_temporary();
  void remove_temporary();
  void name_temporary();
  [[noreturn]] void fail(const std::string& what, int error, std::uint64_t missing_bytes);

  std::string path_;       ///< the target, with links followed
  std::string name_;       ///< its name in the folder
  std::string temporary_;  ///< likewise; empty while the temporary file has no name
  Descriptor folder_;      ///< closed for a device or pipe, which is written in place
  Descriptor file_;
  std::uint64_t written_bytes_ = 0;
};

/// Writes `content` to a file atomically.
void write_atomically(const std::string& path, std::string_view content, Durability durability = Durability::synced);

}  // namespace tenon::io
