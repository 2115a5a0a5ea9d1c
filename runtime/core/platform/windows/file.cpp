// SPDX-License-Identifier: Apache-2.0
#include "platform/file.h"

#include <fcntl.h>
#include <io.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "platform/windows/error.h"
#include "platform/windows/wide.h"

namespace tenon::platform {
namespace {

/// What one read or write takes at most.
DWORD piece(std::uint64_t size_bytes) {
  return static_cast<DWORD>(std::min<std::uint64_t>(size_bytes, std::uint64_t{1} << 30));
}

constexpr DWORD shared = FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE;
constexpr int disk_quota_exceeded = 1295;  // ERROR_DISK_QUOTA_EXCEEDED, which the headers of MinGW 10 do not have

}  // namespace

std::string message_of(const std::error_code& error) {
  if (error.category() != std::system_category()) return error.message();
  wchar_t* text = nullptr;
  const DWORD length = FormatMessageW(FORMAT_MESSAGE_ALLOCATE_BUFFER | FORMAT_MESSAGE_FROM_SYSTEM | FORMAT_MESSAGE_IGNORE_INSERTS, nullptr,
                                      static_cast<DWORD>(error.value()), 0, reinterpret_cast<wchar_t*>(&text), 0, nullptr);
  std::string message = windows::utf8(std::wstring_view(text, length));
  LocalFree(text);
  while (!message.empty() && (message.back() == '\n' || message.back() == '\r' || message.back() == '.')) message.pop_back();
  return message.empty() ? "Windows error " + std::to_string(error.value()) : message;
}

bool is_out_of_space(const std::error_code& error) {
  return error.value() == ERROR_DISK_FULL || error.value() == ERROR_HANDLE_DISK_FULL || error.value() == disk_quota_exceeded ||
         error.value() == ERROR_FILE_TOO_LARGE;
}

std::error_code File::close() {
  const std::intptr_t closed = release();
  return closed == none ? std::error_code() : windows::error_unless(CloseHandle(reinterpret_cast<HANDLE>(closed)));
}

std::error_code File::read(void* out_bytes, std::uint64_t size_bytes, std::uint64_t& out_read_bytes) const {
  DWORD got = 0;
  const BOOL done = ReadFile(windows::handle(*this), out_bytes, piece(size_bytes), &got, nullptr);
  out_read_bytes = got;
  if (done == FALSE && GetLastError() == ERROR_BROKEN_PIPE) return {};  // the end of a pipe
  return windows::error_unless(done);
}

std::error_code File::write(const void* bytes, std::uint64_t size_bytes, std::uint64_t& out_written_bytes) const {
  DWORD put = 0;
  const BOOL done = WriteFile(windows::handle(*this), bytes, piece(size_bytes), &put, nullptr);
  out_written_bytes = put;
  return windows::error_unless(done);
}

std::error_code File::seek(std::uint64_t offset) const {
  LARGE_INTEGER to{};
  to.QuadPart = static_cast<LONGLONG>(offset);
  return windows::error_unless(SetFilePointerEx(windows::handle(*this), to, nullptr, FILE_BEGIN));
}

std::error_code File::flush() const {
  return windows::error_unless(FlushFileBuffers(windows::handle(*this)));
}

InputFile open_input(const std::string& path) {
  InputFile input;
  // Backup semantics: a folder can be opened, which tells that it is one.
  input.file = windows::owned(
      CreateFileW(windows::system_path(path).c_str(), GENERIC_READ, shared, nullptr, OPEN_EXISTING, FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  if (!input.file) {
    input.error = windows::last_error();
    return input;
  }
  const HANDLE handle = windows::handle(input.file);
  if (GetFileType(handle) != FILE_TYPE_DISK) return input;
  BY_HANDLE_FILE_INFORMATION info{};
  if (GetFileInformationByHandle(handle, &info) == FALSE) {
    input.error = windows::last_error();
    return input;
  }
  input.kind = (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) != 0 ? FileKind::folder : FileKind::regular;
  input.size_bytes = (std::uint64_t{info.nFileSizeHigh} << 32) + info.nFileSizeLow;
  return input;
}

File open_output(const std::string& path, bool append, std::error_code& out_error) {
  const DWORD access = append ? FILE_APPEND_DATA | SYNCHRONIZE : GENERIC_WRITE;
  File file = windows::owned(CreateFileW(windows::system_path(path).c_str(), access, shared, nullptr, append ? OPEN_ALWAYS : CREATE_ALWAYS,
                                         FILE_ATTRIBUTE_NORMAL, nullptr));
  out_error = file ? std::error_code() : windows::last_error();
  return file;
}

std::FILE* open_stream(File& file, const char* mode, std::error_code& out_error) {
  const int how = mode[0] == 'r' ? _O_RDONLY : mode[0] == 'a' ? _O_WRONLY | _O_APPEND : _O_WRONLY;
  const int fd = _open_osfhandle(file.native(), how | _O_BINARY | _O_NOINHERIT);
  if (fd < 0) {
    out_error = {errno, std::generic_category()};
    return nullptr;
  }
  std::FILE* const stream = _fdopen(fd, mode);
  file.release();  // to the descriptor, whatever happens to the stream
  out_error = stream != nullptr ? std::error_code() : std::error_code(errno, std::generic_category());
  if (stream == nullptr) _close(fd);
  return stream;
}

std::error_code copy_file(const std::string& from, const std::string& to) {
  return windows::error_unless(CopyFileW(windows::system_path(from).c_str(), windows::system_path(to).c_str(), FALSE));
}

LinkKind link_kind(const std::string& path) {
  const File file = windows::owned(CreateFileW(windows::system_path(path).c_str(), FILE_READ_ATTRIBUTES, shared, nullptr, OPEN_EXISTING,
                                               FILE_FLAG_BACKUP_SEMANTICS | FILE_FLAG_OPEN_REPARSE_POINT, nullptr));
  BY_HANDLE_FILE_INFORMATION info{};
  if (!file || GetFileInformationByHandle(windows::handle(file), &info) == FALSE) return LinkKind::none;
  if ((info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT) != 0) return LinkKind::symbolic;  // or a junction, which leads elsewhere too
  return (info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) == 0 && info.nNumberOfLinks > 1 ? LinkKind::hard : LinkKind::none;
}

}  // namespace tenon::platform
