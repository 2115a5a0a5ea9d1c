// SPDX-License-Identifier: Apache-2.0
// platform/output_capture.h - what a library writes to the standard streams of the process that it is part of.
#pragma once

#include <memory>
#include <string>

namespace tenon::platform {

/// During its lifetime, standard output and error of this process go to a file without a name.
class OutputCapture {
 public:
  OutputCapture();
  /// Restores both.
  ~OutputCapture();
  OutputCapture(const OutputCapture&) = delete;
  OutputCapture& operator=(const OutputCapture&) = delete;

  /// Restores both, and returns the first 200 bytes of what was written.
  std::string end();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tenon::platform
