// SPDX-License-Identifier: Apache-2.0
#include "platform/folder.h"

#include "platform/windows/error.h"
#include "platform/windows/wide.h"

namespace tenon::platform {

std::vector<FolderEntry> entries_of(const std::string& folder, std::error_code& out_error) {
  std::vector<FolderEntry> entries;
  WIN32_FIND_DATAW found{};
  const HANDLE search = FindFirstFileW(windows::system_path(folder + "\\*").c_str(), &found);
  if (search == INVALID_HANDLE_VALUE) {
    out_error = windows::last_error();
    return entries;
  }
  do {
    const std::string name = windows::utf8(found.cFileName);
    if (name == "." || name == "..") continue;
    entries.push_back({name, (found.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? FileKind::folder : FileKind::regular});
  } while (FindNextFileW(search, &found) != FALSE);
  out_error = GetLastError() == ERROR_NO_MORE_FILES ? std::error_code() : windows::last_error();
  FindClose(search);
  return entries;
}

}  // namespace tenon::platform
