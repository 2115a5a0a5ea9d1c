// SPDX-License-Identifier: Apache-2.0
#include "cli/trace_file.h"

#include <fmt/core.h>

#include <cstdio>
#include <exception>

#include "cli/program.h"
#include "cli/standard_streams.h"
#include "io/atomic_file.h"
#include "text/counted.h"

namespace tenon::cli {

TraceFile::TraceFile(const Context& context, std::string file) : file_(std::move(file)) {
  if (file_.empty()) return;
  trace_.emplace(context);
  const io::AtomicFile writable(file_);  // report a file that cannot be written before the training, not after it
}

TraceFile::~TraceFile() {
  if (!trace_) return;
  try {
    trace_->stop();
    trace_->write(file_);
    if (trace_->dropped_count() > 0) {
      print_message(fmt::format("tenon: warning: --trace {}: {} dropped after the first {}\n", file_,
                                counted(trace_->dropped_count(), "event was", "events were"), trace_->event_count()));
    }
  } catch (const std::exception& error) {
    print_error(std::string("--trace: ") + error.what());
    set_exit_code(1);
  }
}

DataSplits TraceFile::watch(DataSplits data) const {
  if (!trace_) return data;
  data.train = trace_->watch(std::move(data.train));
  data.validation = trace_->watch(std::move(data.validation));
  data.test = trace_->watch(std::move(data.test));
  return data;
}

}  // namespace tenon::cli
