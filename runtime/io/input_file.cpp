// SPDX-License-Identifier: Apache-2.0
#include "io/input_file.h"

#include <cstddef>
#include <system_error>
#include <utility>

#include <tenon/error.h>

namespace tenon::io {

OpenFile open_for_reading(const std::string& path) {
  platform::InputFile input = platform::open_input(path);
  if (input.error == std::errc::no_such_file_or_directory) throw Error(path + ": file not found");
  if (input.error) throw Error(path + ": cannot be opened: " + platform::message_of(input.error));
  if (input.kind == platform::FileKind::folder) throw Error(path + ": expected a file, got a folder");
  if (input.kind != platform::FileKind::regular) throw Error(path + ": expected a file, got a device or pipe");
  return {std::move(input.file), input.size_bytes};
}

void read_exactly(const platform::File& file, const std::string& path, void* out_bytes, std::uint64_t size_bytes) {
  auto* to = static_cast<std::byte*>(out_bytes);
  std::uint64_t done = 0;
  while (done < size_bytes) {
    std::uint64_t got = 0;
    if (const std::error_code error = file.read(to + done, size_bytes - done, got)) {
      throw Error(path + ": cannot be read: " + platform::message_of(error));
    }
    if (got == 0)
      throw Error(path + ": expected " + std::to_string(size_bytes) + " more bytes, got " + std::to_string(done) +
                  ": the file was truncated while reading");
    done += got;
  }
}

}  // namespace tenon::io
