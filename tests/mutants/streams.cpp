// SPDX-License-Identifier: Apache-2.0
// Streams and events. Most mutants use the unmodified ones; some run fills and copies on a thread of each stream, like a GPU, with a wrong
// order.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>

#include "mutant.h"

namespace tenon::mutants {
namespace {

/// The queued and completed work of a stream. Events share it, since they may outlive the stream.
class Queue {
 public:
  Queue() : worker_([this] { work(); }) {}
  ~Queue() {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
    }
    changed_.notify_all();
    worker_.join();
  }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void push(std::function<void()> job) {
    {
      const std::lock_guard lock(mutex_);
      if (is(Mutation::runs_newest_first)) {
        jobs_.push_front(std::move(job));
      } else {
        jobs_.push_back(std::move(job));
      }
      ++pushed_;
    }
    changed_.notify_all();
  }
  std::uint64_t pushed() {
    const std::lock_guard lock(mutex_);
    return pushed_;
  }
  bool is_done(std::uint64_t count) {
    const std::lock_guard lock(mutex_);
    return done_ >= count;
  }
  void wait_for(std::uint64_t count) {
    std::unique_lock lock(mutex_);
    awaited_ = std::max(awaited_, count);
    changed_.notify_all();
    changed_.wait(lock, [&] { return done_ >= count; });
  }
  void drain() { wait_for(pushed()); }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ending_ || (!jobs_.empty() && (!is(Mutation::runs_when_waited_for) || done_ < awaited_)); });
      if (jobs_.empty()) return;
      const std::function<void()> job = std::move(jobs_.front());
      jobs_.pop_front();
      lock.unlock();
      job();
      lock.lock();
      ++done_;
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> jobs_;
  std::uint64_t pushed_ = 0, done_ = 0, awaited_ = 0;
  bool ending_ = false;
  std::thread worker_;
};

struct Stream {
  tenon_stream* unmodified;
  std::shared_ptr<Queue> queue;
  static Stream& of(tenon_stream* stream) { return *reinterpret_cast<Stream*>(stream); }
};

struct Event {
  tenon_event* unmodified;
  std::shared_ptr<Queue> queue;  ///< of the stream it was last recorded on
  std::uint64_t point = 0;
  bool timed = true;
  static Event& of(tenon_event* event) { return *reinterpret_cast<Event*>(event); }
  bool is_done() const { return queue == nullptr || queue->is_done(point); }
  void wait() const {
    if (queue != nullptr) queue->wait_for(point);
  }
};

/// The host services of streams and events, for the mutants that leak when one is destroyed.
std::mutex owners_mutex;
std::map<const void*, const tenon_host*> owners;

void note_owner(const void* handle, tenon_device* device) {
  const std::lock_guard lock(owners_mutex);
  owners[handle] = host_of(device);
}
void leak(const void* handle) {
  const std::lock_guard lock(owners_mutex);
  const tenon_host* const host = owners[handle];
  host->allocate(host->context, 64, 64);
}

tenon_status stream_create(tenon_device* device, const tenon_stream_options* given, tenon_stream** out_stream, tenon_error* error) {
  if (is(Mutation::expects_its_own_size_of_stream_options) && given != nullptr && given->struct_size != sizeof *given)
    return say(error, TENON_INVALID_ARGUMENT, "stream options of another size");
  if (is(Mutation::refuses_priorities) && given != nullptr && given->priority != 0) return say(error, TENON_UNSUPPORTED, "a priority");
  if (is(Mutation::ignores_needs_of_stream_options)) given = nullptr;
  tenon_stream* unmodified = nullptr;
  const tenon_status status = real().stream_create(device, given, &unmodified, error);
  if (status != TENON_OK) return status;
  *out_stream = is_asynchronous() ? reinterpret_cast<tenon_stream*>(new Stream{unmodified, std::make_shared<Queue>()}) : unmodified;
  note_owner(*out_stream, device);
  return TENON_OK;
}
void stream_destroy(tenon_stream* stream) {
  if (stream == nullptr) return;
  if (is(Mutation::leaks_streams)) leak(stream);
  if (!is_asynchronous()) return real().stream_destroy(stream);
  Stream::of(stream).queue->drain();
  real().stream_destroy(Stream::of(stream).unmodified);
  delete &Stream::of(stream);
}
tenon_status stream_synchronize(tenon_stream* stream, tenon_error* error) {
  if (is(Mutation::synchronize_does_not_wait)) return TENON_OK;
  return real().stream_synchronize(drained(stream), error);
}

tenon_status copy(tenon_device* device, const tenon_copy* what, tenon_stream* stream, tenon_error* error) {
  const std::uint64_t last = ~std::uint64_t{0} - what->size_bytes;
  // Copies of host memory, which is not pinned, and invalid ranges are passed on at once.
  if (what->direction != TENON_COPY_DEVICE_TO_DEVICE || what->source > last || what->destination > last) {
    const bool waits = !is(Mutation::synchronize_does_not_wait);
    return real().copy(device, what, waits ? drained(stream) : Stream::of(stream).unmodified, error);
  }
  Stream& ours = Stream::of(stream);
  ours.queue->push([device, copied = *what, unmodified = ours.unmodified] { real().copy(device, &copied, unmodified, nullptr); });
  return TENON_OK;
}
tenon_status fill(tenon_device* device, std::uint64_t address, std::uint64_t size, std::uint8_t value, tenon_stream* stream,
                  tenon_error* error) {
  if (address > ~std::uint64_t{0} - size) return real().fill(device, address, size, value, drained(stream), error);
  Stream& ours = Stream::of(stream);
  ours.queue->push([=, unmodified = ours.unmodified] {
    // Long enough that whoever does not wait is too early.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    real().fill(device, address, size, value, unmodified, nullptr);
  });
  return TENON_OK;
}

