// SPDX-License-Identifier: Apache-2.0
#include "io/mapped_file.h"

#include <cstddef>
#include <system_error>
#include <utility>

#include <tenon/error.h>

#include "io/input_file.h"

namespace tenon::io {

std::shared_ptr<const MappedFile> MappedFile::open(const std::string& path) {
  const OpenFile input = open_for_reading(path);
  platform::Mapping mapping;
  if (input.size_bytes > 0) {  // the system does not map zero bytes
    std::error_code error;
    mapping = platform::Mapping(input.file, static_cast<std::size_t>(input.size_bytes), error);
    if (error) throw Error(path + ": cannot be mapped: " + platform::message_of(error));
  }
  return std::shared_ptr<const MappedFile>(new MappedFile(std::move(mapping), ""));
}

std::shared_ptr<const MappedFile> MappedFile::of(std::string content) {
  return std::shared_ptr<const MappedFile>(new MappedFile(platform::Mapping(), std::move(content)));
}

}  // namespace tenon::io
