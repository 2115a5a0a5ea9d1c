// SPDX-License-Identifier: Apache-2.0
// platform/conventions.h - how the system calls its files, and where it looks for libraries.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace tenon::platform {

/// The format of programs and libraries.
enum class BinaryFormat { elf, pe };

struct Conventions {
  std::string_view system;  ///< "linux", "windows"
  BinaryFormat format;
  std::string_view library_prefix, library_suffix;  ///< "lib" and ".so"; "" and ".dll"
  std::string_view program_suffix;                  ///< "", ".exe"
  char path_separator;                              ///< between the folders of a list: ':', ';'
};
const Conventions& conventions();

/// The C library that this process uses: "glibc 2.36". Empty if it is not known.
std::string c_library();

/// The folders of the system that are searched for a library that another one needs, in order: those of /etc/ld.so.conf and the default
/// folders; on Windows System32.
std::vector<std::filesystem::path> system_library_folders();

}  // namespace tenon::platform
