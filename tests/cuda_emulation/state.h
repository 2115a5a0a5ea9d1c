// SPDX-License-Identifier: Apache-2.0
// state.h - the state of the emulation: devices, streams with pending work, events, captures. One lock guards all of it.
#pragma once

#include <cuda_runtime_api.h>

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "control.h"
#include "engine.h"

namespace tenon::emulation {

using Work = std::function<void()>;

/// Which device memory a piece of work can access.
enum class Reach {
  any,   ///< unchanged: the work does not access memory
  none,  ///< none, for a host function
  own,   ///< its own device, for a kernel
  all,   ///< all devices, for a copy
};

/// What is counted in TENON_CUDA_EMULATION_COUNTS.
enum class ItemKind { other, kernel, library_call, copy };

struct Item {
  Work work;
  Reach reach = Reach::any;
  ItemKind kind = ItemKind::other;
  SharedMemory shared{};  ///< of a kernel
};

struct Stream;

/// One record of an event: a position in a stream, and the time when it was reached.
struct Moment {
  std::shared_ptr<Stream> stream;
  std::uint64_t sequence = 0;  ///< reached when this many items of the stream have run
  bool reached = false;
  std::chrono::steady_clock::time_point time;
};

/// Per stream, how much of its captured work precedes a position.
using Clock = std::map<const Stream*, std::uint64_t>;

struct Event {
  int device = 0;
  unsigned flags = 0;
  std::shared_ptr<Moment> moment;         ///< NULL: never recorded, or recorded in a capture only
  std::weak_ptr<struct Capture> capture;  ///< set by a record in a capture
  bool captured = false;
  Clock clock;
};

struct Node {
  Item item;
  std::shared_ptr<Event> record;  ///< an external record: a replay creates a moment
  std::shared_ptr<Event> wait;    ///< an external wait: for the event's moment when the replay is launched
};

struct Capture {
  std::uint64_t id = 0;
  std::shared_ptr<Stream> origin;
  std::set<std::shared_ptr<Stream>> members;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  std::thread::id thread;
  bool invalid = false;
  std::vector<Node> nodes;
};

struct Graph {
  std::vector<Node> nodes;
};

struct Stream {
  int device = 0;
  bool legacy = false;  ///< the default stream, which synchronizes with all blocking streams
  bool blocking = false;
  std::deque<Item> queue;
  std::uint64_t enqueued = 0, executed = 0;
  std::shared_ptr<Capture> capture;
  Clock clock;  ///< in a capture: the work that precedes its next item
};

/// The objects of CUDA's opaque handles. A handle value is never reused, so that stale handles are detected.
template <class T, class Handle>
class Handles {
 public:
  Handle add(std::shared_ptr<T> object) {
    next_ += 16;
    objects_[next_] = std::move(object);
    return reinterpret_cast<Handle>(next_);
  }
  std::shared_ptr<T> find(Handle handle) const {
    const auto at = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    return at == objects_.end() ? nullptr : at->second;
  }
  std::shared_ptr<T> take(Handle handle) {
    std::shared_ptr<T> object = find(handle);
    objects_.erase(reinterpret_cast<std::uintptr_t>(handle));
    return object;
  }
  template <class F>
  void remove_if(F unwanted) {
    std::erase_if(objects_, [&](const auto& entry) { return unwanted(*entry.second); });
  }

