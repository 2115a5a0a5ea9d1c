// SPDX-License-Identifier: Apache-2.0
// io/input_file.h - regular files that are read, with errors that name them.
#pragma once

#include <cstdint>
#include <string>

#include "platform/file.h"

namespace tenon::io {

/// A regular file open for reading, and its size.
struct OpenFile {
  platform::File file;
  std::uint64_t size_bytes = 0;
};

/// Opens a regular file, or a link to one. Never waits: a pipe, socket, device or folder of that name is refused.
/// Errors  not found, not a regular file, unreadable; the text names the path.
OpenFile open_for_reading(const std::string& path);

/// Reads exactly `size_bytes` more bytes. Errors  the file ends before; the text names the path and both counts.
void read_exactly(const platform::File& file, const std::string& path, void* out_bytes, std::uint64_t size_bytes);

}  // namespace tenon::io
