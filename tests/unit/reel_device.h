// SPDX-License-Identifier: Apache-2.0
// reel_device.h - a device without host-addressable memory whose streams work by themselves and can be captured.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "exec/call.h"
#include "extra_device.h"
#include "testing.h"

namespace tenon::test {

/// The reference backend under the name `reel`: each stream has a thread that does its work in order, while the calls return; streams can
/// be captured. Pinned host memory is read and written when the work is done, pageable memory before the call returns. It logs what is
/// submitted, and tests may hold the work. Only one test may use it at a time.
struct Reel : WrappedBackend<Reel> {
  static constexpr const char* name = "reel";

  /// One submission or wait; the log is ordered by a mutex.
  struct Note {
    enum class What { uploaded, downloaded, executed, marked, waited, stream_synchronized, event_synchronized };
    What what;
    std::uint64_t event = 0;       ///< for marked and waited
    std::uint64_t address = 0;     ///< for uploaded: the destination
    std::uint64_t size_bytes = 0;  ///< for copies
    const void* stream = nullptr;
  };
  struct Work {
    std::function<tenon_status(tenon_error*)> run;
    bool is_plan = false;
  };
  struct Failure {
    tenon_status status = TENON_OK;
    std::uint64_t node_id = 0, sequence = 0;
    std::string text = {};
  };
  /// What a stream has to do, and its thread.
  class Queue {
   public:
    Queue() : thread_([this] { work(); }) {}
    ~Queue() {
      {
        const std::lock_guard lock(mutex_);
        quit_ = true;
      }
      changed_.notify_all();
      thread_.join();
    }
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;

