// SPDX-License-Identifier: Apache-2.0
#include "data/files.h"

#include <filesystem>

#include "platform/path.h"

namespace tenon::data {
namespace fs = std::filesystem;
namespace {

std::string listed(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : " or ") + name;
  return text + "[.gz]";
}

/// One file per part; the test part may be missing.
std::vector<std::string> part_files(const std::string& path, Split split, const std::vector<std::string>& train,
                                    const std::vector<std::string>& test) {
  if (split == Split::train) return {is_folder(path) ? find_file(path, train) : path};
  if (!is_folder(path)) return {};
  const std::string found = find_file_or_none(path, test);
  return found.empty() ? std::vector<std::string>() : std::vector<std::string>{found};
}

}  // namespace

std::string find_file_or_none(const std::string& directory, const std::vector<std::string>& names) {
  if (!is_folder(directory)) throw Error(directory + ": folder not found; expected one with " + listed(names));
  std::error_code ignored;
  for (const std::string& name : names) {
    for (const char* ending : {"", ".gz"}) {
      const fs::path path = platform::path_of(directory) / platform::path_of(name + ending);
      if (fs::exists(path, ignored)) return platform::text_of(path);
    }
  }
  return "";
}

std::string find_file(const std::string& directory, const std::vector<std::string>& names) {
  const std::string found = find_file_or_none(directory, names);
  if (!found.empty()) return found;
  if (names.size() == 1) throw Error(directory + ": expected " + names[0] + " or " + names[0] + ".gz, got neither");
  throw Error(directory + ": expected " + listed(names) + ", got none of them");
}

std::string folder_name(const std::string& path) {
  const fs::path normal = platform::path_of(path).lexically_normal();
  return platform::text_of(normal.has_filename() ? normal.filename() : normal.parent_path().filename());
}

bool is_folder(const std::string& path) {
  std::error_code ignored;
  return fs::is_directory(platform::path_of(path), ignored);
}

std::vector<std::string> csv_files(const std::string& path, Split split) {
  return part_files(path, split, {"train.csv"}, {"test.csv"});
}

std::vector<std::string> token_files(const std::string& path, Split split) {
  return part_files(path, split, {"ptb.train.txt", "train.txt"}, {"ptb.test.txt", "test.txt"});
}

}  // namespace tenon::data
