// SPDX-License-Identifier: Apache-2.0
// tenon/stream.h - streams and events: work in order on one device, concurrent with programs, such
// as asynchronous copies.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <tenon/api.h>
#include <tenon/context.h>
#include <tenon/tensor.h>

namespace tenon {

class Stream;

/// How an event is created.
struct EventOptions {
  /// False: elapsed_ns_since() is an error, and recording the event costs less on some devices.
  bool timed = true;
};

/// How a stream is created.
struct StreamOptions {
  /// A hint: work of streams with higher priority goes first, on devices with priorities (CUDA: 0 to
  /// 5). Beyond what the device has counts as its highest or lowest.
  int priority = 0;
};

/// A point in a stream's work. A handle: copies refer to the same event.
/// Threads  one thread at a time per event.
class TENON_API Event {
 public:
  /// Errors: those of the device.
  explicit Event(const Device& device, const EventOptions& options = {});
  /// Marks the work submitted to the stream so far; may be recorded again. Errors: a stream of
  /// another device.
  void record(const Stream& stream);
  /// True if the work before the mark has finished, or the event was never recorded. Errors: that
  /// work failed.
  bool done() const;
  /// Blocks until done(). Errors: that work failed.
  void synchronize() const;
  /// Device time between two recorded, finished events, in nanoseconds. Errors: an event not
  /// recorded, not finished or not timed.
  std::uint64_t elapsed_ns_since(const Event& begin) const;
  /// For the runtime's own use. Errors: an event of another device.
  tenon_event* handle_on(const exec::DeviceState& device) const;

 private:
  friend class Stream;
  struct TENON_HIDDEN State;
  std::shared_ptr<State> state_;
};

/// A queue of work on one device. Streams run concurrently with each other and with programs; work
/// within a stream is ordered. On a device with inline streams (CPUs), each call returns when its
/// work is done. A handle: copies refer to the same stream, and so do all that of_programs()
/// returns for a device. Destroying the last handle of a stream waits for its work.
/// Threads  one thread at a time per stream.
class TENON_API Stream {
 public:
  /// Creates a stream. Errors: those of the device.
  explicit Stream(const Device& device, const StreamOptions& options = {});
  /// The stream that the device's programs run on, with the work submitted so far. It is ordered
  /// with them: after wait() the next program starts after the event, and an event recorded after a
  /// program marks its end.
  static Stream of_programs(const Device& device);
  /// The device it belongs to.
  const Device& device() const;
  /// Later work of this stream waits for the event; the caller does not. Errors: an event of
  /// another backend.
  void wait(const Event& event);
  /// Blocks until all submitted work has finished. Errors: the first failure since the last call.
  void synchronize() const;
  /// For the runtime's own use.
  tenon_stream* handle() const;

 private:
  friend class Event;
  friend void copy_async(const Tensor& source, Tensor& destination, const Stream& stream);
  struct TENON_HIDDEN State;
  explicit Stream(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Submits a copy to the stream and returns: host to device, device to host, or device to device.
/// The stream keeps both memories alive until the copy is done; the caller must not touch their
/// elements before. Memory of Device::empty_pinned is copied without staging; other host memory may
/// make the call wait.
///
/// Shapes  equal, both dense.
/// Errors  different dtypes or shapes, a strided view, memory that the stream's device cannot
///         reach; later failures are reported by the stream.
TENON_API void copy_async(const Tensor& source, Tensor& destination, const Stream& stream);

}  // namespace tenon
