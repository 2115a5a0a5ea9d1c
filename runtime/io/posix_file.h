// SPDX-License-Identifier: Apache-2.0
// io/posix_file.h - a file descriptor that closes itself, and complete reads from it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::io {

/// The message of an errno value: "No space left on device".
std::string system_message(int error);

/// Owns a file descriptor.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  /// False if the system reports a deferred write error.
  bool close();
  int release();

 private:
  int fd_ = -1;
};

/// A regular file open for reading, and its size.
struct OpenFile {
  Descriptor descriptor;
  std::uint64_t size_bytes = 0;
};

/// Opens a regular file, or a link to one. Never waits: a pipe, socket, device or folder of that name is refused.
/// Errors  not found, not a regular file, unreadable; the text names the path.
OpenFile open_for_reading(const std::string& path);

/// Reads exactly `size_bytes` more bytes. Errors  the file ends before; the text names the path and both counts.
void read_exactly(const Descriptor& file, const std::string& path, void* out_bytes, std::uint64_t size_bytes);

}  // namespace tenon::io
