// SPDX-License-Identifier: Apache-2.0
#include <tenon/stream.h>

#include <fmt/core.h>

#include <deque>
#include <vector>

#include "exec/device_state.h"

namespace tenon {

using exec::DeviceState;
using exec::ErrorText;

struct Event::State {
  State(const Device& on, const EventOptions& given) : device(on.state()) {
    device->check_process();
    tenon_event_options options{};
    options.struct_size = sizeof options;
    if (!given.timed) options.flags = TENON_EVENT_NO_TIMING;
    ErrorText error;
    const tenon_status status = device->table.event_create(device->handle, &options, &event, error);
    exec::check_made(status, error, event != nullptr, "event_create", fmt::format("device '{}' cannot create an event", device->info.name));
  }
  ~State() {
    if (device->in_its_process()) device->table.event_destroy(event);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  std::string name() const { return fmt::format("an event of device '{}'", device->info.name); }

  const std::shared_ptr<DeviceState> device;
  tenon_event* event = nullptr;
};

struct Stream::State {
  /// A stream that belongs to the device.
  State(const Device& on, tenon_stream* lent) : device(on), state(*on.state()), stream(lent), is_lent(true) { state.check_process(); }
  State(const Device& on, const StreamOptions& given) : device(on), state(*on.state()), is_lent(false) {
    state.check_process();
    tenon_stream_options options{};
    options.struct_size = sizeof options;
    options.priority = given.priority;
    ErrorText error;
    const tenon_status status = state.table.stream_create(state.handle, &options, &stream, error);
    exec::check_made(status, error, stream != nullptr, "stream_create", fmt::format("device '{}' cannot create a stream", state.info.name));
  }
  ~State() {
    if (!state.in_its_process()) return;
    ErrorText ignored;
    if (!is_lent || !pending.empty()) state.table.stream_synchronize(stream, ignored);
    pending.clear();
    if (!is_lent) state.table.stream_destroy(stream);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// A copy in flight: keeps its memory alive; the events around it measure its duration.
  struct Pending {
    Event begin, end;
    std::uint32_t direction;
    std::shared_ptr<Storage> source, destination;
  };

  Event take_event() {
    if (spare.empty()) return Event(device);
    Event event = std::move(spare.back());
    spare.pop_back();
    return event;
  }

  /// Releases finished copies. Errors are left for synchronize() to report.
  void retire() {
    ErrorText error;
    while (!pending.empty() && state.table.event_query(pending.front().end.state_->event, error) != TENON_NOT_READY) {
      Pending& done = pending.front();
      std::uint64_t duration_ns = 0;
      const tenon_status measured = state.table.event_elapsed(done.begin.state_->event, done.end.state_->event, &duration_ns, error);
      if (measured == TENON_OK) state.copy_counters->add_time(done.direction, duration_ns);
      spare.push_back(std::move(done.begin));
      spare.push_back(std::move(done.end));
      pending.pop_front();
    }
  }

  const Device device;
  DeviceState& state;
  tenon_stream* stream = nullptr;
  const bool is_lent;  ///< borrowed from the device, not destroyed
  std::deque<Pending> pending;
  std::vector<Event> spare;
};

// ---------------------------------------------------------------- events

Event::Event(const Device& device, const EventOptions& options) : state_(std::make_shared<State>(device, options)) {}

void Event::record(const Stream& stream) {
  if (stream.state_->device.state() != state_->device) {
    throw Error(fmt::format("{}: expected a stream of the same device, got one of '{}'", state_->name(), stream.device().name()));
  }
  state_->device->check_process();
  ErrorText error;
  const auto lock = state_->device->submission(stream.state_->stream);
  exec::check(state_->device->table.event_record(state_->event, stream.state_->stream, error), error, state_->name());
}

bool Event::done() const {
  state_->device->check_process();
  ErrorText error;
  const tenon_status status = state_->device->table.event_query(state_->event, error);
  if (status == TENON_NOT_READY) return false;
  exec::check(status, error, state_->name());
  return true;
}

void Event::synchronize() const {
  state_->device->check_process();
  ErrorText error;
  exec::check(state_->device->table.event_synchronize(state_->event, error), error, state_->name());
}

std::uint64_t Event::elapsed_ns_since(const Event& begin) const {
  if (begin.state_->device != state_->device) {
    throw Error(fmt::format("{}: expected a begin event of the same device, got {}", state_->name(), begin.state_->name()));
  }
  state_->device->check_process();
  std::uint64_t duration_ns = 0;
  ErrorText error;
  exec::check(state_->device->table.event_elapsed(begin.state_->event, state_->event, &duration_ns, error), error, state_->name());
  return duration_ns;
}

tenon_event* Event::handle_on(const DeviceState& device) const {
  if (state_->device.get() != &device)
    throw Error(fmt::format("expected an event of device '{}', got {}", device.info.name, state_->name()));
  device.check_process();
  return state_->event;
}

// ---------------------------------------------------------------- streams

Stream::Stream(const Device& device, const StreamOptions& options) : state_(std::make_shared<State>(device, options)) {}

Stream Stream::of_programs(const Device& device) {
  return Stream(std::make_shared<State>(device, device.state()->stream));
}

const Device& Stream::device() const {
  return state_->device;
}

void Stream::wait(const Event& event) {
  if (event.state_->device->loaded != state_->state.loaded) {
    throw Error(
        fmt::format("a stream of device '{}': expected an event of the same backend, got {}", device().name(), event.state_->name()));
  }
  state_->state.check_process();
  ErrorText error;
  const auto lock = state_->state.submission(state_->stream);
  exec::check(state_->state.table.event_wait(event.state_->event, state_->stream, error), error, event.state_->name());
}

tenon_stream* Stream::handle() const {
  return state_->stream;
}

void Stream::synchronize() const {
  state_->state.check_process();
  ErrorText error;
  const tenon_status status = state_->state.table.stream_synchronize(state_->stream, error);
  state_->retire();
  exec::check(status, error, fmt::format("a stream of device '{}'", device().name()));
}

// ---------------------------------------------------------------- copies

namespace {

/// How the stream's device performs a copy between the two.
struct Route {
  std::uint32_t direction;
  tenon_device* peer = nullptr;
};

Route route_between(const Tensor& source, const Tensor& destination, const DeviceState& device) {
  const auto* from = static_cast<const DeviceState*>(source.storage()->device.get());
  const auto* to = static_cast<const DeviceState*>(destination.storage()->device.get());
  if (from == &device && to == &device) return {TENON_COPY_DEVICE_TO_DEVICE};
  if (to == &device && source.on_host()) return {TENON_COPY_HOST_TO_DEVICE};
  if (from == &device && destination.on_host()) return {TENON_COPY_DEVICE_TO_HOST};
  if (to == &device && from != nullptr && from->loaded == device.loaded) return {TENON_COPY_DEVICE_TO_DEVICE, from->handle};
  const auto place = [](const DeviceState* at) { return at != nullptr ? "on '" + at->info.name + "'" : std::string("on the host"); };
  throw Error(
      fmt::format("copy_async on a stream of device '{}': expected a copy between that device and the host, within it, or to it from "
                  "another of its backend; got a source {} and a destination {}",
                  device.info.name, place(from), place(to)));
}

}  // namespace

void copy_async(const Tensor& source, Tensor& destination, const Stream& stream) {
  if (!source.defined() || !destination.defined()) throw Error("copy_async: got an undefined tensor");
  if (source.dtype() != destination.dtype() || !(source.shape() == destination.shape())) {
    throw Error(fmt::format("copy_async: expected two tensors of one dtype and shape, got {} and {}", source.str(), destination.str()));
  }
  if (!source.is_dense() || !destination.is_dense()) {
    throw Error(fmt::format("copy_async: expected dense tensors, got a strided {} {}; contiguous() makes a dense copy",
                            source.is_dense() ? "destination" : "source", source.str()));
  }
  Stream::State& s = *stream.state_;
  s.state.check_process();
  const Route route = route_between(source, destination, s.state);
  const auto size = static_cast<std::uint64_t>(source.size_bytes());
  if (size == 0 || source.address() == destination.address()) return;
  const std::uint64_t low = std::min(source.address(), destination.address()), high = std::max(source.address(), destination.address());
  if (source.storage() == destination.storage() && high - low < size) {
    throw Error(fmt::format("copy_async: expected memory that does not overlap, got two views of {} that do", source.str()));
  }
  if (s.state.inline_streams()) return s.state.copy(route.direction, destination.address(), source.address(), size, route.peer, s.stream);
  s.retire();
  Stream::State::Pending copy{s.take_event(), s.take_event(), route.direction, source.storage(), destination.storage()};
  copy.begin.record(stream);
  s.state.copy(route.direction, destination.address(), source.address(), size, route.peer, s.stream);
  copy.end.record(stream);
  s.pending.push_back(std::move(copy));
}

}  // namespace tenon
