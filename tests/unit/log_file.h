// SPDX-License-Identifier: Apache-2.0
// log_file.h - what a context logs, as text.
#pragma once

#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>

#include <tenon/config.h>

#include "core/log.h"
#include "temporary_folder.h"

namespace tenon::test {

/// Collects the log messages of its lifetime: those of contexts with this configuration, or of everything.
class LogFile {
 public:
  LogFile() : path_(folder_.file("log.txt")) {
    log::set_file(path_);
    log::set_level(TENON_LOG_WARNING);  // an earlier context may have set another
  }
  explicit LogFile(Config& config) : path_(folder_.file("log.txt")) { config.logging.file = path_; }
  ~LogFile() { log::set_file(""); }
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  std::string text() const {
    std::ifstream in(path_);
    return {std::istreambuf_iterator<char>(in), {}};
  }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

/// What `body` logs.
template <class Body>
std::string logged(Body&& body) {
  const LogFile log;
  body();
  return log.text();
}

inline std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

}  // namespace tenon::test