tenon_status event_create(tenon_device* device, const tenon_event_options* given, tenon_event** out_event, tenon_error* error) {
  if (is(Mutation::expects_its_own_size_of_event_options) && given != nullptr && given->struct_size != sizeof *given)
    return say(error, TENON_INVALID_ARGUMENT, "event options of another size");
  const bool timed = given == nullptr || (given->flags & TENON_EVENT_NO_TIMING) == 0;
  if (is(Mutation::ignores_needs_of_event_options)) given = nullptr;
  tenon_event* unmodified = nullptr;
  const tenon_status status = real().event_create(device, given, &unmodified, error);
  if (status != TENON_OK) return status;
  *out_event = is_asynchronous() ? reinterpret_cast<tenon_event*>(new Event{unmodified, nullptr, 0, timed}) : unmodified;
  note_owner(*out_event, device);
  return TENON_OK;
}
void event_destroy(tenon_event* event) {
  if (event == nullptr) return;
  if (is(Mutation::leaks_events)) leak(event);
  if (!is_asynchronous()) return real().event_destroy(event);
  Event::of(event).wait();
  real().event_destroy(Event::of(event).unmodified);
  delete &Event::of(event);
}
tenon_status event_record(tenon_event* event, tenon_stream* stream, tenon_error*) {
  Stream& ours = Stream::of(stream);
  Event& marked = Event::of(event);
  if (is(Mutation::records_only_once) && marked.queue != nullptr) return TENON_OK;
  marked.wait();
  ours.queue->push([to = marked.unmodified, unmodified = ours.unmodified] { real().event_record(to, unmodified, nullptr); });
  marked.queue = ours.queue;
  marked.point = ours.queue->pushed();
  return TENON_OK;
}
tenon_status event_wait(tenon_event* event, tenon_stream* stream, tenon_error*) {
  if (is(Mutation::race_between_streams)) return TENON_OK;
  const Event& marked = Event::of(event);
  if (is(Mutation::untimed_events_do_not_wait) && !marked.timed) return TENON_OK;
  if (marked.queue == nullptr || marked.queue == Stream::of(stream).queue) return TENON_OK;
  Stream::of(stream).queue->push([queue = marked.queue, point = marked.point] { queue->wait_for(point); });
  return TENON_OK;
}
tenon_status event_query(tenon_event* event, tenon_error* error) {
  return Event::of(event).is_done() ? real().event_query(Event::of(event).unmodified, error) : tenon_status{TENON_NOT_READY};
}
tenon_status event_synchronize(tenon_event* event, tenon_error* error) {
  if (is(Mutation::event_synchronize_does_not_wait)) return TENON_OK;
  Event::of(event).wait();
  return real().event_synchronize(Event::of(event).unmodified, error);
}
tenon_status event_elapsed(tenon_event* begin, tenon_event* end, std::uint64_t* out_ns, tenon_error* error) {
  Event::of(begin).wait();
  Event::of(end).wait();
  return real().event_elapsed(Event::of(begin).unmodified, Event::of(end).unmodified, out_ns, error);
}

// ---------------------------------------------------------------- wrong answers of unmodified events

tenon_status never_done(tenon_event*, tenon_error*) {
  return TENON_NOT_READY;
}
tenon_status elapsed_in_seconds(tenon_event* begin, tenon_event* end, std::uint64_t* out_ns, tenon_error* error) {
  const tenon_status status = real().event_elapsed(begin, end, out_ns, error);
  if (status == TENON_OK) *out_ns /= 1'000'000'000u;
  return status;
}

}  // namespace

bool is_asynchronous() {
  return is(Mutation::unmodified_asynchronous) || is(Mutation::race_between_streams) || is(Mutation::runs_newest_first) ||
         is(Mutation::runs_when_waited_for) || is(Mutation::synchronize_does_not_wait) || is(Mutation::event_synchronize_does_not_wait) ||
         is(Mutation::records_only_once) || is(Mutation::untimed_events_do_not_wait);
}

tenon_stream* drained(tenon_stream* stream) {
  if (!is_asynchronous() || stream == nullptr) return stream;
  Stream::of(stream).queue->drain();
  return Stream::of(stream).unmodified;
}

void spoil_streams(tenon_backend_table& table) {
  if (is(Mutation::event_never_done)) table.event_query = never_done;
  if (is(Mutation::event_times_in_seconds)) table.event_elapsed = elapsed_in_seconds;
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.event_create = event_create;
  table.event_destroy = event_destroy;
  if (!is_asynchronous()) return;
  table.copy = copy;
  table.fill = fill;
  table.stream_synchronize = stream_synchronize;
  table.event_record = event_record;
  table.event_wait = event_wait;
  table.event_query = event_query;
  table.event_synchronize = event_synchronize;
  table.event_elapsed = event_elapsed;
}

}  // namespace tenon::mutants