    void give(Work work) {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
      ++given_;
      changed_.notify_all();
    }
    std::uint64_t given() {
      const std::lock_guard lock(mutex_);
      return given_;
    }
    bool has_done(std::uint64_t sequence) {
      const std::lock_guard lock(mutex_);
      return done_ >= sequence;
    }
    void wait(std::uint64_t sequence) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return done_ >= sequence; });
    }
    /// Reports the first failure since the last report, of the work up to `sequence`.
    tenon_status report(std::uint64_t sequence, tenon_error* error) {
      const std::lock_guard lock(mutex_);
      if (failure_.status == TENON_OK || failure_.sequence > sequence) return TENON_OK;
      const Failure found = std::exchange(failure_, {});
      error->node_id = found.node_id;
      std::snprintf(error->text, error->text_capacity, "%s", found.text.c_str());
      return found.status;
    }

   private:
    void work() {
      std::unique_lock lock(mutex_);
      for (;;) {
        changed_.wait(lock, [&] { return quit_ || !work_.empty(); });
        if (work_.empty()) return;
        const Work next = std::move(work_.front());
        work_.pop_front();
        lock.unlock();
        exec::ErrorText error;
        const tenon_status status = next.run(error);
        lock.lock();
        ++done_;
        if (status != TENON_OK && failure_.status == TENON_OK) failure_ = {status, error.node_id(), done_, error.text()};
        changed_.notify_all();
      }
    }

    std::mutex mutex_;  ///< guards the members below
    std::condition_variable changed_;
    std::deque<Work> work_;
    std::uint64_t given_ = 0, done_ = 0;
    bool quit_ = false;
    Failure failure_;
    std::thread thread_;
  };
  struct Stream {
    tenon_stream* real;
    std::shared_ptr<Queue> queue = std::make_shared<Queue>();
    std::unique_ptr<std::vector<Work>> recorded = nullptr;
    void give(Work work) {
      if (recorded != nullptr) return recorded->push_back(std::move(work));
      if (work.is_plan) note({Note::What::executed, 0, 0, 0, this});
      queue->give(std::move(work));
    }
  };
  struct Event {
    std::shared_ptr<Queue> queue;  ///< null: never recorded
    std::uint64_t sequence = 0;
    const void* stream = nullptr;
  };

  static inline std::vector<tenon_capability> capabilities;
  static inline int recorded = 0, replayed = 0;
  static inline std::atomic<int> executed = 0;  ///< plans, executed or replayed
  static inline std::mutex mutex;               ///< guards the members below
  static inline std::condition_variable changed;
  static inline std::vector<Note> notes;
  static inline int pinned = 0;                                              ///< number of pinned allocations
  static inline std::map<std::uint64_t, std::uint64_t> pinned_ends;          ///< by the beginning of each that is alive
  static inline std::map<const tenon_memory*, std::uint64_t> pinned_memory;  ///< their beginnings
  static inline bool no_pinned = false;                                      ///< pinned allocations fail
  static inline std::int64_t copies_left = -1;           ///< copies from the host before one fails; negative: none fails
  static inline std::function<void()> before_execution;  ///< called before each plan, by the thread of its stream, without the mutex
  static inline std::function<void(const void* stream)> before_upload;  ///< the same before each copy from pinned memory
  static inline std::atomic<std::uint64_t> replay_id = 0;               ///< the execution id of the replay that runs

  static void reset() {
    const std::lock_guard lock(mutex);
    recorded = replayed = executed = pinned = 0;
    no_pinned = false;
    copies_left = -1;
    notes.clear();
    before_execution = nullptr;
    before_upload = nullptr;
  }
  static void note(Note what) {
    const std::lock_guard lock(mutex);
    notes.push_back(what);
    changed.notify_all();
  }
  /// Called with the mutex.
  static std::int64_t count(Note::What what) {
    return std::count_if(notes.begin(), notes.end(), [&](const Note& note) { return note.what == what; });
  }
  static std::uint64_t handle_of(const void* object) { return reinterpret_cast<std::uintptr_t>(object); }
  static bool is_pinned(std::uint64_t address) {
    const std::lock_guard lock(mutex);
    const auto after = pinned_ends.upper_bound(address);
    return after != pinned_ends.begin() && address < std::prev(after)->second;
  }

  static Stream& of(tenon_stream* stream) { return *reinterpret_cast<Stream*>(stream); }
  static Event& of(tenon_event* event) { return *reinterpret_cast<Event*>(event); }
  static tenon_status create_stream(tenon_device* device, const tenon_stream_options* options, tenon_stream** out_stream,
                                    tenon_error* error) {
    tenon_stream* inner = nullptr;
    const tenon_status status = real->table().stream_create(device, options, &inner, error);
    if (status == TENON_OK) *out_stream = reinterpret_cast<tenon_stream*>(new Stream{inner});
    return status;
  }
  static void destroy_stream(tenon_stream* stream) {
    of(stream).queue->wait(of(stream).queue->given());
    real->table().stream_destroy(of(stream).real);
    delete &of(stream);
  }
  static tenon_status synchronize(tenon_stream* stream, tenon_error* error) {
    note({Note::What::stream_synchronized, 0, 0, 0, stream});
    Queue& queue = *of(stream).queue;
    const std::uint64_t sequence = queue.given();
    queue.wait(sequence);
    return queue.report(sequence, error);
  }
  static tenon_status copy(tenon_device* device, const tenon_copy* transfer, tenon_stream* stream, tenon_error*) {
    const bool up = transfer->direction == TENON_COPY_HOST_TO_DEVICE, down = transfer->direction == TENON_COPY_DEVICE_TO_HOST;
    const bool deferred = !(up || down) || is_pinned(up ? transfer->source : transfer->destination);
    if (up || down) note({up ? Note::What::uploaded : Note::What::downloaded, 0, transfer->destination, transfer->size_bytes, stream});
    if (up) {
      const std::lock_guard lock(mutex);
      if (copies_left >= 0 && copies_left-- == 0) return TENON_VENDOR_ERROR;
    }
    std::shared_ptr<std::vector<char>> taken;  // the bytes of pageable memory, which may change after the call
    if (up && !deferred) {
      const char* const from = reinterpret_cast<const char*>(static_cast<std::uintptr_t>(transfer->source));
      taken = std::make_shared<std::vector<char>>(from, from + transfer->size_bytes);
    }
    of(stream).give({[=, given = *transfer, inner = of(stream).real](tenon_error* late) {
      if (up && deferred && before_upload) before_upload(stream);
      tenon_copy own = given;
      if (taken != nullptr) own.source = handle_of(taken->data());
      return real->table().copy(device, &own, inner, late);
    }});
    if (down && !deferred) of(stream).queue->wait(of(stream).queue->given());
    return TENON_OK;
  }
  static tenon_status fill(tenon_device* device, std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value, tenon_stream* stream,
                           tenon_error*) {
    of(stream).give(
        {[=, inner = of(stream).real](tenon_error* late) { return real->table().fill(device, address, size_bytes, value, inner, late); }});
    return TENON_OK;
  }
  static tenon_status execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                              tenon_error*) {
    const std::vector<std::uint64_t> addresses(bindings->addresses, bindings->addresses + bindings->address_count);
    const bool recording = of(stream).recorded != nullptr;
    of(stream).give({[=, inner = of(stream).real, given = *bindings](tenon_error* late) {
                       if (before_execution) before_execution();
                       ++executed;
                       tenon_bindings bound = given;
                       bound.addresses = addresses.data();
                       bound.run = nullptr;  // gone by now
                       if (recording) bound.execution_id = replay_id;
                       return real->table().plan_execute(plan, &bound, workspace, inner, late);
                     },
                     true});
    return TENON_OK;
  }
  static tenon_status create_event(tenon_device*, const tenon_event_options*, tenon_event** out_event, tenon_error*) {
    *out_event = reinterpret_cast<tenon_event*>(new Event);
    return TENON_OK;
  }
  static void destroy_event(tenon_event* event) { delete &of(event); }
  static tenon_status record(tenon_event* event, tenon_stream* stream, tenon_error*) {
    note({Note::What::marked, handle_of(event), 0, 0, stream});
    of(event) = {of(stream).queue, of(stream).queue->given(), stream};
    return TENON_OK;
  }
  static tenon_status wait(tenon_event* event, tenon_stream* stream, tenon_error*) {
    note({Note::What::waited, handle_of(event), 0, 0, stream});
    if (of(event).queue != nullptr && of(event).queue != of(stream).queue) {
      of(stream).give({[at = of(event)](tenon_error*) {
        at.queue->wait(at.sequence);
        return tenon_status{TENON_OK};
      }});
    }
    return TENON_OK;
  }
  static tenon_status query(tenon_event* event, tenon_error* error) {
    const Event& at = of(event);
    if (at.queue == nullptr) return TENON_OK;
    return at.queue->has_done(at.sequence) ? at.queue->report(at.sequence, error) : tenon_status{TENON_NOT_READY};
  }
  static tenon_status synchronize_event(tenon_event* event, tenon_error* error) {
    const Event& at = of(event);
    note({Note::What::event_synchronized, handle_of(event), 0, 0, at.stream});
    if (at.queue == nullptr) return TENON_OK;
    at.queue->wait(at.sequence);
    return at.queue->report(at.sequence, error);
  }
  static tenon_status elapsed(tenon_event*, tenon_event*, std::uint64_t* out_ns, tenon_error*) {
    *out_ns = 0;
    return TENON_OK;
  }
  static tenon_status allocate(tenon_device* device, const tenon_memory_request* request, tenon_memory_result* out_result,
                               tenon_error* error) {
    const bool is_pinned = request->kind == TENON_MEMORY_PINNED;
    if (is_pinned) {
      const std::lock_guard lock(mutex);
      if (no_pinned) return TENON_OUT_OF_MEMORY;
      ++pinned;
    }
    const tenon_status status = real->table().memory_allocate(device, request, out_result, error);
    if (is_pinned && status == TENON_OK) {
      const std::lock_guard lock(mutex);
      pinned_ends[out_result->address] = out_result->address + request->size_bytes;
      pinned_memory[out_result->memory] = out_result->address;
    }
    return status;
  }
  static void free(tenon_memory* memory) {
    {
      const std::lock_guard lock(mutex);
      if (const auto found = pinned_memory.find(memory); found != pinned_memory.end()) {
        pinned_ends.erase(found->second);
        pinned_memory.erase(found);
      }
    }
    real->table().memory_free(memory);
  }
  static tenon_status begin(tenon_stream* stream, tenon_error*) {
    of(stream).recorded = std::make_unique<std::vector<Work>>();
    return TENON_OK;
  }
  static tenon_status end(tenon_stream* stream, tenon_capture** out_capture, tenon_error*) {
    ++recorded;
    *out_capture = reinterpret_cast<tenon_capture*>(of(stream).recorded.release());
    return TENON_OK;
  }
  static tenon_status replay(tenon_capture* capture, tenon_stream* stream, std::uint64_t execution_id, tenon_error*) {
    ++replayed;
    of(stream).give({[execution_id](tenon_error*) { return replay_id = execution_id, tenon_status{TENON_OK}; }});
    for (const Work& work : *reinterpret_cast<std::vector<Work>*>(capture)) of(stream).give(work);
    return TENON_OK;
  }
  static void destroy(tenon_capture* capture) { delete reinterpret_cast<std::vector<Work>*>(capture); }
  static constexpr tenon_capture_table capture_block{sizeof(tenon_capture_table), 0, begin, end, replay, destroy};

  static void alter(tenon_backend_table& table) {
    table.stream_create = create_stream;
    table.stream_destroy = destroy_stream;
    table.stream_synchronize = synchronize;
    table.copy = copy;
    table.fill = fill;
    table.plan_execute = execute;
    table.event_create = create_event;
    table.event_destroy = destroy_event;
    table.event_record = record;
    table.event_wait = wait;
    table.event_query = query;
    table.event_synchronize = synchronize_event;
    table.event_elapsed = elapsed;
    table.memory_allocate = allocate;
    table.memory_free = free;
    table.capture = &capture_block;
    table.blas = nullptr;
  }
  static void describe(tenon_backend_info& info) {
    const std::span list(info.capabilities, info.capability_count);
    capabilities.assign(list.begin(), list.end());
    for (tenon_capability& c : capabilities) c.features |= TENON_FEATURE_CAPTURE_SAFE;
    info.capabilities = capabilities.data();
  }
};

/// A context whose default device is reel:0. The one before it has ended: calls go to the backend of the last one.
inline Context with_reel(const Config& config) {
  Context context(config);
  Reel::reset();
  Reel::add_to(context);
  context.state()->config.device = "reel:0";
  return context;
}

/// Fixture.
struct OnReel {
  const Context context = with_reel(test_config());
};

}  // namespace tenon::test
