// SPDX-License-Identifier: Apache-2.0
#include "loader/open.h"

#include <fmt/format.h>

#include <mutex>
#include <optional>
#include <system_error>
#include <vector>
// Boost.DLL 1.74 uses std::vector without including it.
#include <boost/dll/shared_library.hpp>

#include "loader/dependencies.h"
#include "loader/load_error.h"
#include "platform/conventions.h"
#include "platform/library.h"
#include "platform/path.h"

namespace tenon::loader {
namespace fs = std::filesystem;

struct Library::Handle {
  boost::dll::shared_library library;
};

namespace {

bool on_windows() {
  return platform::conventions().format == platform::BinaryFormat::pe;
}

std::string file_name(const fs::path& file) {
  return platform::text_of(file.filename());
}

/// What to do about a library that Windows does not find.
std::string remedy_on_windows(const std::vector<MissingLibrary>& libraries, const std::string& names) {
  for (const MissingLibrary& missing : libraries) {
    const CRuntime runtime = c_runtime_of(missing.name);
    if (runtime == CRuntime::visual_c_debug)
      return "build the plugin in its release configuration: debug runtimes are not installed with programs";
    if (runtime == CRuntime::visual_c) return "install the Microsoft Visual C++ Redistributable";
  }
  return fmt::format("install the program that has {}, or put it next to the plugin", names);
}

LoadError without_libraries(std::vector<MissingLibrary> libraries) {
  std::string text, names;
  for (const MissingLibrary& missing : libraries) {
    const std::string by = file_name(missing.needed_by);
    if (missing.name.find("libc.musl-") == 0) {
      const std::string own = platform::c_library();
      return LoadError(TENON_INCOMPATIBLE,
                       fmt::format("{} was built for the musl C library (it needs {}), {}", by, missing.name,
                                   own.empty() ? "this system has another" : "this system's is " + own),
                       fmt::format("install the plugin's build for {} with glibc", host_info().platform), std::move(libraries));
    }
    text += fmt::format("{}the library {}, needed by {}, is in none of these folders: {}", text.empty() ? "" : "; ", missing.name, by,
                        fmt::join(missing.folders, ", "));
    names += (names.empty() ? "" : " and ") + missing.name;
  }
  const std::string remedy =
      on_windows() ? remedy_on_windows(libraries, names)
                   : fmt::format("install the package that has {}, or name its folder in LD_LIBRARY_PATH before the program starts", names);
  return LoadError(TENON_INCOMPATIBLE, text, remedy, std::move(libraries));
}

LoadError without_versions(const std::vector<MissingVersion>& versions) {
  std::string text, libraries;
  for (const MissingVersion& missing : versions) {
    text += fmt::format("{}{} needs {} of {}, and {} has {}", text.empty() ? "" : "; ", file_name(missing.needed_by), missing.version,
                        missing.library, platform::text_of(missing.found),
                        missing.highest.empty() ? "no version of that name" : missing.highest + " at most");
    if (libraries.find(missing.library) == std::string::npos) libraries += (libraries.empty() ? "" : " and ") + missing.library;
  }
  return LoadError(TENON_INCOMPATIBLE, text,
                   fmt::format("install a build of the plugin made on a system no newer than this one, or a newer {}", libraries));
}

LoadError with_unusable(const UnusableLibrary& unusable) {
  const std::string found = unusable.image.kind == BinaryImage::Kind::shared_library
                                ? fmt::format("a {}-bit library for {}", unusable.image.is_64_bit ? 64 : 32, machine_name(unusable.image))
                                : "no whole DLL";
  return LoadError(TENON_INCOMPATIBLE,
                   fmt::format("{} needs {}, and the file {} is {}, expected a 64-bit DLL for {}", file_name(unusable.needed_by),
                               file_name(unusable.file), platform::text_of(unusable.file), found, own_machine_name()),
                   "put the library's build for this machine there");
}

LoadError without_symbols(const std::vector<MissingSymbol>& symbols) {
  const MissingSymbol& first = symbols.front();
  std::string text = fmt::format("{} needs the function {} of {}, and {} has none", file_name(first.needed_by), first.name, first.library,
                                 platform::text_of(first.found));
  if (symbols.size() > 1) text += fmt::format("; {} more functions are missing", symbols.size() - 1);
  return LoadError(
      TENON_INCOMPATIBLE, text,
      fmt::format("install the version of {} that the plugin was built with, or a build of the plugin made for this one", first.library));
}

/// What the file needs and is not there; nothing: it has everything.
std::optional<LoadError> without(Missing missing) {
  if (!missing.libraries.empty()) return without_libraries(std::move(missing.libraries));
  if (!missing.versions.empty()) return without_versions(missing.versions);
  if (!missing.unusable.empty()) return with_unusable(missing.unusable.front());
  return std::nullopt;
}

LoadError why_not_opened(const fs::path& file, const platform::LoadFailure& failure) {
  Missing missing = find_missing(file);
  if (std::optional<LoadError> needs = without(missing)) return *std::move(needs);
  using Kind = platform::LoadFailure::Kind;
  if (failure.kind == Kind::missing_symbol && !missing.symbols.empty()) return without_symbols(missing.symbols);
  const std::string text =
      fmt::format("it cannot be opened: {}", failure.text.empty() ? "the operating system gave no reason" : failure.text);
  if (failure.kind == Kind::missing_symbol) {
    return LoadError(
        TENON_INCOMPATIBLE, text,
        fmt::format("the plugin must define or link everything it uses{}; if the symbol belongs to a vendor's library, install the "
                    "version the plugin was built with",
                    on_windows() ? "" : " (link it with -Wl,-z,defs)"));
  }
  return LoadError(TENON_INCOMPATIBLE, text,
                   on_windows() ? "report this to the plugin's vendor, with the number of the error"
                                : "run ldd on the file, and rebuild it on a system no newer than this one");
}

}  // namespace

void check_dependencies(const fs::path& file) {
  if (std::optional<LoadError> needs = without(find_missing(file))) throw *std::move(needs);
}

Library::Library(const fs::path& file) : handle_(std::make_unique<Handle>()) {
  std::error_code error;
  handle_->library.load(file, error, static_cast<boost::dll::load_mode::type>(platform::load_flags()));
  // Boost.DLL leaves the dynamic linker's message for dlerror.
  if (!handle_->library.is_loaded()) throw why_not_opened(file, platform::load_failure(error.value()));
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

tenon_transport_query_fn Library::transport_query() const {
  if (!handle_->library.has(TENON_TRANSPORT_QUERY_SYMBOL)) {
    throw LoadError(TENON_INCOMPATIBLE, "it is a library but not a transport: it does not export " TENON_TRANSPORT_QUERY_SYMBOL,
                    "if it is meant to be a transport, define that function with TENON_EXPORT and C linkage; else name another file");
  }
  return &handle_->library.get<tenon_status(const tenon_host_info*, tenon_transport_info*)>(TENON_TRANSPORT_QUERY_SYMBOL);
}

}  // namespace tenon::loader
