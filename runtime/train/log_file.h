// train/log_file.h - a file that a training run adds to, and that says so when it cannot.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace tenon {

/// Threads  one at a time.
class LogFile {
 public:
  enum class Mode { anew, append };
  /// Makes the folders above it. Errors  name the file and the system's reason.
  explicit LogFile(std::string path, Mode mode = Mode::anew);
  ~LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  /// The bytes are in the system's hands when this returns. Errors  a full disk and the like.
  void write(std::string_view bytes);
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  std::FILE* file_;
};

}  // namespace tenon
