// SPDX-License-Identifier: Apache-2.0
#include "platform/folder.h"

#include <filesystem>

namespace tenon::platform {

std::vector<FolderEntry> entries_of(const std::string& folder, std::error_code& out_error) {
  std::vector<FolderEntry> entries;
  std::filesystem::directory_iterator at(folder, out_error);
  for (const std::filesystem::directory_iterator end; !out_error && at != end; at.increment(out_error)) {
    std::error_code ignored;
    const FileKind kind = at->is_regular_file(ignored) ? FileKind::regular : at->is_directory(ignored) ? FileKind::folder : FileKind::other;
    entries.push_back({at->path().filename().native(), kind});
  }
  return entries;
}

}  // namespace tenon::platform
