// SPDX-License-Identifier: Apache-2.0
// train/log/log_file.h - a log file of a training run that reports write errors.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "io/output_target.h"

namespace tenon {

/// Threads  one at a time.
class LogFile {
 public:
  using Mode = io::Growth;
  /// Creates missing parent folders. Errors  those of io::open_growing.
  explicit LogFile(std::string path, Mode mode = Mode::truncate);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// Writes and flushes. Errors  disk full etc.
  void write(std::string_view bytes);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::FILE* file_;
};

}  // namespace tenon
