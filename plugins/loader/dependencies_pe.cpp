// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <system_error>

#include "loader/dependencies.h"
#include "loader/image_bytes.h"
#include "platform/path.h"

namespace tenon::loader {
namespace fs = std::filesystem;
namespace {

bool is_api_set(const std::string& lower_name) {
  return lower_name.starts_with("api-ms-win-") || lower_name.starts_with("ext-ms-");
}

/// The functions that `file` imports of libraries that were found, and that those do not have.
void find_missing_symbols(const fs::path& file, const std::map<std::string, fs::path>& found, Missing& out_missing) {
  std::map<std::string, std::optional<std::set<std::string>>> offered;  ///< by the library's name; nothing if its exports are unknown
  for (const ImportedSymbol& symbol : imported_symbols(file)) {
    const auto library = found.find(lower_case(symbol.library));
    if (library == found.end() || library->second.empty()) continue;
    const auto [names, is_new] = offered.try_emplace(library->first);
    if (is_new) {
      if (const auto exports = exported_symbols(library->second)) names->second.emplace(exports->begin(), exports->end());
    }
    if (names->second && names->second->count(symbol.name) == 0) {
      out_missing.symbols.push_back({symbol.name, symbol.library, file, library->second});
    }
  }
}

}  // namespace

Missing find_missing_of_pe(const fs::path& file, const LibrarySearch& search) {
  std::vector<fs::path> folders{file.parent_path()};
  folders.insert(folders.end(), search.system.begin(), search.system.end());
  std::vector<std::string> names_of_folders;
  for (const fs::path& folder : folders) names_of_folders.push_back(platform::text_of(folder));
  Missing missing;
  std::map<std::string, fs::path> found;  ///< name in lower case -> the library found; empty: none
  for (const fs::path& library : search.loaded) found.emplace(lower_case(platform::text_of(library.filename())), library);
  std::deque<fs::path> queue{file};
  for (; !queue.empty(); queue.pop_front()) {
    const fs::path current = queue.front();
    for (const std::string& name : read_image(current).needed) {
      const std::string key = lower_case(name);
      if (is_api_set(key) || found.count(key) != 0) continue;
      fs::path& library = found[key];
      for (std::size_t i = 0; i < folders.size() && library.empty(); ++i) {
        const fs::path candidate = folders[i] / platform::path_of(name);
        std::error_code error;
        if (!fs::is_regular_file(candidate, error)) continue;
        library = candidate;
        if (i > 0) break;  // the system's own are complete
        const BinaryImage image = read_image(candidate);
        if (image.format == BinaryImage::Format::pe && image.kind == BinaryImage::Kind::shared_library && image.is_64_bit &&
            image.machine == own_machine()) {
          queue.push_back(candidate);
        } else {
          missing.unusable.push_back({candidate, current, image});
        }
      }
      if (library.empty()) missing.libraries.push_back({name, current, names_of_folders});
    }
    find_missing_symbols(current, found, missing);
  }
  return missing;
}

}  // namespace tenon::loader
