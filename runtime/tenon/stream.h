// tenon/stream.h - work in order on one device, beside what programs run there: copies that the host does not wait for.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <tenon/context.h>
#include <tenon/tensor.h>

namespace tenon {

class Stream;

/// A point in a stream's work. A handle: copies are the same event.
/// Threads  one thread at a time per event.
class Event {
 public:
  /// Errors: those of the device.
  explicit Event(const Device& device);
  /// Marks what the stream has been given so far; may be recorded again. Errors: a stream of another device.
  void record(const Stream& stream);
  /// True if the work before the mark is finished; so is an event that was never recorded. Errors: that work failed.
  bool done() const;
  /// Returns when it is. Errors: that work failed.
  void synchronize() const;
  /// Device time between two recorded, finished events, in nanoseconds. Errors: an event not recorded or not finished.
  std::uint64_t elapsed_ns_since(const Event& begin) const;

 private:
  friend class Stream;
  struct State;
  std::shared_ptr<State> state_;
};

/// A queue of work on one device. Streams run beside each other and beside programs; within one, work is in order. On a device whose
/// streams are inline (CPUs) each call returns when its work is done. A handle: copies are the same stream, and so are all that
/// of_programs() gives for a device. The end of a stream of its own waits for its work.
/// Threads  one thread at a time per stream.
class Stream {
 public:
  /// Errors: those of the device.
  explicit Stream(const Device& device);
  /// The one that the device's programs run on, with what has been given to it. Its order is theirs: after wait() a program that is run
  /// next begins behind the event, and an event that is recorded behind a program marks its end.
  static Stream of_programs(const Device& device);
  /// Where it runs.
  const Device& device() const;
  /// Later work of this stream waits for the event; the caller does not. Errors: an event of another backend.
  void wait(const Event& event);
  /// Returns when everything given to the stream is done. Errors: the first failure since the last call.
  void synchronize() const;
  /// For the runtime's own use.
  tenon_stream* handle() const;

 private:
  friend class Event;
  friend void copy_async(const Tensor& source, Tensor& destination, const Stream& stream);
  struct State;
  explicit Stream(std::shared_ptr<State> state) : state_(std::move(state)) {}
  std::shared_ptr<State> state_;
};

/// Gives the copy to the stream and returns: host to device, device to host, or device to device. The stream keeps both memories alive
/// until it is done; their elements are the caller's to leave alone until then. Memory of Device::empty_pinned is copied without staging;
/// other host memory may make the call wait.
///
/// Shapes  equal, both dense.
/// Errors  another dtype or shape, a strided view, memory of a device the stream's cannot reach; what fails later is reported by the
/// stream.
void copy_async(const Tensor& source, Tensor& destination, const Stream& stream);

}  // namespace tenon
