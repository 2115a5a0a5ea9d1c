// SPDX-License-Identifier: Apache-2.0
// A folder that is empty when a test begins and removed when it ends.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "platform/path.h"
#include "testing.h"

namespace tenon::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::random_device random;
    path_ = std::filesystem::temp_directory_path() / ("tenon-test-" + std::to_string(random()) + "-" + std::to_string(random()));
    if (!std::filesystem::create_directory(path_)) throw std::runtime_error("cannot make the folder " + platform::text_of(path_));
    std::filesystem::permissions(path_, std::filesystem::perms::owner_all);
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  std::string path() const { return platform::text_of(path_); }
  std::string file(const std::string& name) const { return platform::text_of(path_ / platform::path_of(name)); }

  std::string write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / platform::path_of(name), std::ios::binary) << content;
    return file(name);
  }
  std::string write(const std::string& name, const std::vector<std::uint8_t>& content) const {
    return write(name, std::string(content.begin(), content.end()));
  }
  std::string read(const std::string& name) const {
    std::ifstream in(path_ / platform::path_of(name), std::ios::binary);
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
