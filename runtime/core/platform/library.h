// SPDX-License-Identifier: Apache-2.0
// platform/library.h - shared libraries of this process.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace tenon::platform {

/// Opens a library by its path, with immediate and local binding, until the process ends. On Windows, what it needs is searched for in its
/// own folder and in the system's only. Returns NULL, and the system's reason, if that fails.
void* open_library(const std::filesystem::path& file, std::string& out_reason);

/// The flags of the system's function for that: RTLD_NOW | RTLD_LOCAL, LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR | LOAD_LIBRARY_SEARCH_SYSTEM32.
int load_flags();

/// A function or object of an open library; NULL if it has none of that name.
void* find_symbol(void* library, const char* name);

/// The library or program that contains an address, without symbolic links; empty if unknown.
std::filesystem::path module_of(const void* address);

/// The libraries that the process has loaded, and the program.
std::vector<std::filesystem::path> loaded_modules();

/// Why a library could not be loaded.
struct LoadFailure {
  enum class Kind {
    other,
    missing_library,  ///< the file, or a library that it needs, was not found
    missing_symbol,   ///< a library that it needs has not what it needs of it
    not_a_library,    ///< it is none, or one for another machine
  };
  Kind kind = Kind::other;
  std::string text;  ///< in the system's words; empty if it gives no reason
};

/// The failure of this thread's last attempt to load a library. `code` is the attempt's error code on Windows, and ignored elsewhere.
/// Called once, directly after the attempt.
LoadFailure load_failure(int code);

}  // namespace tenon::platform
