// SPDX-License-Identifier: Apache-2.0
// loader/dependencies.h - what is missing when the operating system cannot open a library.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "loader/loader.h"

namespace tenon::loader {

/// A symbol version that is not in the library that was found: that library is too old.
struct MissingVersion {
  std::string version;              ///< "GLIBC_2.38"
  std::string library;              ///< "libc.so.6"
  std::filesystem::path needed_by;  ///< the plugin, or a library it needs
  std::filesystem::path found;      ///< the library that was found
  std::string highest;              ///< its highest version: "GLIBC_2.36"; empty if it has no version of that name
};

struct Missing {
  std::vector<MissingLibrary> libraries;
  std::vector<MissingVersion> versions;
};

/// Walks the needed-list of `file` and of the libraries found, in the dynamic linker's order of folders: DT_RPATH, LD_LIBRARY_PATH,
/// DT_RUNPATH, the folders of /etc/ld.so.conf, the default folders. A library that the process has loaded already is not missing. Linux
/// only. On Windows the import list is not walked: the record has the operating system's own text.
Missing find_missing(const std::filesystem::path& file);

}  // namespace tenon::loader
