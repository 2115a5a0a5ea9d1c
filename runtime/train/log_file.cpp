// SPDX-License-Identifier: Apache-2.0
#include "train/log_file.h"

#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <tenon/error.h>

namespace tenon {

LogFile::LogFile(std::string path, Mode mode) : path_(std::move(path)), file_(nullptr) {
  const std::filesystem::path folder = std::filesystem::path(path_).parent_path();
  std::error_code code;
  if (!folder.empty()) std::filesystem::create_directories(folder, code);
  if (code) throw Error(fmt::format("{}: its folder cannot be created: {}", path_, code.message()));
  io::Descriptor opened = io::open_growing(path_, mode);
  file_ = ::fdopen(opened.get(), mode == Mode::append ? "ab" : "wb");
  if (file_ == nullptr) throw Error(fmt::format("{}: cannot be written: {}", path_, std::strerror(errno)));
  opened.release();
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
