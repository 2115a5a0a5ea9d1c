// SPDX-License-Identifier: Apache-2.0
// platform/access_violation.h - a word before the process ends because of an access to memory that it may not use.
#pragma once

#include <memory>

namespace tenon::platform {

/// During its lifetime, such an access writes a text to standard error before it ends the process. At most one instance may exist at a
/// time.
class AccessViolationNote {
 public:
  /// The text outlives this object.
  explicit AccessViolationNote(const char* text);
  ~AccessViolationNote();
  AccessViolationNote(const AccessViolationNote&) = delete;
  AccessViolationNote& operator=(const AccessViolationNote&) = delete;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::platform
