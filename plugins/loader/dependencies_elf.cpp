// SPDX-License-Identifier: Apache-2.0
#include "loader/dependencies.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <deque>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

#include "platform/path.h"

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// "GLIBC_2.36" -> {2, 36}; the part before the last '_' is the family.
std::vector<unsigned long> numbers_of(const std::string& version) {
  std::vector<unsigned long> numbers;
  std::istringstream parts(version.substr(version.rfind('_') + 1));
  for (std::string part; std::getline(parts, part, '.');) numbers.push_back(std::strtoul(part.c_str(), nullptr, 10));
  return numbers;
}
std::string family_of(const std::string& version) {
  return version.substr(0, version.rfind('_') + 1);
}

/// The highest version of the same family as `like`.
std::string highest_of(const std::string& like, const std::vector<std::string>& versions) {
  std::string highest;
  for (const std::string& version : versions) {
    if (family_of(version) != family_of(like) || !std::isdigit(static_cast<unsigned char>(version.back()))) continue;
    if (highest.empty() || numbers_of(highest) < numbers_of(version)) highest = version;
  }
  return highest;
}

std::vector<std::string> split_folders(const std::string& list) {
  std::vector<std::string> folders;
  std::istringstream parts(list);
  for (std::string folder; std::getline(parts, folder, ':');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

/// A library for this machine in one of the folders. The dynamic linker skips those for another machine.
std::optional<fs::path> find_in(const std::vector<std::string>& folders, const std::string& name) {
  for (const std::string& folder : folders) {
    const fs::path path = platform::path_of(folder) / platform::path_of(name);
    std::error_code error;
    if (!fs::is_regular_file(path, error)) continue;
    if (is_for_own_machine(read_image(path))) return path;
  }
  return std::nullopt;
}

struct Pending {
  fs::path file;
  std::vector<std::string> inherited;  ///< DT_RPATH of the libraries that need it
};

}  // namespace

Missing find_missing_of_elf(const fs::path& file, const LibrarySearch& search) {
  const std::vector<std::string> environment = split_folders(search.environment);
  std::vector<std::string> system;
  for (const fs::path& folder : search.system) system.push_back(platform::text_of(folder));
  Missing missing;
  std::map<std::string, fs::path> found;  ///< name -> the library found; empty: none
  for (const fs::path& library : search.loaded) found.emplace(platform::text_of(library.filename()), library);
  std::deque<Pending> queue{{file, {}}};
  for (; !queue.empty(); queue.pop_front()) {
    const Pending current = queue.front();
    const BinaryImage image = read_image(current.file);
    std::vector<std::string> inherited;
    if (image.run_path_is_inherited) inherited = image.run_path;
    append(inherited, current.inherited);
    std::vector<std::string> folders = inherited;
    // An object with a DT_RUNPATH of its own ignores every DT_RPATH.
    if (!image.run_path.empty() && !image.run_path_is_inherited) folders.clear();
    append(folders, environment);
    if (!image.run_path_is_inherited) append(folders, image.run_path);
    append(folders, system);
    for (const std::string& name : image.needed) {
      if (found.count(name) != 0) continue;
      // A name with a slash is a path and is not searched for.
      const auto path = name.find('/') == std::string::npos ? find_in(folders, name) : find_in({""}, name);
      found.emplace(name, path.value_or(fs::path()));
      if (path) {
        queue.push_back({*path, inherited});
      } else {
        missing.libraries.push_back({name, current.file, folders});
      }
    }
    for (const BinaryImage::NeededVersion& required : image.needed_versions) {
      const auto library = found.find(required.library);
      if (library == found.end() || library->second.empty()) continue;
      const std::vector<std::string> offered = read_image(library->second).defined_versions;
      if (std::find(offered.begin(), offered.end(), required.version) != offered.end()) continue;
      missing.versions.push_back(
          {required.version, required.library, current.file, library->second, highest_of(required.version, offered)});
    }
  }
  return missing;
}

}  // namespace tenon::loader
