// SPDX-License-Identifier: Apache-2.0
#include "platform/lock_file.h"

#include "platform/windows/error.h"
#include "platform/windows/wide.h"

namespace tenon::platform {
namespace {

/// What the process that has the file open wrote.
std::string text_in(const std::wstring& path) {
  const File file = windows::owned(
      CreateFileW(path.c_str(), GENERIC_READ, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING, 0, nullptr));
  if (!file) return "";
  std::string text(300, '\0');
  std::uint64_t got = 0;
  static_cast<void>(file.read(text.data(), text.size(), got));
  text.resize(static_cast<std::size_t>(got));
  return text;
}

}  // namespace

LockFile::State LockFile::acquire(const std::string& path, const std::string& text) {
  path_ = path;
  const std::wstring at = windows::system_path(path);
  const DWORD attributes = GetFileAttributesW(at.c_str());
  if (attributes != INVALID_FILE_ATTRIBUTES && (attributes & (FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT)) != 0) {
    return State::not_regular;
  }
  // Whoever has the file open lets others only read it. The system removes it when it is closed, also by the death of the process.
  file_ = windows::owned(CreateFileW(at.c_str(), GENERIC_WRITE | DELETE, FILE_SHARE_READ, nullptr, OPEN_ALWAYS,
                                     FILE_ATTRIBUTE_NORMAL | FILE_FLAG_DELETE_ON_CLOSE, nullptr));
  if (!file_) {
    error_ = windows::last_error();
    if (error_.value() != ERROR_SHARING_VIOLATION && error_.value() != ERROR_DELETE_PENDING) return State::failed;
    owner_ = text_in(at);
    return State::held_by_another;
  }
  // Without the text the lock still holds; a full disk is reported by what is saved.
  std::uint64_t put = 0;
  if (SetEndOfFile(windows::handle(file_)) != FALSE) static_cast<void>(file_.write(text.data(), text.size(), put));
  return State::held;
}

void LockFile::remove() {
  static_cast<void>(file_.close());
}

}  // namespace tenon::platform
