// SPDX-License-Identifier: Apache-2.0
// exec/trace.h - the event recorder of tenon/trace.h. Every context has one; when off, it costs a branch.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <tenon/dtype.h>

namespace tenon::exec {

/// A kernel of a program; registered once, events refer to it by id.
struct TraceKernel {
  std::string node, op, device, algorithm;
  std::uint64_t node_id = 0;
  std::uint64_t flops = 0, size_bytes = 0;
  std::uint32_t nodes = 1;
  DType dtype = DType::f32;  ///< as in Trace::Kernel
};

struct TraceEvent {
  enum class Kind : std::uint8_t {
    kernel,  ///< name: id of the TraceKernel
    plan,    ///< value: number of its kernels
    copy,    ///< value: bytes
    span,    ///< other work on a host thread; value: the caller's correlation id
    memory,  ///< value: bytes currently in use
  };
  Kind kind = Kind::span;
  std::uint32_t thread = 0;  ///< host thread
  std::uint32_t device = 0;  ///< label; 0: the host
  std::uint32_t name = 0;    ///< label
  std::uint64_t begin_ns = 0, duration_ns = 0;
  std::uint64_t correlation = 0;
  std::uint64_t value = 0;
};

/// Threads  any.
class TraceRecorder {
 public:
  static constexpr std::size_t max_events = 2'000'000;

  bool on() const { return on_.load(std::memory_order_relaxed); }
  /// Starts a new recording. False if one is running.
  bool start();
  void stop() { on_.store(false); }
  /// Changes with every start; ids of labels and kernels are valid within one.
  std::uint64_t generation() const { return generation_.load(std::memory_order_relaxed); }

  static std::uint64_t now_ns();
  std::uint32_t label(std::string_view text);
  std::uint32_t kernel(TraceKernel kernel);
  std::uint64_t next_correlation() { return correlation_.fetch_add(1, std::memory_order_relaxed) + 1; }
  /// Sets the thread and records the event.
  void add(TraceEvent event);
  void add_memory(const std::string& device, std::uint64_t live_size_bytes);

  /// Spans nest per thread. An end without a beginning is ignored.
  void begin_span(std::string_view name, std::uint64_t correlation = 0);
  void end_span();

  // The interface of tenon::Trace.
  std::string json() const;
  std::size_t event_count() const;
  std::uint64_t dropped_count() const;
  template <class Visit>
  void for_each_kernel_run(Visit&& visit) const {
    const std::lock_guard lock(mutex_);
    for (const TraceEvent& event : events_) {
      if (event.kind == TraceEvent::Kind::kernel) visit(event.name, kernels_[event.name], event.duration_ns);
    }
  }

 private:
  std::atomic<bool> on_{false};
  std::atomic<std::uint64_t> generation_{0}, correlation_{0};
  mutable std::mutex mutex_;  ///< guards all below
  std::uint64_t begin_ns_ = 0;
  std::uint64_t dropped_ = 0;
  std::vector<TraceEvent> events_;
  std::vector<std::string> labels_;
  std::unordered_map<std::string, std::uint32_t> label_of_;
  std::vector<TraceKernel> kernels_;
};

/// Records a span for its lifetime if the recorder is on at the beginning.
class TraceScope {
 public:
  TraceScope(TraceRecorder& recorder, std::string_view name, std::uint64_t correlation = 0)
      : recorder_(recorder.on() ? &recorder : nullptr) {
    if (recorder_ != nullptr) recorder_->begin_span(name, correlation);
  }
  ~TraceScope() {
    if (recorder_ != nullptr) recorder_->end_span();
  }
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceRecorder* recorder_;
};

}  // namespace tenon::exec
