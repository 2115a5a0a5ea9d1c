// loader/dependencies.h - which library is missing, when the operating system refuses to open one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tenon::loader {

struct MissingLibrary {
  std::string name;                  ///< "libcudart.so.13"
  std::filesystem::path needed_by;   ///< the plugin, or a library it needs
  std::vector<std::string> folders;  ///< where it was looked for, in order
};

/// Walks the needed-list of `file` and of what it finds, in the dynamic linker's order of folders: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH,
/// the folders of /etc/ld.so.conf, the default folders. A library that the process has loaded already is not missing. Linux only. On
/// Windows the import list is not walked: the operating system's own text stands in the record.
std::vector<MissingLibrary> missing_libraries(const std::filesystem::path& file);

}  // namespace tenon::loader
