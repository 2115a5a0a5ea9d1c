// SPDX-License-Identifier: Apache-2.0
// bench/temporary_folder.h - a folder for files of a benchmark.
#pragma once

#include <filesystem>
#include <string>

#include <tenon/error.h>

#include "platform/path.h"
#include "platform/temporary_name.h"

namespace tenon::bench {

/// A new folder among the temporary files, removed with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() : path_(std::filesystem::temp_directory_path() / platform::path_of(platform::temporary_name("tenon-bench"))) {
    std::error_code error;
    if (!std::filesystem::create_directory(path_, error))
      throw Error("tenon bench: cannot create a folder " + platform::text_of(path_) + ": " + error.message());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  /// The path of a file in it.
  std::string path(const std::string& name) const { return platform::text_of(path_ / platform::path_of(name)); }

 private:
  std::filesystem::path path_;
};

}  // namespace tenon::bench
