// SPDX-License-Identifier: Apache-2.0
#include "platform/output_target.h"

#include <utility>

#include "platform/path.h"
#include "platform/windows/error.h"
#include "platform/windows/wide.h"

namespace tenon::platform {
namespace {

OutputTarget refuse(const std::string& problem) {
  return {"", {}, problem};
}

/// Whether the name stands for a device: "NUL", "COM1", "\\.\pipe\name".
bool is_device(const std::wstring& full_path) {
  return full_path.starts_with(L"\\\\.\\");
}

}  // namespace

OutputTarget find_output(const std::string& path) {
  const std::wstring full = windows::full_path(path);
  if (is_device(full)) {
    File file =
        windows::owned(CreateFileW(full.c_str(), GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_EXISTING, 0, nullptr));
    if (!file) return refuse(message_of(windows::last_error()));
    return {path, std::move(file), ""};
  }
  const std::wstring at = windows::system_path(path);
  const DWORD attributes = GetFileAttributesW(at.c_str());
  if (attributes == INVALID_FILE_ATTRIBUTES) return {path, {}, ""};  // a new file, or a folder that does not exist
  if ((attributes & FILE_ATTRIBUTE_DIRECTORY) != 0) return refuse("it is a folder");
  if ((attributes & FILE_ATTRIBUTE_REPARSE_POINT) == 0) return {path, {}, ""};
  // Only administrators, and users in developer mode, can make a link, and Windows does not follow those of a remote folder.
  std::error_code error;
  std::string target = canonical_path(path, error);
  if (error) return refuse(message_of(error));
  return {std::move(target), {}, ""};
}

}  // namespace tenon::platform
