// SPDX-License-Identifier: Apache-2.0
#include "exec/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <map>
#include <tuple>

#include <tenon/error.h>
#include <tenon/trace.h>

#include "exec/context_state.h"
#include "io/atomic_file.h"
#include "platform/per_thread.h"
#include "yaml/json.h"

namespace tenon::exec {
namespace {

/// A small id per thread, in order of first use.
std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> next{1};
  thread_local const std::uint32_t id = next.fetch_add(1, std::memory_order_relaxed);
  return id;
}

struct OpenSpan {
  const TraceRecorder* recorder;
  std::uint64_t generation;
  std::uint32_t name;
  std::uint64_t begin_ns, correlation;
};
constinit const platform::PerThread<std::vector<OpenSpan>> open_spans;

std::string quoted(const std::string& text) {
  return json_text(Json(text));
}

constexpr std::uint32_t host_process = 1, first_device_process = 2;

/// Writes the events of one recording.
class Writer {
 public:
  Writer(std::uint64_t begin_ns, const std::vector<std::string>& labels, const std::vector<TraceKernel>& kernels)
      : begin_ns_(begin_ns), kernels_(kernels) {
    for (const std::string& label : labels) labels_.push_back(quoted(label));
  }

  void event(const TraceEvent& e) {
    switch (e.kind) {
      case TraceEvent::Kind::kernel:
        return kernel(e);
      case TraceEvent::Kind::memory:
        // Counters belong to a process; the name distinguishes devices in viewers that show them together.
        return line(R"({{"ph":"C","name":"memory","pid":{},"ts":{},"args":{{"live_size_bytes":{}}}}})", process(e.device), time(e.begin_ns),
                    e.value);
      case TraceEvent::Kind::copy:
        return complete(labels_[e.name], "copy", process(e.device), track(e.device, "copies", e.thread), e,
                        fmt::format(R"("size_bytes":{},"thread":{})", e.value, e.thread));
      case TraceEvent::Kind::plan: {
        const std::uint32_t thread = host_thread(e.thread);
        complete(labels_[e.name], "plan", host_process, thread, e,
                 fmt::format(R"("correlation":{},"kernels":{},"device":{})", e.correlation, e.value, labels_[e.device]));
        if (e.value > 0) {
          line(R"({{"ph":"s","name":"launch","cat":"launch","id":{},"pid":{},"tid":{},"ts":{}}})", e.correlation, host_process, thread,
               time(e.begin_ns));
          awaiting_[e.correlation] = true;
        }
        return;
      }
      case TraceEvent::Kind::span:
        return complete(labels_[e.name], "host", host_process, host_thread(e.thread), e, fmt::format(R"("correlation":{})", e.correlation));
    }
  }

