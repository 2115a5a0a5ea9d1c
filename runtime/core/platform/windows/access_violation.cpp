// SPDX-License-Identifier: Apache-2.0
#include "platform/access_violation.h"

#include <windows.h>

#include "platform/streams.h"

namespace tenon::platform {

struct AccessViolationNote::State {
  static inline const char* text = "";
  void* handler = nullptr;
};

AccessViolationNote::AccessViolationNote(const char* text) : state_(std::make_unique<State>()) {
  State::text = text;
  state_->handler = AddVectoredExceptionHandler(1, [](EXCEPTION_POINTERS* exception) -> LONG {
    if (exception->ExceptionRecord->ExceptionCode == EXCEPTION_ACCESS_VIOLATION) write_to_standard_error(State::text);
    return EXCEPTION_CONTINUE_SEARCH;  // which ends the process
  });
}

AccessViolationNote::~AccessViolationNote() {
  RemoveVectoredExceptionHandler(state_->handler);
}

}  // namespace tenon::platform
