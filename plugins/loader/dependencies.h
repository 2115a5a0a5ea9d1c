// SPDX-License-Identifier: Apache-2.0
// loader/dependencies.h - what is missing when the operating system cannot open a library.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "loader/image.h"
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

/// A function that is not in the DLL that was found.
struct MissingSymbol {
  std::string name;
  std::string library;
  std::filesystem::path needed_by;
  std::filesystem::path found;
};

/// A file with the name of a needed library that this process cannot open. Windows looks for no other.
struct UnusableLibrary {
  std::filesystem::path file;
  std::filesystem::path needed_by;
  BinaryImage image;
};

struct Missing {
  std::vector<MissingLibrary> libraries;
  std::vector<MissingVersion> versions;   ///< of ELF files
  std::vector<MissingSymbol> symbols;     ///< of PE files
  std::vector<UnusableLibrary> unusable;  ///< of PE files
};

/// Where the system finds libraries. A library that the process has loaded already is not missing.
struct LibrarySearch {
  std::vector<std::filesystem::path> system;  ///< folders
  std::vector<std::filesystem::path> loaded;  ///< files
  std::string environment;                    ///< LD_LIBRARY_PATH
};
LibrarySearch library_search();

/// Walks the libraries that `file` needs, and those that they need. ELF: in the dynamic linker's order of folders, which is DT_RPATH,
/// LD_LIBRARY_PATH, DT_RUNPATH, and the system's. PE: in the folder of `file`, then in the system's, as Library opens it. DLLs of the
/// system are taken to be complete, and the names of API sets (api-ms-win-..., ext-ms-...), which are no files, to exist.
Missing find_missing(const std::filesystem::path& file, const LibrarySearch& search = library_search());

Missing find_missing_of_elf(const std::filesystem::path& file, const LibrarySearch& search);
Missing find_missing_of_pe(const std::filesystem::path& file, const LibrarySearch& search);

}  // namespace tenon::loader
