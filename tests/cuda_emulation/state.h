// state.h - what the emulation holds: devices, streams with work that nobody has waited for yet, events, captures. All under one lock.
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

#include "engine.h"

namespace tenon::emulation {

using Work = std::function<void()>;

/// Which device memory is there for a piece of work.
enum class Reach {
  any,    ///< does not look at memory
  none,   ///< a host function
  peers,  ///< a kernel: its own device and the peers that were enabled
  all,    ///< a copy
};

struct Item {
  Work work;
  Reach reach = Reach::any;
};

struct Stream;

/// One record of an event: a place in a stream, and when it was reached.
struct Moment {
  std::shared_ptr<Stream> stream;
  std::uint64_t sequence = 0;  ///< reached when that many items of the stream have run
  bool reached = false;
  std::chrono::steady_clock::time_point time;
};

/// How much of each stream's captured work comes before a place.
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
  std::shared_ptr<Event> record;  ///< an external record: a replay makes a moment of it
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
  bool legacy = false;  ///< the default stream, which waits for all blocking ones, and they for it
  bool blocking = false;
  unsigned flags = 0;
  int priority = 0;
  std::deque<Item> queue;
  std::uint64_t enqueued = 0, executed = 0;
  std::shared_ptr<Capture> capture;
  Clock clock;  ///< in a capture: what its next work comes after
};

/// Objects behind CUDA's opaque handles. A handle is never given twice, so that a stale one is found.
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
  cudaError_t pending_fault = cudaSuccess;  ///< happens at the next thing that the device executes
  cudaError_t lost = cudaSuccess;
  std::vector<std::shared_ptr<Stream>> streams;  ///< destroyed ones, too, as long as they have work
  std::shared_ptr<Stream> legacy;
  std::set<int> peers;
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
  std::vector<std::shared_ptr<Capture>> captures;  ///< under way
  std::uint64_t captures_begun = 0;
  std::multimap<std::string, cudaError_t> failures;
};
State& state();

/// Of the calling thread.
struct Caller {
  int device = 0;
  cudaError_t last_error = cudaSuccess;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
};
Caller& caller();

inline Device& current_device() {
  return state().devices[static_cast<std::size_t>(caller().device)];
}

/// Errors: cudaErrorInvalidValue for an attribute that the emulation does not know.
cudaError_t device_attribute(int* out_value, cudaDeviceAttr attribute, int device);

// ---- calls (calls.cpp)

enum class Lost { refuses, allows };
/// What happens before the body of every function: an injected failure, a lost device.
cudaError_t before_call(const char* name, Lost lost);
/// Takes device memory out of reach again.
void after_call();

/// Runs one of CUDA's functions under the lock; an error is kept for cudaGetLastError.
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

/// The stream behind a handle. Errors: cudaErrorInvalidResourceHandle; cudaErrorStreamCaptureImplicit for the default stream while one that
/// waits for it is captured.
cudaError_t find_stream(cudaStream_t handle, std::shared_ptr<Stream>* out_stream);
/// Queues, or records in the capture that the stream is in.
cudaError_t enqueue(const std::shared_ptr<Stream>& stream, Item item);
std::shared_ptr<Moment> mark(const std::shared_ptr<Stream>& stream);
void run_next(Stream& stream);
void drain(Stream& stream, std::uint64_t sequence);
void drain(Stream& stream);
void drain_device(int device);
/// What a call that has waited for a device returns.
cudaError_t outcome(int device);

// ---- captures (graphs.cpp)

/// Called by what may not happen while a capture is under way that the calling thread must respect: invalidates it.
cudaError_t refuse_in_capture();
/// The same for a stream, which is refused in any mode if it is in a capture itself.
cudaError_t refuse_in_capture(Stream& stream);
cudaError_t invalidate(Capture& capture, cudaError_t error);
void join_capture(const std::shared_ptr<Stream>& stream, const std::shared_ptr<Capture>& capture, const Clock& clock);

// ---- memory (memory.cpp)

/// Makes device memory readable and writable for work of a device, or takes it all away (Reach::none).
void set_reach(Reach reach, int device);
std::size_t device_memory_bytes(int device);
/// Forgets what a device holds, for cudaDeviceReset.
void forget_memory(int device);

}  // namespace tenon::emulation