  std::string finish(std::uint64_t dropped) {
    for (const auto& [device, id] : processes_) {
      line(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":{}}}}})", id, labels_[device]);
      line(R"({{"ph":"M","name":"process_sort_index","pid":{0},"args":{{"sort_index":{0}}}}})", id);
    }
    if (!threads_.empty()) line(R"({{"ph":"M","name":"process_name","pid":{},"args":{{"name":"host"}}}})", host_process);
    for (const auto& entry : threads_) {
      line(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"thread {}"}}}})", host_process, entry.first, entry.first);
    }
    for (const auto& [key, id] : tracks_) {
      line(R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{} of thread {}"}}}})", process(std::get<0>(key)), id,
           std::get<1>(key), std::get<2>(key));
    }
    return "{\"displayTimeUnit\":\"ns\",\"otherData\":{\"program\":\"tenon\",\"dropped_events\":" + std::to_string(dropped) +
           "},\"traceEvents\":[\n" + text_ + "\n]}\n";
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    if (!text_.empty()) text_ += ",\n";
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  /// Microseconds since the recording began.
  std::string time(std::uint64_t ns) const { return fmt::format("{:.3f}", static_cast<double>(ns - begin_ns_) / 1000.0); }

  void complete(const std::string& name, const char* category, std::uint32_t pid, std::uint32_t tid, const TraceEvent& e,
                const std::string& args) {
    line(R"({{"ph":"X","name":{},"cat":"{}","pid":{},"tid":{},"ts":{},"dur":{:.3f},"args":{{{}}}}})", name, category, pid, tid,
         time(e.begin_ns), static_cast<double>(e.duration_ns) / 1000.0, args);
  }

  void kernel(const TraceEvent& e) {
    const TraceKernel& k = kernels_[e.name];
    const std::uint32_t tid = track(e.device, "kernels", e.thread);
    complete(quoted(k.node), "kernel", process(e.device), tid, e,
             fmt::format(R"("op":{},"algorithm":{},"device":{},"node_id":{},"nodes":{},"flops":{},"size_bytes":{},"correlation":{})",
                         quoted(k.op), quoted(k.algorithm), quoted(k.device), k.node_id, k.nodes, k.flops, k.size_bytes, e.correlation));
    if (const auto found = awaiting_.find(e.correlation); found != awaiting_.end()) {
      line(R"({{"ph":"f","bp":"e","name":"launch","cat":"launch","id":{},"pid":{},"tid":{},"ts":{}}})", e.correlation, process(e.device),
           tid, time(e.begin_ns));
      awaiting_.erase(found);
    }
  }

  std::uint32_t process(std::uint32_t device) {
    return processes_.try_emplace(device, first_device_process + static_cast<std::uint32_t>(processes_.size())).first->second;
  }
  std::uint32_t host_thread(std::uint32_t thread) {
    threads_[thread] = true;
    return thread;
  }
  /// Two threads may use one device at the same time: their events would not nest on one track.
  std::uint32_t track(std::uint32_t device, const char* what, std::uint32_t thread) {
    return tracks_.try_emplace({device, what, thread}, static_cast<std::uint32_t>(tracks_.size() + 1)).first->second;
  }

  const std::uint64_t begin_ns_;
  const std::vector<TraceKernel>& kernels_;
  std::vector<std::string> labels_;  ///< quoted
  std::map<std::uint32_t, std::uint32_t> processes_;
  std::map<std::uint32_t, bool> threads_;
  std::map<std::tuple<std::uint32_t, std::string, std::uint32_t>, std::uint32_t> tracks_;
  std::map<std::uint64_t, bool> awaiting_;  ///< correlation ids of plans whose first kernel is not yet recorded
  std::string text_;
};

}  // namespace

std::uint64_t TraceRecorder::now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

bool TraceRecorder::start() {
  const std::lock_guard lock(mutex_);
  if (on()) return false;
  events_.clear();
  labels_ = {"host"};
  label_of_ = {{"host", 0}};
  kernels_.clear();
  dropped_ = 0;
  begin_ns_ = now_ns();
  generation_.fetch_add(1);
  on_.store(true);
  return true;
}

std::uint32_t TraceRecorder::label(std::string_view text) {
  const std::lock_guard lock(mutex_);
  const auto [found, inserted] = label_of_.try_emplace(std::string(text), static_cast<std::uint32_t>(labels_.size()));
  if (inserted) labels_.emplace_back(text);
  return found->second;
}

std::uint32_t TraceRecorder::kernel(TraceKernel kernel) {
  const std::lock_guard lock(mutex_);
  kernels_.push_back(std::move(kernel));
  return static_cast<std::uint32_t>(kernels_.size() - 1);
}

void TraceRecorder::add(TraceEvent event) {
  event.thread = thread_number();
  const std::lock_guard lock(mutex_);
  if (!on() || event.begin_ns < begin_ns_) return;  // it began before the recording
  if (events_.size() >= max_events) {
    ++dropped_;
    return;
  }
  events_.push_back(event);
}

void TraceRecorder::add_memory(const std::string& device, std::uint64_t live_size_bytes) {
  TraceEvent event;
  event.kind = TraceEvent::Kind::memory;
  event.device = label(device);
  event.begin_ns = now_ns();
  event.value = live_size_bytes;
  add(event);
}

void TraceRecorder::begin_span(std::string_view name, std::uint64_t correlation) {
  open_spans->push_back({this, generation(), label(name), now_ns(), correlation});
}

