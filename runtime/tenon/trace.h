// SPDX-License-Identifier: Apache-2.0
// tenon/trace.h - records kernels, copies, plans, waits and memory of a context, in a file for
// Perfetto or chrome://tracing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/api.h>
#include <tenon/context.h>
#include <tenon/data.h>
#include <tenon/dtype.h>

namespace tenon {

namespace exec {
class TraceRecorder;
}

/// Records what a context does until stop() or the end of this object. Meanwhile programs measure
/// each kernel, and wait for each plan and copy on devices with asynchronous streams: results are
/// the same, runs may be slower. Without a trace the cost is one branch per run, copy and
/// allocation. The recording is bounded: events after the first two million are counted and
/// dropped.
/// Threads  any; one trace of a context at a time.
class TENON_API Trace {
 public:
  /// Errors: the context is already being traced.
  explicit Trace(const Context& context);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  /// Ends the recording and keeps the events.
  void stop();

  // The recorded events, available until the context's next trace begins.

  /// The Chrome trace format. Each host thread and each device has its own track; the memory of
  /// each device is a counter. A plan and its kernels share `args.correlation`; `args.node_id` is
  /// NodeInfo::id.
  std::string json() const;
  /// Writes json() to a file. Errors: a file that cannot be written.
  void write(const std::string& file) const;

  /// The runs of one kernel, aggregated.
  struct Kernel {
    std::string node, op, device, algorithm;
    std::uint64_t node_id = 0;
    std::uint64_t runs = 0;
    std::uint64_t duration_ns = 0;  ///< all runs
    std::uint64_t best_ns = 0;      ///< the shortest run
    std::uint64_t flops = 0;        ///< per run; as in Program::KernelTime
    std::uint64_t size_bytes = 0;   ///< per run
    std::uint32_t nodes = 0;        ///< number of nodes that it computes, as in KernelTime::nodes
    DType dtype = DType::f32;       ///< that the node with the most flops computes with
  };
  /// In the order of their first run.
  std::vector<Kernel> kernels() const;
  /// Number of recorded events.
  std::uint64_t event_count() const;
  /// Number of events dropped because the recording was full.
  std::uint64_t dropped_count() const;

  /// A wrapper of a data set that records each gathered batch as an event, on the thread that
  /// gathers it.
  std::shared_ptr<const Dataset> watch(std::shared_ptr<const Dataset> data) const;

 private:
  std::shared_ptr<exec::TraceRecorder> recorder_;
};

/// A named span of the caller's own work in the trace of a context, if one is running. Spans nest.
/// Threads  destroy it on the thread that created it.
class TENON_API TraceSpan {
 public:
  /// Begins the span; the name is copied.
  TraceSpan(const Context& context, const char* name);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  exec::TraceRecorder* recorder_;  ///< null: no trace is running
};

}  // namespace tenon
