// SPDX-License-Identifier: Apache-2.0
#include "platform/replacement_file.h"

#include <cstddef>
#include <cstring>
#include <new>
#include <vector>

#include "platform/temporary_name.h"
#include "platform/windows/error.h"
#include "platform/windows/wide.h"

namespace tenon::platform {
namespace {

std::wstring path_in(const std::string& folder, const std::string& name) {
  return windows::system_path(folder + "\\" + name);
}

/// Renames an open file as POSIX does: whoever reads the old file keeps it. False on file systems that cannot, and before Windows 10.
bool replace_open_file(const File& file, const std::wstring& to) {
  struct Rename {  // FILE_RENAME_INFO as Windows 10 has it
    DWORD flags;
    HANDLE root;
    DWORD name_size_bytes;
    wchar_t name[1];
  };
  constexpr auto information = static_cast<FILE_INFO_BY_HANDLE_CLASS>(22);  // FileRenameInfoEx
  constexpr DWORD replaces = 1, as_posix = 2;
  const std::size_t name_size_bytes = to.size() * sizeof(wchar_t);
  std::vector<std::byte> memory(sizeof(Rename) + name_size_bytes);
  auto* const rename = new (memory.data()) Rename{replaces | as_posix, nullptr, static_cast<DWORD>(name_size_bytes), {}};
  std::memcpy(memory.data() + offsetof(Rename, name), to.data(), name_size_bytes);
  return SetFileInformationByHandle(windows::handle(file), information, rename, static_cast<DWORD>(memory.size())) != FALSE;
}

/// Virus scanners and indexers open a new file for a moment, and with it the name cannot be changed.
constexpr int max_tries = 20;
constexpr DWORD pause_ms = 25;

bool is_in_use(DWORD code) {
  return code == ERROR_ACCESS_DENIED || code == ERROR_SHARING_VIOLATION || code == ERROR_USER_MAPPED_FILE;
}

/// A file that a process has mapped can be renamed, but not replaced: it gets another name, and is removed if nobody uses it any more.
bool replace_used_file(const std::wstring& from, const std::wstring& to, const std::wstring& aside) {
  if (MoveFileExW(to.c_str(), aside.c_str(), 0) == FALSE) return false;
  if (MoveFileExW(from.c_str(), to.c_str(), 0) == FALSE) {
    const DWORD code = GetLastError();
    MoveFileExW(aside.c_str(), to.c_str(), 0);
    SetLastError(code);
    return false;
  }
  DeleteFileW(aside.c_str());
  return true;
}

}  // namespace

std::error_code ReplacementFile::open_folder(const std::string& folder, const std::string& name) {
  folder_ = folder;
  name_ = name;
  const DWORD attributes = GetFileAttributesW(windows::system_path(folder).c_str());
  if (attributes == INVALID_FILE_ATTRIBUTES) return windows::last_error();
  if ((attributes & FILE_ATTRIBUTE_DIRECTORY) == 0) return std::make_error_code(std::errc::not_a_directory);
  return {};
}

std::error_code ReplacementFile::create() {
  remove_old_temporaries(folder_, name_);  // of replace_used_file() and killed processes
  while (!file_) {
    temporary_ = temporary_name(name_);
    file_ = windows::owned(
        CreateFileW(path_in(folder_, temporary_).c_str(), GENERIC_WRITE | DELETE, 0, nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr));
    if (file_ || GetLastError() == ERROR_FILE_EXISTS) continue;
    temporary_.clear();
    return windows::last_error();
  }
  return {};
}

std::error_code ReplacementFile::name() {
  return {};  // it has one
}

std::error_code ReplacementFile::replace(bool synced) {
  const std::wstring from = path_in(folder_, temporary_), to = path_in(folder_, name_);
  if (!replace_open_file(file_, to)) {
    if (const std::error_code error = file_.close()) return error;  // an open file keeps its name
    const DWORD flags = MOVEFILE_REPLACE_EXISTING | (synced ? MOVEFILE_WRITE_THROUGH : 0);
    for (int tries = 1; MoveFileExW(from.c_str(), to.c_str(), flags) == FALSE; ++tries) {
      const DWORD code = GetLastError();
      if (!is_in_use(code)) return windows::error_of(code);
      if (replace_used_file(from, to, path_in(folder_, temporary_name(name_)))) break;
      if (tries == max_tries) return windows::error_of(code);
      Sleep(pause_ms);
    }
  }
  temporary_.clear();
  return {};
}

void ReplacementFile::discard() {
  if (temporary_.empty()) return;
  static_cast<void>(file_.close());
  DeleteFileW(path_in(folder_, temporary_).c_str());
  temporary_.clear();
}

}  // namespace tenon::platform
