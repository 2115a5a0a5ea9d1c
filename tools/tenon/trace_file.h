// tenon/trace_file.h - --trace FILE.
#pragma once

#include <optional>
#include <string>

#include <tenon/trace.h>

#include "train/datasets.h"

namespace tenon::cli {

/// A trace of the context as long as it lives, then a file: also when an error ends it, whose story it tells.
class TraceFile {
 public:
  /// `file`: empty for no trace. Errors: a file that cannot be written.
  TraceFile(const Context& context, std::string file);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;
  /// The same data; what gathering it takes is part of the trace.
  train::DataSplits watch(train::DataSplits data) const;

 private:
  std::string file_;
  std::optional<Trace> trace_;
};

}  // namespace tenon::cli
