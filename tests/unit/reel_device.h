// SPDX-License-Identifier: Apache-2.0
// reel_device.h - a device without host-addressable memory whose streams defer work until synchronization and can be captured.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "extra_device.h"
#include "testing.h"

namespace tenon::test {

/// The reference backend under the name `reel`: its streams defer work until synchronization and can be captured. It logs the actions of
/// streams and events. Only one test may use it at a time.
struct Reel : WrappedBackend<Reel> {
  static constexpr const char* name = "reel";

  /// One logged action; the log is ordered by a mutex.
  struct Note {
    enum class What { copied, executed, marked, waited };
    What what;
    std::uint64_t event = 0;       ///< for marked and waited
    std::uint64_t address = 0;     ///< for copied: the destination
    std::uint64_t size_bytes = 0;  ///< for copied
    const void* stream = nullptr;
  };
  using Work = std::vector<std::function<tenon_status(tenon_error*)>>;
  struct Stream {
    tenon_stream* real;
    Work pending;
    std::unique_ptr<Work> recorded;
    void give(Work::value_type work) { (recorded != nullptr ? *recorded : pending).push_back(std::move(work)); }
  };

  static inline std::vector<tenon_capability> capabilities;
  static inline int recorded = 0, replayed = 0, executed = 0;  ///< executed counts plans, executed or replayed
  static inline std::mutex mutex;                              ///< guards the members below
  static inline std::condition_variable changed;
  static inline std::vector<Note> notes;                 ///< only copies from the host are logged
  static inline int pinned = 0;                          ///< number of pinned allocations
  static inline bool no_pinned = false;                  ///< pinned allocations fail
  static inline std::int64_t copies_left = -1;           ///< copies from the host before one fails; negative: none fails
  static inline std::function<void()> before_execution;  ///< called before each plan, without the mutex
  static inline std::uint64_t replay_id = 0;             ///< the execution id of the replay that runs

  static void reset() {
    const std::lock_guard lock(mutex);
    recorded = replayed = executed = pinned = 0;
    no_pinned = false;
    copies_left = -1;
    notes.clear();
    before_execution = nullptr;
  }
  static void note(Note what) {
    const std::lock_guard lock(mutex);
    notes.push_back(what);
    changed.notify_all();
  }
  static std::uint64_t handle_of(const void* object) { return reinterpret_cast<std::uintptr_t>(object); }

  static Stream& of(tenon_stream* stream) { return *reinterpret_cast<Stream*>(stream); }
  static tenon_status create_stream(tenon_device* device, const tenon_stream_options* options, tenon_stream** out_stream,
                                    tenon_error* error) {
    tenon_stream* inner = nullptr;
    const tenon_status status = real->table().stream_create(device, options, &inner, error);
    if (status == TENON_OK) *out_stream = reinterpret_cast<tenon_stream*>(new Stream{inner, {}, nullptr});
    return status;
  }
  static void destroy_stream(tenon_stream* stream) {
    real->table().stream_destroy(of(stream).real);
    delete &of(stream);
  }
  static tenon_status synchronize(tenon_stream* stream, tenon_error* error) {
    tenon_status status = TENON_OK;
    for (const auto& work : std::exchange(of(stream).pending, {})) {
      if (status == TENON_OK) status = work(error);
    }
    return status;
  }
  static tenon_status copy(tenon_device* device, const tenon_copy* transfer, tenon_stream* stream, tenon_error* error) {
    if (transfer->direction != TENON_COPY_DEVICE_TO_DEVICE) {  // host memory may change after the call
      tenon_status status = synchronize(stream, error);
      if (status == TENON_OK) status = real->table().copy(device, transfer, of(stream).real, error);
      if (transfer->direction == TENON_COPY_HOST_TO_DEVICE) {
        note({Note::What::copied, 0, transfer->destination, transfer->size_bytes, stream});
        const std::lock_guard lock(mutex);
        if (copies_left >= 0 && copies_left-- == 0) return TENON_VENDOR_ERROR;
      }
      return status;
    }
    of(stream).give([=, bytes = *transfer](tenon_error* late) { return real->table().copy(device, &bytes, of(stream).real, late); });
    return TENON_OK;
  }
  static tenon_status fill(tenon_device* device, std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value, tenon_stream* stream,
                           tenon_error*) {
    of(stream).give(
        [=, inner = of(stream).real](tenon_error* late) { return real->table().fill(device, address, size_bytes, value, inner, late); });
    return TENON_OK;
  }
  static tenon_status execute(tenon_plan* plan, const tenon_bindings* bindings, std::uint64_t workspace, tenon_stream* stream,
                              tenon_error*) {
    const std::vector<std::uint64_t> addresses(bindings->addresses, bindings->addresses + bindings->address_count);
    const bool recording = of(stream).recorded != nullptr;
    of(stream).give([=, inner = of(stream).real, given = *bindings](tenon_error* late) {
      if (before_execution) before_execution();
      ++executed;
      note({Note::What::executed, 0, 0, 0, nullptr});
      tenon_bindings bound = given;
      bound.addresses = addresses.data();
      bound.run = nullptr;  // gone by now
      if (recording) bound.execution_id = replay_id;
      return real->table().plan_execute(plan, &bound, workspace, inner, late);
    });
    return TENON_OK;
  }
  static tenon_status record(tenon_event* event, tenon_stream* stream, tenon_error* error) {
    const tenon_status status = synchronize(stream, error);
    if (status != TENON_OK) return status;
    note({Note::What::marked, handle_of(event), 0, 0, stream});
    return real->table().event_record(event, of(stream).real, error);
  }
  static tenon_status wait(tenon_event* event, tenon_stream* stream, tenon_error* error) {
    note({Note::What::waited, handle_of(event), 0, 0, stream});
    return real->table().event_wait(event, of(stream).real, error);
  }
  static tenon_status allocate(tenon_device* device, const tenon_memory_request* request, tenon_memory_result* out_result,
                               tenon_error* error) {
    if (request->kind == TENON_MEMORY_PINNED) {
      const std::lock_guard lock(mutex);
      if (no_pinned) return TENON_OUT_OF_MEMORY;
      ++pinned;
    }
    return real->table().memory_allocate(device, request, out_result, error);
  }
  static tenon_status begin(tenon_stream* stream, tenon_error*) {
    of(stream).recorded = std::make_unique<Work>();
    return TENON_OK;
  }
  static tenon_status end(tenon_stream* stream, tenon_capture** out_capture, tenon_error*) {
    ++recorded;
    *out_capture = reinterpret_cast<tenon_capture*>(of(stream).recorded.release());
    return TENON_OK;
  }
  static tenon_status replay(tenon_capture* capture, tenon_stream* stream, std::uint64_t execution_id, tenon_error*) {
    ++replayed;
    of(stream).give([execution_id](tenon_error*) { return replay_id = execution_id, tenon_status{TENON_OK}; });
    for (const auto& work : *reinterpret_cast<Work*>(capture)) of(stream).give(work);
    return TENON_OK;
  }
  static void destroy(tenon_capture* capture) { delete reinterpret_cast<Work*>(capture); }
  static constexpr tenon_capture_table capture_block{sizeof(tenon_capture_table), 0, begin, end, replay, destroy};

  static void alter(tenon_backend_table& table) {
    table.stream_create = create_stream;
    table.stream_destroy = destroy_stream;
    table.stream_synchronize = synchronize;
    table.copy = copy;
    table.fill = fill;
    table.plan_execute = execute;
    table.event_record = record;
    table.event_wait = wait;
    table.memory_allocate = allocate;
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

/// A context whose default device is reel:0.
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
