// SPDX-License-Identifier: Apache-2.0
// Helpers of the config tests.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <tenon/error.h>

namespace tenon::testing {

/// The text of the tenon::Error that `call` throws; other exceptions propagate.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const Error& problem) {
    return problem.what();
  }
  return "no error";
}

/// A temporary folder of a test, removed at its end.
class Folder {
 public:
  explicit Folder(const std::string& name)
      : path_(std::filesystem::temp_directory_path() / ("tenon_config_" + name + std::to_string(::getpid()))) {
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return path(name);
  }
  std::string path(const std::string& name = "") const { return name.empty() ? path_.string() : (path_ / name).string(); }

 private:
  std::filesystem::path path_;
};

}  // namespace tenon::testing
