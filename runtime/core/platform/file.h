// SPDX-License-Identifier: Apache-2.0
// platform/file.h - open files of the system. Paths are UTF-8; on Windows they may be longer than 260 characters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

namespace tenon::platform {

/// The system's text of an error in UTF-8: "No space left on device".
std::string message_of(const std::error_code& error);

/// Whether there is no more space for a file: the disk is full, or a limit of the user or of the file's size is reached.
bool is_out_of_space(const std::error_code& error);

/// Owns an open file: a descriptor on POSIX, a HANDLE on Windows. The offset is the file's own. Reads and writes that a signal interrupts
/// are continued.
///
/// Threads  one at a time.
class File {
 public:
  File() = default;
  explicit File(std::intptr_t native) : native_(native) {}
  ~File() { static_cast<void>(close()); }
  File(File&& other) noexcept : native_(other.release()) {}
  File& operator=(File&& other) noexcept {
    if (this != &other) {
      static_cast<void>(close());
      native_ = other.release();
    }
    return *this;
  }
  explicit operator bool() const { return native_ != none; }
  std::intptr_t native() const { return native_; }
  std::intptr_t release() { return std::exchange(native_, none); }

  /// Reports a deferred write error.
  std::error_code close();
  /// Reads up to `size_bytes`, perhaps fewer; 0 bytes at the end of the file.
  std::error_code read(void* out_bytes, std::uint64_t size_bytes, std::uint64_t& out_read_bytes) const;
  /// Writes up to `size_bytes`, perhaps fewer.
  std::error_code write(const void* bytes, std::uint64_t size_bytes, std::uint64_t& out_written_bytes) const;
  /// Continues at this byte.
  std::error_code seek(std::uint64_t offset) const;
  /// Returns when the content is on the disk.
  std::error_code flush() const;

 private:
  static constexpr std::intptr_t none = -1;
  std::intptr_t native_ = none;
};

enum class FileKind : std::uint8_t { regular, folder, other };

/// A file that is open for reading, or the error.
struct InputFile {
  File file;
  FileKind kind = FileKind::other;  ///< other: a device, a pipe or a socket
  std::uint64_t size_bytes = 0;
  std::error_code error;
};

/// Opens a file, or what a link leads to. Never waits for the other end of a pipe. Others may replace or remove the file meanwhile.
InputFile open_input(const std::string& path);

/// Opens a regular file for writing, and creates it if there is none. What it has is kept, and written after, if `append`. Symbolic links
/// are not followed.
File open_output(const std::string& path, bool append, std::error_code& out_error);

/// A stream of C that owns the file; null, and the file is unchanged, if there is none. `mode` is "rb", "wb" or "ab".
std::FILE* open_stream(File& file, const char* mode, std::error_code& out_error);

/// Copies a regular file onto another, or to a new one.
std::error_code copy_file(const std::string& from, const std::string& to);

/// Whether a name is one of several of the same file, or leads elsewhere. `none` also if there is no such file.
enum class LinkKind : std::uint8_t { none, symbolic, hard };
LinkKind link_kind(const std::string& path);

}  // namespace tenon::platform
