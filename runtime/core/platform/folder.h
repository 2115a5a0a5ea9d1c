// SPDX-License-Identifier: Apache-2.0
// platform/folder.h - what a folder has. std::filesystem::directory_iterator of MinGW reads the current folder if a path is long.
#pragma once

#include <string>
#include <system_error>
#include <vector>

#include "platform/file.h"

namespace tenon::platform {

struct FolderEntry {
  std::string name;
  FileKind kind = FileKind::other;  ///< of what a symbolic link leads to
};

/// The entries of a folder in any order, without "." and "..". Those that were read before an error, too.
std::vector<FolderEntry> entries_of(const std::string& folder, std::error_code& out_error);

}  // namespace tenon::platform
