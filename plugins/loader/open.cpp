#include "loader/open.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <mutex>
#include <system_error>
#include <vector>
// Boost.DLL 1.74 uses std::vector without including it.
#include <boost/dll/shared_library.hpp>

#include "loader/dependencies.h"
#include "loader/refusal.h"

namespace tenon::loader {
namespace fs = std::filesystem;

struct Library::Handle {
  boost::dll::shared_library library;
};

namespace {

Refusal why_not_opened(const fs::path& file, const std::string& system_text) {
  std::string text, names;
  for (const MissingLibrary& missing : missing_libraries(file)) {
    text += fmt::format("{}the library {}, needed by {}, is in none of these folders: {}", text.empty() ? "" : "; ", missing.name,
                        missing.needed_by.filename().string(), fmt::join(missing.folders, ", "));
    names += (names.empty() ? "" : " and ") + missing.name;
  }
  if (!text.empty()) {
    return Refusal(TENON_INCOMPATIBLE, text,
                   fmt::format("install the package that has {}, or name its folder in LD_LIBRARY_PATH before the program starts", names));
  }
  const std::string said = system_text.empty() ? "the operating system gave no reason" : system_text;
  if (said.find("undefined symbol") != std::string::npos) {
    return Refusal(TENON_INCOMPATIBLE, fmt::format("it cannot be opened: {}", said),
                   "the plugin must define or link everything it uses (link it with -Wl,-z,defs); if the symbol belongs to a vendor's "
                   "library, install the version the plugin was built with");
  }
  return Refusal(TENON_INCOMPATIBLE, fmt::format("it cannot be opened: {}", said),
                 "run ldd on the file, and rebuild it on a system no newer than this one");
}

}  // namespace

Library::Library(const fs::path& file) : handle_(std::make_unique<Handle>()) {
  std::error_code error;
  handle_->library.load(file, error, boost::dll::load_mode::rtld_now | boost::dll::load_mode::rtld_local);
  if (!handle_->library.is_loaded()) {
    // Boost.DLL leaves the dynamic linker's own words where dlerror finds them.
    const char* said = dlerror();
    throw why_not_opened(file, said ? said : error.message());
  }
}

Library::~Library() {
  if (close_) return;
  // Never destroyed, so that nothing is unmapped at exit either; reachable, so that no leak checker complains.
  static std::mutex mutex;
  static auto* const kept = new std::vector<std::unique_ptr<Handle>>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(handle_));
}

tenon_backend_query_fn Library::query() const {
  if (!handle_->library.has(TENON_BACKEND_QUERY_SYMBOL)) {
    throw Refusal(
        TENON_INCOMPATIBLE, "it is a library but no backend: it does not export " TENON_BACKEND_QUERY_SYMBOL,
        "if it is meant to be a backend, define that function with TENON_EXPORT and C linkage; else remove the file from the folder");
  }
  return &handle_->library.get<tenon_status(const tenon_host_info*, tenon_backend_info*)>(TENON_BACKEND_QUERY_SYMBOL);
}

}  // namespace tenon::loader
