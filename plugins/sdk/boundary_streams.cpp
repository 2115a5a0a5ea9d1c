// SPDX-License-Identifier: Apache-2.0
// boundary_streams.cpp - the slots for streams, events, and recordings of streams.
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/sdk/needs.h>

#include "boundary.h"
#include "guarded.h"
#include "handles.h"
#include "profile.h"

struct tenon_event {
  std::unique_ptr<tenon::sdk::Event> event;
  bool timed;
};
struct tenon_capture {
  std::vector<std::shared_ptr<tenon::sdk::Timing>> timings;
  std::unique_ptr<tenon::sdk::Capture> capture;
};

namespace tenon::sdk {
namespace {

/// Refuses a stream that is being recorded: it would not execute the work.
void check_executes(const tenon_stream& stream, const char* slot) {
  if (stream.recording) throw Error(TENON_INVALID_ARGUMENT, std::string(slot) + ": the stream is being recorded; end the recording first");
}

tenon_status stream_create(tenon_device* self, const tenon_stream_options* given, tenon_stream** out_stream, tenon_error* error) {
  return guarded(error, [&] {
    const auto options = sent(given);
    check_needs("stream_create", options.needs);
    *out_stream = new tenon_stream{self->device->make_stream({.priority = options.priority})};
  });
}
void stream_destroy(tenon_stream* stream) {
  delete stream;
}
tenon_status stream_synchronize(tenon_stream* stream, tenon_error* error) {
  return guarded(error, [&] {
    check_executes(*stream, "stream_synchronize");
    stream->stream->synchronize();
  });
}

tenon_status event_create(tenon_device* self, const tenon_event_options* given, tenon_event** out_event, tenon_error* error) {
  return guarded(error, [&] {
    const auto options = sent(given);
    check_needs("event_create", options.needs);
    const bool timed = (options.flags & TENON_EVENT_NO_TIMING) == 0;
    *out_event = new tenon_event{self->device->make_event({.timed = timed}), timed};
  });
}
void event_destroy(tenon_event* event) {
  delete event;
}
tenon_status event_record(tenon_event* event, tenon_stream* stream, tenon_error* error) {
  return guarded(error, [&] { event->event->record(*stream->stream); });
}
tenon_status event_wait(tenon_event* event, tenon_stream* stream, tenon_error* error) {
  return guarded(error, [&] { event->event->wait(*stream->stream); });
}
tenon_status event_query(tenon_event* event, tenon_error* error) {
  bool done = false;
  const tenon_status status = guarded(error, [&] { done = event->event->done(); });
  if (status != TENON_OK || done) return status;
  return TENON_NOT_READY;
}
tenon_status event_synchronize(tenon_event* event, tenon_error* error) {
  return guarded(error, [&] { event->event->synchronize(); });
}
tenon_status event_elapsed(tenon_event* begin, tenon_event* end, std::uint64_t* out_ns, tenon_error* error) {
  return guarded(error, [&] {
    if (!begin->timed || !end->timed) {
      throw Error(TENON_INVALID_ARGUMENT, "event_elapsed: expected events with times, got one that was created with TENON_EVENT_NO_TIMING");
    }
    *out_ns = end->event->nanoseconds_since(*begin->event);
  });
}

// ---------------------------------------------------------------- recordings

tenon_status capture_begin(tenon_stream* stream, tenon_error* error) {
  return guarded(error, [&] {
    check_executes(*stream, "capture begin");
    if (!stream->stream->captures()) throw Error(TENON_UNSUPPORTED, "capture begin: this device's streams cannot be recorded");
    stream->stream->begin_capture();
    stream->recording = true;
    stream->timings.clear();
  });
}
tenon_status capture_end(tenon_stream* stream, tenon_capture** out_capture, tenon_error* error) {
  return guarded(error, [&] {
    if (!stream->recording) throw Error(TENON_INVALID_ARGUMENT, "capture end: the stream is not being recorded; begin comes first");
    stream->recording = false;
    auto capture = std::make_unique<tenon_capture>();
    capture->timings = std::move(stream->timings);
    capture->capture = stream->stream->end_capture();
    *out_capture = capture.release();
  });
}
tenon_status capture_replay(tenon_capture* capture, tenon_stream* stream, std::uint64_t execution_id, tenon_error* error) {
  return guarded(error, [&] {
    check_executes(*stream, "capture replay");
    for (const std::shared_ptr<Timing>& timing : capture->timings) timing->execution = execution_id;
    capture->capture->replay(*stream->stream);
  });
}
void capture_destroy(tenon_capture* capture) {
  guarded(nullptr, [&] { capture->capture.reset(); });
  delete capture;
}
constexpr tenon_capture_table capture_table{sizeof(tenon_capture_table), 0, capture_begin, capture_end, capture_replay, capture_destroy};

}  // namespace

Stream& stream_of(tenon_stream* handle) {
  return *handle->stream;
}

void add_stream_slots(tenon_backend_table& table, bool captures) {
  table.stream_create = stream_create;
  table.stream_destroy = stream_destroy;
  table.stream_synchronize = stream_synchronize;
  table.event_create = event_create;
  table.event_destroy = event_destroy;
  table.event_record = event_record;
  table.event_wait = event_wait;
  table.event_query = event_query;
  table.event_synchronize = event_synchronize;
  table.event_elapsed = event_elapsed;
  if (captures) table.capture = &capture_table;
}

}  // namespace tenon::sdk
