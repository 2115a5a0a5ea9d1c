// SPDX-License-Identifier: Apache-2.0
#include "platform/output_capture.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdio>

namespace tenon::platform {

struct OutputCapture::State {
  std::FILE* file = std::tmpfile();
  int kept[3] = {-1, -1, -1};
};

OutputCapture::OutputCapture() : state_(std::make_unique<State>()) {
  std::fflush(nullptr);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    state_->kept[stream] = fcntl(stream, F_DUPFD_CLOEXEC, 3);
    if (state_->file != nullptr) dup2(fileno(state_->file), stream);
  }
}

OutputCapture::~OutputCapture() {
  if (state_ != nullptr) static_cast<void>(end());
}

std::string OutputCapture::end() {
  const std::unique_ptr<State> state = std::move(state_);
  std::fflush(nullptr);
  for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
    if (state->kept[stream] < 0) {
      close(stream);  // it was closed before
    } else {
      dup2(state->kept[stream], stream);
      close(state->kept[stream]);
    }
  }
  if (state->file == nullptr) return {};
  char text[200];
  const ssize_t size = pread(fileno(state->file), text, sizeof text, 0);
  std::fclose(state->file);
  return {text, size > 0 ? static_cast<std::size_t>(size) : 0};
}

}  // namespace tenon::platform
