// SPDX-License-Identifier: Apache-2.0
#include "platform/path.h"

#include <algorithm>

#include "platform/windows/error.h"
#include "platform/windows/wide.h"

namespace tenon::platform {

std::filesystem::path path_of(std::string_view utf8) {
  std::filesystem::path path(windows::wide(utf8));
  // std::filesystem calls the system with a path as it is.
  return path.is_absolute() && path.native().size() > windows::max_plain_path ? std::filesystem::path(windows::system_path(utf8)) : path;
}

std::string text_of(const std::filesystem::path& path) {
  return windows::utf8(windows::without_prefix(path.native()));
}

std::string portable_text_of(const std::filesystem::path& path) {
  std::string text = text_of(path);
  std::replace(text.begin(), text.end(), '\\', '/');
  return text;
}

std::string normal_path(const std::filesystem::path& path) {
  return path.has_root_directory() ? absolute_path(text_of(path)) : text_of(path.lexically_normal());
}

std::string absolute_path(const std::string& path) {
  return windows::utf8(windows::without_prefix(windows::full_path(path)));
}

std::string canonical_path(const std::string& path, std::error_code& out_error) {
  const File file = windows::owned(CreateFileW(windows::system_path(path).c_str(), FILE_READ_ATTRIBUTES,
                                               FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr, OPEN_EXISTING,
                                               FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  std::wstring canonical(32768, L'\0');  // the limit of paths
  const DWORD size =
      file ? GetFinalPathNameByHandleW(windows::handle(file), canonical.data(), static_cast<DWORD>(canonical.size()), FILE_NAME_NORMALIZED)
           : 0;
  out_error = file ? std::error_code() : windows::last_error();
  if (size == 0) return absolute_path(path);  // some file systems do not tell, nor does Wine that of a long path
  return windows::utf8(windows::without_prefix({canonical.data(), size}));
}

}  // namespace tenon::platform
