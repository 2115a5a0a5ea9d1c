// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "fuzz.h"
#include "platform/path.h"
#include "platform/temporary_name.h"

namespace tenon::fuzz {

void demand(bool holds, const char* claim) {
  if (holds) return;
  std::fprintf(stderr, "the claim does not hold: %s\n", claim);
  std::abort();
}

std::uint64_t odd_number(Bytes& bytes) {
  const std::uint8_t choice = bytes.take<std::uint8_t>();
  if (choice < 64) return choice;
  if (choice < 128) return (std::uint64_t{1} << (choice - 64)) - 1;
  if (choice < 192) return std::uint64_t{1} << (choice - 128);
  if (choice < 224) return std::uint64_t{0} - (choice - 191u);
  return bytes.take<std::uint64_t>();
}

const std::string& scratch_folder() {
  static const struct Folder {
    Folder() {
      const auto folder = std::filesystem::temp_directory_path() / platform::temporary_name("tenon-fuzz");
      demand(std::filesystem::create_directory(folder), "a temporary folder can be made");
      path = platform::text_of(folder);
    }
    ~Folder() {
      std::error_code ignored;
      std::filesystem::remove_all(platform::path_of(path), ignored);
    }
    std::string path;
  } folder;
  return folder.path;
}

std::string file_of(const std::string& name, std::span<const std::uint8_t> bytes) {
  std::string path = scratch_folder() + "/" + name;
  std::FILE* const file = std::fopen(path.c_str(), "wb");
  demand(file != nullptr, "a file can be made");
  demand(std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() && std::fclose(file) == 0, "a file can be written");
  return path;
}

}  // namespace tenon::fuzz