 private:
  std::uintptr_t next_ = 0x1000;
  std::map<std::uintptr_t, std::shared_ptr<T>> objects_;
};

struct Device {
  cudaError_t pending_fault = cudaSuccess;  ///< occurs at the next item that the device executes
  cudaError_t lost = cudaSuccess;
  std::vector<std::shared_ptr<Stream>> streams;  ///< including destroyed ones that still have work
  std::shared_ptr<Stream> legacy;
  std::map<const void*, std::size_t> allowed_shared_bytes;  ///< dynamic shared memory of a block, by kernel
};

struct State {
  std::recursive_mutex lock;
  bool executing = false;
  Order order;
  std::vector<Device> devices;
  Handles<Stream, cudaStream_t> streams;
  Handles<Event, cudaEvent_t> events;
  Handles<Graph, cudaGraph_t> graphs;
  Handles<Graph, cudaGraphExec_t> executables;
  std::vector<std::shared_ptr<Capture>> captures;  ///< active captures
  std::uint64_t captures_begun = 0;
  std::multimap<std::string, cudaError_t> failures;
  std::map<const void*, std::size_t> static_shared_bytes;  ///< of a block, by kernel: what tests have said
  std::map<ItemKind, std::uint64_t> counts;                ///< items that have run
  std::uint64_t waits = 0;                                 ///< calls that waited for a stream or an event
};
State& state();

/// The state of the calling thread.
struct Caller {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
};
Caller& caller();

inline Device& current_device() {
  return state().devices[static_cast<std::size_t>(caller().device)];
}

inline bool is_device(int device) {
  return device >= 0 && device < static_cast<int>(state().devices.size());
}

/// Errors: cudaErrorInvalidValue for an attribute that the emulation does not implement.
cudaError_t device_attribute(int* out_value, cudaDeviceAttr attribute, int device);

/// True if a device can access the memory of another one directly: unless TENON_CUDA_EMULATION_PEER_ACCESS is 0.
bool can_access_peer(int device, int peer);

/// Shared memory of a block that every kernel may have; the static one of a kernel, and the dynamic one that it may have on the current
/// device.
inline constexpr std::size_t default_shared_bytes = 48 << 10;
std::size_t static_shared_bytes(const void* kernel);
std::size_t allowed_shared_bytes(const void* kernel);
/// True if it may have what a launch asks for.
inline bool is_allowed(const SharedMemory& shared) {
  return shared.bytes <= allowed_shared_bytes(shared.kernel);
}

// ---- calls (calls.cpp)

enum class Lost { refuses, allows };
/// Runs before the body of every function: returns an injected failure or the error of a lost device.
cudaError_t before_call(const char* name, Lost lost);
/// Makes device memory inaccessible again.
void after_call();

/// Runs the body of a CUDA function under the lock; an error is kept for cudaGetLastError.
template <class F>
cudaError_t call(const char* name, F body, Lost lost = Lost::refuses) {
  State& s = state();
  const std::lock_guard guard(s.lock);
  if (s.executing) return cudaErrorNotPermitted;  // from a host function
  cudaError_t error = before_call(name, lost);
  if (error == cudaSuccess) {
    try {
      error = body();
    } catch (const std::bad_alloc&) {
      error = cudaErrorMemoryAllocation;
    }
    after_call();
  }
  if (error != cudaSuccess) caller().last_error = error;
  return error;
}

// ---- streams (streams.cpp)

/// The stream of a handle. Errors: cudaErrorInvalidResourceHandle; cudaErrorStreamCaptureImplicit for the default stream while a stream
/// that synchronizes with it is captured.
cudaError_t find_stream(cudaStream_t handle, std::shared_ptr<Stream>* out_stream);
/// call(), with the stream of a handle.
template <class F>
cudaError_t call_on(const char* name, cudaStream_t handle, F body) {
  return call(name, [&] {
    std::shared_ptr<Stream> stream;
    const cudaError_t error = find_stream(handle, &stream);
    return error != cudaSuccess ? error : body(stream);
  });
}
/// Queues an item, or records it if the stream is being captured.
cudaError_t enqueue(const std::shared_ptr<Stream>& stream, Item item);
std::shared_ptr<Moment> mark(const std::shared_ptr<Stream>& stream);
/// Runs the work that precedes a moment.
void reach(Moment& moment);
/// Runs the work of an item and counts it.
void run(const Item& item, int device);
void run_next(Stream& stream);
void drain(Stream& stream, std::uint64_t sequence);
void drain(Stream& stream);
void drain_device(int device);
/// The result of a call that has waited for a device.
cudaError_t outcome(int device);

// ---- captures (graphs.cpp)

/// Called by operations that a capture forbids to the calling thread: invalidates the capture.
cudaError_t refuse_in_capture();
/// The same for an operation on a stream, which is rejected in any mode if the stream itself is captured.
cudaError_t refuse_in_capture(Stream& stream);
cudaError_t invalidate(Capture& capture, cudaError_t error);
void join_capture(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Capture>& capture, const Clock& clock);

// ---- memory (memory.cpp)

/// Makes device memory accessible to work of a device, or all of it inaccessible (Reach::none).
void set_reach(Reach reach, int device);
std::size_t device_memory_bytes(int device);
/// Drops the memory of a device, for cudaDeviceReset.
void forget_memory(int device);

}  // namespace tenon::emulation
