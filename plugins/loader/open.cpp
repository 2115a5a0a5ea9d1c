// SPDX-License-Identifier: Apache-2.0
#include "loader/open.h"

#include <dlfcn.h>
#include <fmt/format.h>
#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include <mutex>
#include <system_error>
#include <vector>
// Boost.DLL 1.74 uses std::vector without including it.
#include <boost/dll/shared_library.hpp>

#include "loader/dependencies.h"
#include "loader/elf.h"
#include "loader/load_error.h"

namespace tenon::loader {
namespace fs = std::filesystem;

struct Library::Handle {
  boost::dll::shared_library library;
};

namespace {

/// "this system's is glibc 2.36".
std::string own_libc() {
#if defined(__GLIBC__)
  return fmt::format("this system's is glibc {}", gnu_get_libc_version());
#else
  return "this system has another";
#endif
}

LoadError without_libraries(std::vector<MissingLibrary> libraries) {
  std::string text, names;
  for (const MissingLibrary& missing : libraries) {
    const std::string by = missing.needed_by.filename().string();
    if (missing.name.find("libc.musl-") == 0) {
      return LoadError(
          TENON_INCOMPATIBLE, fmt::format("{} was built for the musl C library (it needs {}), {}", by, missing.name, own_libc()),
          fmt::format("install the plugin's build for linux-{} with glibc", machine_name(own_machine())), std::move(libraries));
    }
    text += fmt::format("{}the library {}, needed by {}, is in none of these folders: {}", text.empty() ? "" : "; ", missing.name, by,
                        fmt::join(missing.folders, ", "));
    names += (names.empty() ? "" : " and ") + missing.name;
  }
  return LoadError(TENON_INCOMPATIBLE, text,
                   fmt::format("install the package that has {}, or name its folder in LD_LIBRARY_PATH before the program starts", names),
                   std::move(libraries));
}

LoadError without_versions(const std::vector<MissingVersion>& versions) {
  std::string text, libraries;
  for (const MissingVersion& missing : versions) {
    text += fmt::format("{}{} needs {} of {}, and {} has {}", text.empty() ? "" : "; ", missing.needed_by.filename().string(),
                        missing.version, missing.library, missing.found.string(),
                        missing.highest.empty() ? "no version of that name" : missing.highest + " at most");
    if (libraries.find(missing.library) == std::string::npos) libraries += (libraries.empty() ? "" : " and ") + missing.library;
  }
  return LoadError(TENON_INCOMPATIBLE, text,
                   fmt::format("install a build of the plugin made on a system no newer than this one, or a newer {}", libraries));
}

LoadError why_not_opened(const fs::path& file, const std::string& system_text) {
  Missing missing = find_missing(file);
  if (!missing.libraries.empty()) return without_libraries(std::move(missing.libraries));
  if (!missing.versions.empty()) return without_versions(missing.versions);
  const std::string said = system_text.empty() ? "the operating system gave no reason" : system_text;
  if (said.find("undefined symbol") != std::string::npos) {
    return LoadError(TENON_INCOMPATIBLE, fmt::format("it cannot be opened: {}", said),
                     "the plugin must define or link everything it uses (link it with -Wl,-z,defs); if the symbol belongs to a vendor's "
                     "library, install the version the plugin was built with");
  }
  return LoadError(TENON_INCOMPATIBLE, fmt::format("it cannot be opened: {}", said),
                   "run ldd on the file, and rebuild it on a system no newer than this one");
}

}  // namespace

Library::Library(const fs::path& file) : handle_(std::make_unique<Handle>()) {
  std::error_code error;
  handle_->library.load(file, error, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (!handle_->library.is_loaded()) {
    // Boost.DLL leaves the dynamic linker's message for dlerror.
    const char* said = dlerror();
    throw why_not_opened(file, said ? said : error.message());
  }
}

Library::~Library() {
  if (close_) return;
  // Never destroyed, so that nothing is unmapped at exit; reachable, so that leak checkers accept it.
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::unique_ptr<Handle>>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(handle_));
}

tenon_backend_query_fn Library::query() const {
  if (!handle_->library.has(TENON_BACKEND_QUERY_SYMBOL)) {
    throw LoadError(
        TENON_INCOMPATIBLE, "it is a library but not a backend: it does not export " TENON_BACKEND_QUERY_SYMBOL,
        "if it is meant to be a backend, define that function with TENON_EXPORT and C linkage; else remove the file from the folder");
  }
  return &handle_->library.get<tenon_status(const tenon_host_info*, tenon_backend_info*)>(TENON_BACKEND_QUERY_SYMBOL);
}

}  // namespace tenon::loader
