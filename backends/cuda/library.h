// library.h - NVIDIA's libraries, opened at first use: where they are looked for, and what is said when they are not there.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <tenon/sdk/error.h>

namespace tenon::cuda {

/// A library as the headers of the build want it.
struct WantedLibrary {
  const char* name;  ///< "cuBLAS"
  const char* stem;  ///< "libcublas"
  int major;         ///< its major version, and the number in its file's name

  /// "libcublas.so.13"
  std::string file() const;
};

/// The folders that are looked at after those of the dynamic loader, in order. Only folders that exist.
///
///   <root>/usr/local/cuda/lib64, then those of other toolkits beside it, the newest version first
///   <root>/usr/lib/python3*/{site,dist}-packages/nvidia/*/lib, and below /usr/local/lib: NVIDIA's wheels
///   nvidia/*/lib where `beside`, such a folder itself, says; empty: nowhere
std::vector<std::filesystem::path> library_folders(const std::filesystem::path& root, const std::filesystem::path& beside);

/// A file to open, and the sentence for when nothing can be.
struct Search {
  std::string knob;                            ///< backends.options.cuda.libraries: folders, a colon between two; empty: not given
  std::vector<std::filesystem::path> folders;  ///< library_folders()

  /// What is given to dlopen, in order: the bare name, for the loader's own order, then the files of folders that have one. With the knob,
  /// the files in its folders alone, whether they are there or not: what was asked for is not replaced in silence.
  std::vector<std::string> candidates(const WantedLibrary& wanted) const;
  /// What was looked for and where, and what can be done.
  std::string not_found(const WantedLibrary& wanted, const std::string& loader_said) const;
};

/// An open library. It is never closed: it may own threads and memory of the device.
///
/// Threads  any
class Library {
 public:
  /// Opens the first candidate that the loader takes.
  /// Errors  INCOMPATIBLE with the folders looked in.
  Library(const WantedLibrary& wanted, const Search& search);

  /// A function; never NULL.
  /// Errors  INCOMPATIBLE for a library that lacks it.
  template <class Function>
  Function function(const char* symbol) const {
    return reinterpret_cast<Function>(address(symbol));
  }
  /// Throws INCOMPATIBLE unless it says that it has the major version of the headers.
  void check_version(int major_of_library) const;
  const std::string& file() const { return file_; }  ///< as the loader found it

 private:
  void* address(const char* symbol) const;

  WantedLibrary wanted_;
  void* handle_ = nullptr;
  std::string file_;
};

/// The search of this machine, with the knob as the user set it; NULL: not declared.
Search search_here(const char* knob);

}  // namespace tenon::cuda
