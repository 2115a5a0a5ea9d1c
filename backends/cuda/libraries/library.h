// SPDX-License-Identifier: Apache-2.0
// library.h - NVIDIA's libraries, opened at first use: the search path and the errors for missing libraries.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <tenon/sdk/error.h>

namespace tenon::cuda {

/// The library that the headers of the build require.
struct LibrarySpec {
  const char* name;  ///< "cuBLAS"
  const char* stem;  ///< "libcublas"
  int major;         ///< its major version, which is also in its file name

  /// "libcublas.so.13"
  std::string file() const;
};

/// The folders that are searched after those of the dynamic loader, in order. Only folders that exist.
///
///   <root>/usr/local/cuda/lib64, then those of other toolkits in the same folder, the newest version first
///   <root>/usr/lib/python3*/{site,dist}-packages/nvidia/*/lib, and below /usr/local/lib: NVIDIA's wheels
///   nvidia/*/lib next to `loaded_runtime`, which is such a folder itself; empty: none
std::vector<std::filesystem::path> library_folders(const std::filesystem::path& root, const std::filesystem::path& loaded_runtime);

/// The candidate files to open, and the error message if none can be opened.
struct Search {
  std::string option;                          ///< backends.options.cuda.libraries: folders, separated by colons; empty: not given
  std::vector<std::filesystem::path> folders;  ///< library_folders()

  /// The arguments for dlopen, in order: the bare name, for the loader's own search, then the existing files in `folders`. With the option,
  /// only the files in its folders, existing or not: the user's choice is never silently replaced.
  std::vector<std::string> candidates(const LibrarySpec& spec) const;
  /// The error message: what was searched, where, and the remedy.
  std::string not_found(const LibrarySpec& spec, const std::string& loader_said) const;
};

/// An open library. It is never closed: it may own threads and memory of the device.
///
/// Threads  any
class Library {
 public:
  /// Opens the first candidate that loads.
  /// Errors  INCOMPATIBLE, listing the searched folders.
  Library(const LibrarySpec& spec, const Search& search);

  /// A function; never NULL.
  /// Errors  INCOMPATIBLE for a library that lacks it.
  template <class Function>
  Function function(const char* symbol) const {
    return reinterpret_cast<Function>(address(symbol));
  }
  /// Throws INCOMPATIBLE unless the library reports the major version of the headers.
  void check_version(int major_of_library) const;
  const std::string& file() const { return file_; }  ///< the path that was loaded

 private:
  void* address(const char* symbol) const;

  LibrarySpec spec_;
  void* handle_ = nullptr;
  std::string file_;
};

/// The search for this machine, with the user's option; NULL: not declared.
Search search_here(const char* option);

}  // namespace tenon::cuda
