// SPDX-License-Identifier: Apache-2.0
#include "platform/conventions.h"

#include <glob.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace tenon::platform {
namespace {

/// Folders named by an ld.so.conf file and the files it includes, up to `depth` levels.
void read_linker_configuration(const std::string& file, int depth, std::vector<std::filesystem::path>& out_folders) {
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
      out_folders.emplace_back(word);
    }
  }
}

}  // namespace

const Conventions& conventions() {
#if defined(__linux__)
  static constexpr std::string_view system = "linux";
#else
  static constexpr std::string_view system = "unknown";
#endif
  static constexpr Conventions posix{system, BinaryFormat::elf, "lib", ".so", "", ':'};
  return posix;
}

std::string c_library() {
#if defined(__GLIBC__)
  return std::string("glibc ") + gnu_get_libc_version();
#else
  return "";
#endif
}

std::vector<std::filesystem::path> system_library_folders() {
  std::vector<std::filesystem::path> folders;
  read_linker_configuration("/etc/ld.so.conf", 4, folders);
  for (const char* folder : {"/lib64", "/usr/lib64", "/lib", "/usr/lib"}) folders.emplace_back(folder);
  return folders;
}

}  // namespace tenon::platform
