// SPDX-License-Identifier: Apache-2.0
// loader/regular_file.h - opens files of search folders, which need not be what their names promise.
#pragma once

#include <filesystem>
#include <fstream>
#include <system_error>

namespace tenon::loader {

/// A stream without a file if there is none, or if it is not a regular one: opening a pipe would wait for its other end.
inline std::ifstream open_regular(const std::filesystem::path& file) {
  std::error_code error;
  return std::filesystem::is_regular_file(file, error) ? std::ifstream(file, std::ios::binary) : std::ifstream();
}

}  // namespace tenon::loader
