// tenon/trace.h - what a context did and when: kernels, copies, plans, waits and memory, as a file for Perfetto or chrome://tracing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <tenon/context.h>
#include <tenon/data.h>

namespace tenon {

namespace exec {
class TraceRecorder;
}

/// Records what a context does from here to stop(), or to its own end. While it lasts, programs run with times per kernel and wait for each
/// plan and copy on devices whose streams are asynchronous: results stay the same, runs may be slower. Without one there is a branch per
/// run, copy and allocation. The recording is bounded: what comes after two million events is counted and dropped.
/// Threads  any; one trace of a context at a time.
class Trace {
 public:
  /// Errors: the context is being traced already.
  explicit Trace(const Context& context);
  ~Trace();
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;
  /// Ends the recording; what was recorded stays.
  void stop();

  // What was recorded, until the context's next trace begins.

  /// Chrome's trace format. Each host thread and each device has a track of its own; memory of each device is a counter. A plan and its
  /// kernels share `args.correlation`; `args.node_id` is NodeInfo::id.
  std::string json() const;
  /// json() to a file. Errors: one that cannot be written.
  void write(const std::string& file) const;

  /// The runs of one kernel, summed up.
  struct Kernel {
    std::string node, op, device, algorithm;
    std::uint64_t node_id = 0;
    std::uint64_t runs = 0;
    std::uint64_t duration_ns = 0;  ///< of all runs
    std::uint64_t best_ns = 0;      ///< of the shortest
    std::uint64_t flops = 0;        ///< of one run; as in Program::KernelTime
    std::uint64_t size_bytes = 0;   ///< of one run
    std::uint32_t nodes = 0;        ///< that it computes
  };
  /// In the order in which they first ran.
  std::vector<Kernel> kernels() const;
  /// Events so far, and how many did not fit.
  std::uint64_t event_count() const;
  /// Those that did not fit.
  std::uint64_t dropped_count() const;

  /// The same samples; each batch gathered from them is an event of this trace, on the thread that gathers it.
  std::shared_ptr<const Dataset> watch(std::shared_ptr<const Dataset> data) const;

 private:
  std::shared_ptr<exec::TraceRecorder> recorder_;
};

/// A stretch of the caller's own work in the trace of a context, if one is being taken. They nest.
/// Threads  ends on the thread that made it.
class TraceSpan {
 public:
  /// Begins; the name is copied.
  TraceSpan(const Context& context, const char* name);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  exec::TraceRecorder* recorder_;  ///< null: none is being taken
};

}  // namespace tenon
