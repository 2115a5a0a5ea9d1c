// SPDX-License-Identifier: Apache-2.0
#include "loader/temporary_copy.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "loader/load_error.h"

namespace tenon::loader {
namespace fs = std::filesystem;

TemporaryCopy::TemporaryCopy(const fs::path& file) {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  for (const fs::path& folder : {file.parent_path(), temporary}) {
    // No name of a backend's file: a search of the folder at this moment does not take it for one.
    std::string pattern = (folder / fmt::format(".{}.XXXXXX", file.filename().string())).string();
    const int made = ::mkstemp(pattern.data());
    if (made < 0) {
      error = {errno, std::generic_category()};
      continue;
    }
    ::close(made);
    path_ = pattern;
    if (fs::copy_file(file, path_, fs::copy_options::overwrite_existing, error)) return;
    fs::remove(path_);
  }
  throw LoadError(TENON_INVALID_ARGUMENT,
                  fmt::format("it cannot be copied, neither in its folder nor to {}: {}", temporary.string(), error.message()),
                  "make one of the two folders writable");
}

TemporaryCopy::~TemporaryCopy() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace tenon::loader
