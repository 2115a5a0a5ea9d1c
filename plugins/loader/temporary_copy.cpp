// SPDX-License-Identifier: Apache-2.0
#include "loader/temporary_copy.h"

#include <fmt/format.h>

#include <system_error>

#include "loader/load_error.h"
#include "platform/file.h"
#include "platform/path.h"
#include "platform/temporary_name.h"

namespace tenon::loader {
namespace fs = std::filesystem;

TemporaryCopy::TemporaryCopy(const fs::path& file) {
  std::error_code error;
  const fs::path temporary = fs::temp_directory_path(error);
  for (const fs::path& folder : {file.parent_path(), temporary}) {
    // No name of a backend's file: a search of the folder at this moment does not take it for one. What has the name is not replaced.
    const std::string name = platform::text_of(file.filename());
    platform::remove_old_temporaries(platform::text_of(folder), name);  // Windows keeps a loaded library's file when it is removed
    path_ = folder / platform::path_of(platform::temporary_name(name));
    if (fs::copy_file(file, path_, error)) return;
    if (error != std::errc::file_exists) fs::remove(path_);
  }
  throw LoadError(
      TENON_INVALID_ARGUMENT,
      fmt::format("it cannot be copied, neither in its folder nor to {}: {}", platform::text_of(temporary), platform::message_of(error)),
      "make one of the two folders writable");
}

TemporaryCopy::~TemporaryCopy() {
  std::error_code ignored;
  fs::remove(path_, ignored);
}

}  // namespace tenon::loader
