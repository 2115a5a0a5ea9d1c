// SPDX-License-Identifier: Apache-2.0
#include "platform/access_violation.h"

#include <csignal>

#include "platform/streams.h"

namespace tenon::platform {

struct AccessViolationNote::State {
  static inline const char* text = "";
  struct sigaction before {};
};

AccessViolationNote::AccessViolationNote(const char* text) : state_(std::make_unique<State>()) {
  State::text = text;
  struct sigaction action {};
  action.sa_handler = [](int) { write_to_standard_error(State::text); };
  action.sa_flags = static_cast<int>(SA_RESETHAND);  // the access is repeated and ends the process
  sigaction(SIGSEGV, &action, &state_->before);
}

AccessViolationNote::~AccessViolationNote() {
  sigaction(SIGSEGV, &state_->before, nullptr);
}

}  // namespace tenon::platform
