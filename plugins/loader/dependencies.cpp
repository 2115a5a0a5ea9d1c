// SPDX-License-Identifier: Apache-2.0
#include "loader/dependencies.h"

#include <glob.h>
#include <link.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <deque>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <system_error>

#include "loader/elf.h"

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

void append(std::vector<std::string>& to, const std::vector<std::string>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

/// File name -> path of the libraries that are mapped now: the dynamic linker uses those before it searches.
std::map<std::string, fs::path> loaded_libraries() {
  std::map<std::string, fs::path> libraries;
  dl_iterate_phdr(
      [](dl_phdr_info* library, std::size_t, void* out) {
        const fs::path path = library->dlpi_name;
        static_cast<std::map<std::string, fs::path>*>(out)->emplace(path.filename().string(), path);
        return 0;
      },
      &libraries);
  return libraries;
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

std::vector<std::string> split_folders(const char* list) {
  std::vector<std::string> folders;
  std::istringstream parts(list ? list : "");
  for (std::string folder; std::getline(parts, folder, ':');) {
    if (!folder.empty()) folders.push_back(folder);
  }
  return folders;
}

/// Folders named by an ld.so.conf file and the files it includes, up to `depth` levels.
void read_linker_configuration(const std::string& file, int depth, std::vector<std::string>& out_folders) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    line.resize(std::min(line.find('#'), line.size()));
    std::istringstream words(line);
    std::string word;
    if (!(words >> word)) continue;
    if (word == "include" && depth > 0) {
      while (words >> word) {
        glob_t matches{};
        if (glob(word.c_str(), 0, nullptr, &matches) == 0) {
          for (std::size_t i = 0; i < matches.gl_pathc; ++i) read_linker_configuration(matches.gl_pathv[i], depth - 1, out_folders);
        }
        globfree(&matches);
      }
    } else if (word.front() == '/') {
      out_folders.push_back(word);
    }
  }
}

std::vector<std::string> system_folders() {
  std::vector<std::string> folders;
  read_linker_configuration("/etc/ld.so.conf", 4, folders);
  append(folders, {"/lib64", "/usr/lib64", "/lib", "/usr/lib"});
  return folders;
}

/// A library for this machine in one of the folders. The dynamic linker skips those for another machine.
std::optional<fs::path> find_in(const std::vector<std::string>& folders, const std::string& name) {
  for (const std::string& folder : folders) {
    const fs::path path = fs::path(folder) / name;
    std::error_code error;
    if (!fs::is_regular_file(path, error)) continue;
    const Elf elf = read_elf(path);
    if (elf.kind == Elf::Kind::shared_object && elf.is_64_bit && elf.machine == own_machine()) return path;
  }
  return std::nullopt;
}

struct Pending {
  fs::path file;
  std::vector<std::string> inherited;  ///< DT_RPATH of the libraries that need it
};

}  // namespace

Missing find_missing(const fs::path& file) {
  const std::map<std::string, fs::path> loaded = loaded_libraries();
  const std::vector<std::string> environment = split_folders(std::getenv("LD_LIBRARY_PATH"));
  const std::vector<std::string> system = system_folders();
  Missing missing;
  std::map<std::string, fs::path> found = loaded;  ///< name -> the library found; empty: none
  std::deque<Pending> queue{{file, {}}};
  for (; !queue.empty(); queue.pop_front()) {
    const Pending current = queue.front();
    const Elf elf = read_elf(current.file);
    std::vector<std::string> inherited;
    if (elf.run_path_is_inherited) inherited = elf.run_path;
    append(inherited, current.inherited);
    std::vector<std::string> folders = inherited;
    // An object with a DT_RUNPATH of its own ignores every DT_RPATH.
    if (!elf.run_path.empty() && !elf.run_path_is_inherited) folders.clear();
    append(folders, environment);
    if (!elf.run_path_is_inherited) append(folders, elf.run_path);
    append(folders, system);
    for (const std::string& name : elf.needed) {
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
    for (const Elf::NeededVersion& required : elf.needed_versions) {
      const auto library = found.find(required.library);
      if (library == found.end() || library->second.empty()) continue;
      const std::vector<std::string> offered = read_elf(library->second).defined_versions;
      if (std::find(offered.begin(), offered.end(), required.version) != offered.end()) continue;
      missing.versions.push_back(
          {required.version, required.library, current.file, library->second, highest_of(required.version, offered)});
    }
  }
  return missing;
}

}  // namespace tenon::loader