void TraceRecorder::end_span() {
  for (auto span = open_spans->rbegin(); span != open_spans->rend(); ++span) {
    if (span->recorder != this) continue;
    if (span->generation == generation()) {
      TraceEvent event;
      event.name = span->name;
      event.begin_ns = span->begin_ns;
      event.duration_ns = now_ns() - span->begin_ns;
      event.correlation = span->correlation;
      add(event);
    }
    open_spans->erase(std::next(span).base());
    return;
  }
}

std::string TraceRecorder::json() const {
  const std::lock_guard lock(mutex_);
  Writer writer(begin_ns_, labels_, kernels_);
  for (const TraceEvent& event : events_) writer.event(event);
  return writer.finish(dropped_);
}

std::size_t TraceRecorder::event_count() const {
  const std::lock_guard lock(mutex_);
  return events_.size();
}

std::uint64_t TraceRecorder::dropped_count() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

}  // namespace tenon::exec

namespace tenon {
namespace {

class WatchedDataset final : public Dataset {
 public:
  WatchedDataset(std::shared_ptr<const Dataset> data, std::shared_ptr<exec::TraceRecorder> recorder)
      : Dataset(data->inputs(), data->targets()),
        data_(std::move(data)),
        recorder_(std::move(recorder)),
        label_("gather " + data_->name()) {}
  const std::string& name() const override { return data_->name(); }
  std::int64_t size() const override { return data_->size(); }
  Tensor sample_weights() const override { return data_->sample_weights(); }
  bool is_in_memory() const override { return data_->is_in_memory(); }
  std::optional<std::int64_t> num_classes() const override { return data_->num_classes(); }
  void gather(std::span<const std::int64_t> indices, std::span<Tensor> inputs, std::span<Tensor> targets) const override {
    const exec::TraceScope scope(*recorder_, label_);
    data_->gather(indices, inputs, targets);
  }
  void gather_augmented(std::span<const std::int64_t> indices, std::uint64_t epoch, std::span<Tensor> inputs,
                        std::span<Tensor> targets) const override {
    const exec::TraceScope scope(*recorder_, label_);
    data_->gather_augmented(indices, epoch, inputs, targets);
  }

 private:
  const std::shared_ptr<const Dataset> data_;
  const std::shared_ptr<exec::TraceRecorder> recorder_;
  const std::string label_;
};

}  // namespace

Trace::Trace(const Context& context) : recorder_(context.state()->trace) {
  if (!recorder_->start()) throw Error("trace: this context is already being traced; stop that trace first");
}
Trace::~Trace() {
  stop();
}
void Trace::stop() {
  recorder_->stop();
}
std::string Trace::json() const {
  return recorder_->json();
}
void Trace::write(const std::string& file) const {
  io::write_atomically(file, json());
}
std::uint64_t Trace::event_count() const {
  return recorder_->event_count();
}
std::uint64_t Trace::dropped_count() const {
  return recorder_->dropped_count();
}

std::vector<Trace::Kernel> Trace::kernels() const {
  std::vector<Kernel> result;
  std::map<std::uint32_t, std::size_t> position;
  recorder_->for_each_kernel_run([&](std::uint32_t id, const exec::TraceKernel& k, std::uint64_t duration_ns) {
    const auto [found, inserted] = position.try_emplace(id, result.size());
    if (inserted) {
      result.push_back({k.node, k.op, k.device, k.algorithm, k.node_id, 0, 0, duration_ns, k.flops, k.size_bytes, k.nodes, k.dtype});
    }
    Kernel& kernel = result[found->second];
    ++kernel.runs;
    kernel.duration_ns += duration_ns;
    kernel.best_ns = std::min(kernel.best_ns, duration_ns);
  });
  return result;
}

std::shared_ptr<const Dataset> Trace::watch(std::shared_ptr<const Dataset> data) const {
  if (data == nullptr) return nullptr;
  return std::make_shared<WatchedDataset>(std::move(data), recorder_);
}

TraceSpan::TraceSpan(const Context& context, const char* name)
    : recorder_(context.state()->trace->on() ? context.state()->trace.get() : nullptr) {
  if (recorder_ != nullptr) recorder_->begin_span(name);
}
TraceSpan::~TraceSpan() {
  if (recorder_ != nullptr) recorder_->end_span();
}

}  // namespace tenon
