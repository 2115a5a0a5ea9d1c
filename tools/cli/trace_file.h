// SPDX-License-Identifier: Apache-2.0
// cli/trace_file.h - --trace FILE.
#pragma once

#include <optional>
#include <string>

#include <tenon/trace.h>
#include <tenon/training_run.h>

namespace tenon::cli {

/// Traces the context during its lifetime and writes the file at its end, also after an error.
class TraceFile {
 public:
  /// `file`: empty for no trace.
  /// Errors  a file that cannot be written.
  TraceFile(const Context& context, std::string file);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  /// The same data, with its loading included in the trace.
  DataSplits watch(DataSplits data) const;

 private:
  std::string file_;
  std::optional<Trace> trace_;
};

}  // namespace tenon::cli
