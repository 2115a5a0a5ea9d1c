// SPDX-License-Identifier: Apache-2.0
#include "platform/output_capture.h"

#include <fcntl.h>
#include <io.h>
#include <windows.h>

#include <cstdio>
#include <string>

namespace tenon::platform {
namespace {

/// A file that the system removes when it is closed; -1 if there is none.
int open_nameless_file() {
  wchar_t folder[MAX_PATH + 1], name[MAX_PATH + 1];
  if (GetTempPathW(MAX_PATH, folder) == 0 || GetTempFileNameW(folder, L"ten", 0, name) == 0) return -1;
  const HANDLE file = CreateFileW(name, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                  CREATE_ALWAYS, FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, nullptr);
  return file == INVALID_HANDLE_VALUE ? -1 : _open_osfhandle(reinterpret_cast<std::intptr_t>(file), _O_RDWR | _O_BINARY);
}

}  // namespace

struct OutputCapture::State {
  int file = open_nameless_file();
  int kept[3] = {-1, -1, -1};
};

OutputCapture::OutputCapture() : state_(std::make_unique<State>()) {
  std::fflush(nullptr);
  for (const int stream : {1, 2}) {
    state_->kept[stream] = _dup(stream);
    if (state_->file >= 0) _dup2(state_->file, stream);  // and its HANDLE, which libraries with another C runtime use
  }
}

OutputCapture::~OutputCapture() {
  if (state_ != nullptr) static_cast<void>(end());
}

std::string OutputCapture::end() {
  const std::unique_ptr<State> state = std::move(state_);
  std::fflush(nullptr);
  for (const int stream : {1, 2}) {
    if (state->kept[stream] < 0) {
      _close(stream);  // it was closed before
    } else {
      _dup2(state->kept[stream], stream);
      _close(state->kept[stream]);
    }
  }
  if (state->file < 0) return {};
  char text[200];
  _lseek(state->file, 0, SEEK_SET);
  const int size = _read(state->file, text, sizeof text);
  _close(state->file);
  return {text, size > 0 ? static_cast<std::size_t>(size) : 0};
}

}  // namespace tenon::platform
