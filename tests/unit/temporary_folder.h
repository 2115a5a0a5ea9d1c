// SPDX-License-Identifier: Apache-2.0
// A folder that is empty when a test begins and removed when it ends.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "testing.h"

namespace tenon::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tenon-test-XXXXXX").string();
    if (!mkdtemp(pattern.data())) throw std::runtime_error("cannot make a folder like " + pattern);
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return path_.string(); }
  std::string file(const std::string& name) const { return (path_ / name).string(); }

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
    return file(name);
  }
  std::string write(const std::string& name, const std::vector<std::uint8_t>& content) const {
    return write(name, std::string(content.begin(), content.end()));
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path_ / name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  std::size_t count_files() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  std::filesystem::path path_;
};

/// Fixture: a temporary folder.
struct InFolder {
  const TemporaryFolder folder;
};

/// The text of the Error that `read` throws for a file with this content, without the path before it.
template <class Read>
std::string message_of_file(const std::string& name, const std::string& content, Read read) {
  const TemporaryFolder folder;
  const std::string path = folder.write(name, content);
  const std::string text = message_of([&] { static_cast<void>(read(path)); });
  return text.rfind(path + ": ", 0) == 0 ? text.substr(path.size() + 2) : text;
}

}  // namespace tenon::test
