// SPDX-License-Identifier: Apache-2.0
// tenon/sdk/device.h - devices, streams and events as C++ classes, which the SDK wraps in the C
// slots.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <tenon/backend.h>
#include <tenon/sdk/collectives.h>
#include <tenon/sdk/error.h>
#include <tenon/sdk/host.h>

namespace tenon::sdk {

/// What a new stream is like.
struct StreamOptions {
  std::int32_t priority = 0;  ///< a hint: higher goes first, where the device has priorities
};

/// What a new event is like.
struct EventOptions {
  bool timed = true;  ///< false: nanoseconds_since is not called
};

/// The recorded work of a stream.
class Capture {
 public:
  virtual ~Capture() = default;
  /// Submits the work to a stream of the same device, with the recorded addresses. May throw
  /// sdk::Error.
  virtual void replay(Stream& stream) = 0;
};

/// A queue of work that runs in order. Every member may throw sdk::Error.
class Stream {
 public:
  virtual ~Stream() = default;
  /// Returns when the work submitted before is done. Threads  any: others may submit, replay and wait
  /// at the same time; all else on a stream is called by one thread at a time.
  virtual void synchronize() = 0;
  /// Makes submitted work start without a later call, for drivers that queue it until then. Called at
  /// the end of plan_execute; copies, fills and events see to it themselves.
  virtual void flush() {}
  /// True if the stream can be recorded. Called only if BackendSpec::captures is set.
  virtual bool captures() const { return false; }
  /// From here on the stream records submitted work instead of executing it.
  virtual void begin_capture();
  /// Returns the recorded work; the stream executes again, also if this throws.
  virtual std::unique_ptr<Capture> end_capture();
};

/// The stream of the handle in Call::stream.
Stream& stream_of(tenon_stream* handle);

/// A point in a stream. In a recording, each replay records the event anew, or waits for what it marks when the replay is submitted; events
/// of a recording have to live as long as it.
class Event {
 public:
  virtual ~Event() = default;
  virtual void record(Stream& stream) = 0;
  virtual void wait(Stream& stream) = 0;
  virtual bool done() = 0;  ///< true if never recorded
  virtual void synchronize() = 0;
  virtual std::uint64_t nanoseconds_since(Event& begin) = 0;  ///< both recorded and finished
};

/// One open device. Addresses may be offset by the core; the SDK keeps the statistics.
/// Threads  every member may be called from any thread.
class Device {
 public:
  explicit Device(Host services) : host(services) {}
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  /// Memory of a TENON_MEMORY_* kind at a multiple of the description's alignment; size_bytes > 0.
  /// The address of HOST and PINNED memory is a host pointer. Throws OUT_OF_MEMORY.
  virtual std::uint64_t allocate(std::uint32_t kind, std::uint64_t size_bytes) = 0;
  virtual void deallocate(std::uint32_t kind, std::uint64_t address, std::uint64_t size_bytes) = 0;
  /// Makes host memory usable under TENON_IMPORT_* terms and returns its device address; size_bytes
  /// > 0. The default returns the pointer itself if `borrows`, else it copies for COPY and HOLD and
  /// refuses to borrow. A copy is freed with `deallocate`.
  virtual std::uint64_t import_host(void* memory, std::uint64_t size_bytes, std::uint32_t terms);
  /// True if memory imported under these terms is used in place: nothing is allocated, and
  /// `end_import` is called at the end.
  virtual bool borrows(std::uint32_t terms) const { return host_addressable() && terms != TENON_IMPORT_COPY; }
  virtual void end_import(void* memory, std::uint64_t size_bytes) {
    static_cast<void>(memory);
    static_cast<void>(size_bytes);
  }
  virtual void copy(const tenon_copy& copy, Stream& stream) = 0;
  virtual void fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value, Stream& stream) = 0;
  virtual std::unique_ptr<Stream> make_stream(const StreamOptions& options) = 0;
  virtual std::unique_ptr<Event> make_event(const EventOptions& options) = 0;
  /// Joins a group of devices as one of its ranks, and returns when all have. Called only if
  /// BackendSpec::combined_dtypes is set.
  virtual std::unique_ptr<Group> join(const GroupOptions& options);
  /// How this device runs several elementwise nodes as one kernel; NULL: piece by piece with the
  /// backend's own kernels.
  virtual const struct ElementwiseFusion* elementwise_fusion() const { return nullptr; }
  /// The kernel whose Traits::run_together makes several copies at once, each of input 0, with any
  /// strides, to a dense output 0, whatever their dtypes; functions[TENON_DTYPE_NONE] makes one.
  /// NULL, or without run_together: each copy is a call of Reshape or Transpose.
  virtual const struct KernelRow* batched_copy() const { return nullptr; }
  /// True if host pointers are device addresses.
  virtual bool host_addressable() const { return false; }

  const Host host;
  // Of its description; set when the device is opened.
  std::uint64_t alignment_bytes = 1, operand_alignment_bytes = 1;
  bool inline_streams = false;  ///< TENON_DEVICE_INLINE_STREAMS
};

/// The device of the handle in tenon_copy::peer.
Device& device_of(tenon_device* handle);

/// The fields of tenon_device_info.
struct DeviceDescription {
  std::uint32_t kind = TENON_DEVICE_CPU;
  std::uint32_t flags = 0;
  std::uint32_t compute_major = 0, compute_minor = 0;
  std::uint32_t clock_khz = 0;
  std::string name, identity, description;
  std::uint64_t memory_size_bytes = 0, memory_free_bytes = 0, alignment_bytes = 64, dtypes = 0;
  std::uint64_t operand_alignment_bytes = 1;
  std::uint64_t max_allocation_size_bytes = 0;
};

/// The host's processor as a device: host memory, work done inline when it is submitted. Sufficient
/// for any CPU backend.
class CpuDevice : public Device {
 public:
  using Device::Device;
  std::uint64_t allocate(std::uint32_t kind, std::uint64_t size_bytes) override;
  void deallocate(std::uint32_t kind, std::uint64_t address, std::uint64_t size_bytes) override;
  void copy(const tenon_copy& copy, Stream& stream) override;
  void fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value, Stream& stream) override;
  std::unique_ptr<Stream> make_stream(const StreamOptions& options) override;
  std::unique_ptr<Event> make_event(const EventOptions& options) override;
  bool host_addressable() const override { return true; }
};

/// The processor's model name, memory and the dtypes of host memory; `description` is the caller's.
DeviceDescription describe_cpu(std::string description);

}  // namespace tenon::sdk
