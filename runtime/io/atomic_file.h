// io/atomic_file.h - a file that replaces another in one step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io/posix_file.h"

namespace tenon::io {

/// Writes `<path>.tmp` and, on commit, brings it to disk and renames it to `path`. Until then, and whatever fails, `path` is untouched:
/// a full disk removes the temporary file; a killed process leaves it, and the next writer starts it anew.
///
/// Threads  one thread at a time; two writers of one path do not meet: the second is refused.
class AtomicFile {
 public:
  /// Errors  the folder is missing or not writable; another process is writing the same file.
  explicit AtomicFile(const std::string& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Errors  disk full and the like: path, bytes written, bytes wanted.
  void write(const void* bytes, std::uint64_t size_bytes);
  /// After this `path` is the new file, also after a loss of power.
  void commit();

 private:
  [[noreturn]] void fail(const std::string& what, int error, std::uint64_t missing_bytes);

  std::string path_;  ///< what the caller named, links followed
  std::string temporary_;
  Descriptor file_;
  std::uint64_t written_bytes_ = 0;
};

/// All of `content` at once.
void write_atomically(const std::string& path, std::string_view content);

}  // namespace tenon::io
