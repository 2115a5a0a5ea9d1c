// SPDX-License-Identifier: Apache-2.0
#include "train/log/log_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <tenon/error.h>

#include "platform/path.h"

namespace tenon {

LogFile::LogFile(std::string path, Mode mode) : path_(std::move(path)), file_(nullptr) {
  const std::filesystem::path folder = platform::path_of(path_).parent_path();
  std::error_code code;
  if (!folder.empty()) std::filesystem::create_directories(folder, code);
  if (code) throw Error(fmt::format("{}: its folder cannot be created: {}", path_, code.message()));
  file_ = io::open_growing_stream(path_, mode);
}

LogFile::~LogFile() {
  std::fclose(file_);
}

void LogFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size() || std::fflush(file_) != 0) {
    throw Error(fmt::format("{}: writing {} bytes failed: {}", path_, bytes.size(), std::strerror(errno)));
  }
}

}  // namespace tenon
