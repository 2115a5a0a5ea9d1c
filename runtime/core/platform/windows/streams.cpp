// SPDX-License-Identifier: Apache-2.0
#include "platform/streams.h"

#include <fcntl.h>
#include <io.h>
#include <windows.h>

namespace tenon::platform {
namespace {

/// Opens a stream on the null device if it has no file, which is the case in programs without a console.
bool open_if_closed(std::FILE* stream, const char* mode) {
  if (_fileno(stream) >= 0 && _get_osfhandle(_fileno(stream)) >= 0) return true;
  return std::freopen("NUL", mode, stream) != nullptr;
}

void obey_escape_sequences(DWORD which) {
  const HANDLE console = GetStdHandle(which);
  DWORD mode = 0;
  if (GetConsoleMode(console, &mode) != FALSE) SetConsoleMode(console, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING);
}

}  // namespace

bool prepare_standard_streams() {
  if (!open_if_closed(stdin, "rb") || !open_if_closed(stdout, "wb") || !open_if_closed(stderr, "wb")) return false;
  for (std::FILE* stream : {stdin, stdout, stderr}) static_cast<void>(_setmode(_fileno(stream), _O_BINARY));
  SetConsoleOutputCP(CP_UTF8);
  obey_escape_sequences(STD_OUTPUT_HANDLE);
  obey_escape_sequences(STD_ERROR_HANDLE);
  return true;
}

bool is_terminal(std::FILE* stream) {
  // _isatty is true for every character device, NUL among them.
  DWORD mode = 0;
  return GetConsoleMode(reinterpret_cast<HANDLE>(_get_osfhandle(_fileno(stream))), &mode) != FALSE;
}

bool obeys_escape_sequences(std::FILE* stream) {
  DWORD mode = 0;
  const HANDLE console = reinterpret_cast<HANDLE>(_get_osfhandle(_fileno(stream)));
  return GetConsoleMode(console, &mode) != FALSE && (mode & ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0;
}

int terminal_columns(std::FILE* stream) {
  CONSOLE_SCREEN_BUFFER_INFO info{};
  const HANDLE console = reinterpret_cast<HANDLE>(_get_osfhandle(_fileno(stream)));
  return GetConsoleScreenBufferInfo(console, &info) != FALSE ? info.srWindow.Right - info.srWindow.Left + 1 : 0;
}

void write_to_standard_error(std::string_view text) noexcept {
  DWORD put = 0;
  WriteFile(GetStdHandle(STD_ERROR_HANDLE), text.data(), static_cast<DWORD>(text.size()), &put, nullptr);
}

}  // namespace tenon::platform
