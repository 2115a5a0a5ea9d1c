// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

#include <atomic>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "device/process_guard.h"

namespace tenon::opencl {
namespace {

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

class Event final : public sdk::Event {
 public:
  Event(Device& device, const sdk::EventOptions&) : device_(device) {}
  ~Event() override { replace(nullptr, {}); }

  void record(sdk::Stream& stream) override {
    auto& own = static_cast<Stream&>(stream);
    FaultReadings readings = own.faults().read();
    cl_event marker = nullptr;
    device_.check(api().clEnqueueMarkerWithWaitList(own.queue(), 0, nullptr, &marker), "clEnqueueMarkerWithWaitList");
    replace(marker, std::move(readings));
    own.flush();
  }
  void wait(sdk::Stream& stream) override {
    const Reference marker = current();
    if (marker.event == nullptr) return;
    if (&static_cast<Stream&>(stream).device() != &device_) {  // events belong to their context
      device_.check(api().clWaitForEvents(1, &marker.event), "clWaitForEvents");
      return;
    }
    device_.check(api().clEnqueueBarrierWithWaitList(queue_of(stream), 1, &marker.event, nullptr), "clEnqueueBarrierWithWaitList");
    static_cast<Stream&>(stream).flush();
  }
  bool done() override {
    const Reference marker = current();
    if (marker.event == nullptr) return true;
    cl_int state = CL_COMPLETE;
    device_.check(api().clGetEventInfo(marker.event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr), "clGetEventInfo");
    if (state > CL_COMPLETE) return false;
    device_.check(state, "the submitted work");
    report();
    return true;
  }
  void synchronize() override {
    const Reference marker = current();
    if (marker.event == nullptr) return;
    device_.check(api().clWaitForEvents(1, &marker.event), "clWaitForEvents");
    report();
  }
  std::uint64_t nanoseconds_since(sdk::Event& begin) override {
    const Reference from = static_cast<Event&>(begin).current(), to = current();
    if (from.event == nullptr || to.event == nullptr) {
      throw sdk::Error(TENON_INVALID_ARGUMENT, "event_elapsed: both events must have been recorded");
    }
    const cl_ulong first = time_of(from.event), last = time_of(to.event);
    if (last >= first) return last - first;
    if (order() < static_cast<Event&>(begin).order()) {
      throw sdk::Error(TENON_INVALID_ARGUMENT, "event_elapsed: the end was recorded before the beginning");
    }
    return 0;  // drivers' times of markers are not exact: of two with little work between them, the second one may be earlier
  }

 private:
  /// Keeps a marker while it is used: another thread may record the event anew.
  struct Reference {
    explicit Reference(cl_event of) : event(of) {
      if (event != nullptr) api().clRetainEvent(event);
    }
    ~Reference() {
      if (event != nullptr) api().clReleaseEvent(event);
    }
    Reference(const Reference&) = delete;
    Reference& operator=(const Reference&) = delete;
    cl_event const event;
  };

  Reference current() {
    const std::lock_guard lock(mutex_);
    return Reference(marker_);
  }
  /// Greater for an event that was recorded later.
  std::uint64_t order() {
    const std::lock_guard lock(mutex_);
    return order_;
  }
  void replace(cl_event marker, FaultReadings readings) {
    static std::atomic<std::uint64_t> recorded{0};
    const std::lock_guard lock(mutex_);
    if (marker_ != nullptr) api().clReleaseEvent(marker_);
    marker_ = marker;
    order_ = ++recorded;
    readings_ = std::move(readings);
  }
  void report() {
    FaultReadings readings;
    {
      const std::lock_guard lock(mutex_);
      readings.swap(readings_);
    }
    for (const auto& reading : readings) reading->report();
  }
  cl_ulong time_of(cl_event marker) {
    cl_ulong nanoseconds = 0;
    device_.check(api().clGetEventProfilingInfo(marker, CL_PROFILING_COMMAND_END, sizeof nanoseconds, &nanoseconds, nullptr),
                  "clGetEventProfilingInfo");
    return nanoseconds;
  }

  Device& device_;
  std::mutex mutex_;
  cl_event marker_ = nullptr;  ///< NULL: never recorded
  std::uint64_t order_ = 0;
  FaultReadings readings_;
};

}  // namespace

Stream::Stream(Device& device) : device_(device) {
  cl_int error = CL_SUCCESS;
  queue_ = api().clCreateCommandQueue(device_.context(), device_.id(), CL_QUEUE_PROFILING_ENABLE, &error);
  device_.check(error, "clCreateCommandQueue");
  try {
    faults_ = std::make_unique<Faults>(device_.context(), queue_, device_.submission);
  } catch (...) {
    api().clReleaseCommandQueue(queue_);
    throw;
  }
}

Stream::~Stream() {
  api().clFinish(queue_);
  faults_.reset();
  api().clReleaseCommandQueue(queue_);
}

void Stream::synchronize() {
  const FaultReadings readings = faults_->read();
  cl_event marker = nullptr;
  device_.check(api().clEnqueueMarkerWithWaitList(queue_, 0, nullptr, &marker), "clEnqueueMarkerWithWaitList");
  const cl_int finished = api().clFinish(queue_);
  cl_int state = CL_COMPLETE;  // clFinish reports no failure of a command
  api().clGetEventInfo(marker, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof state, &state, nullptr);
  api().clReleaseEvent(marker);
  device_.check(finished, "clFinish");
  device_.check(state < CL_COMPLETE ? state : CL_SUCCESS, "the submitted work");
  for (const auto& reading : readings) reading->report();
}

void Stream::flush() {
  device_.check(api().clFlush(queue_), "clFlush");
}

Device::Device(sdk::Host services, const Listed& listed) : sdk::Device(services), listed_(listed) {
  const ProcessGuard guard;
  cl_int error = CL_SUCCESS;
  const cl_context_properties properties[] = {CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(listed_.platform), 0};
  context_ = api().clCreateContext(properties, 1, &listed_.id, nullptr, nullptr, &error);
  check(error, "clCreateContext");
  memory_queue_ = api().clCreateCommandQueue(context_, listed_.id, 0, &error);
  if (error != CL_SUCCESS) api().clReleaseContext(context_);
  check(error, "clCreateCommandQueue");
  programs_ = std::make_unique<Programs>(host, context_, listed_.id);
  if (const char* const limit = host.option("columns_limit_kib"); limit != nullptr) {
    std::int64_t kibibytes = 0;
    std::from_chars(limit, limit + std::strlen(limit), kibibytes);  // the host has validated the range
    columns_limit_bytes_ = kibibytes << 10;
  }
}

Device::~Device() {
  programs_.reset();
  api().clReleaseCommandQueue(memory_queue_);
  api().clReleaseContext(context_);
}

void Device::check(cl_int error, const char* function) {
  if (unavailable_) throw sdk::Error(TENON_DEVICE_LOST, "the device was lost earlier: close it");
  if (error == CL_DEVICE_NOT_AVAILABLE) unavailable_ = true;
  opencl::check(error, function);
}

std::uint64_t Device::allocate(std::uint32_t kind, std::uint64_t size_bytes) {
  if (kind == TENON_MEMORY_DEVICE) return allocate_buffer(size_bytes);
  if (kind == TENON_MEMORY_PINNED) return allocate_pinned(size_bytes);
  void* const memory = host.allocate(size_bytes, alignment_bytes);
  if (memory == nullptr) throw sdk::Error(TENON_OUT_OF_MEMORY, "no host memory for " + std::to_string(size_bytes) + " bytes");
  return reinterpret_cast<std::uintptr_t>(memory);
}

std::uint64_t Device::allocate_buffer(std::uint64_t size_bytes) {
  const std::uint64_t limit = listed_.description.max_allocation_size_bytes, total = listed_.description.memory_size_bytes;
  cl_int error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  cl_mem buffer = nullptr;
  // Drivers that allocate late, or overcommit the host's memory, do not report what does not fit.
  const bool fits = size_bytes <= limit && size_bytes <= total && allocated_bytes_.fetch_add(size_bytes) <= total - size_bytes;
  if (fits) buffer = api().clCreateBuffer(context_, CL_MEM_READ_WRITE, size_bytes, nullptr, &error);
  if (error == CL_SUCCESS) {
    error = api().clEnqueueMigrateMemObjects(memory_queue_, 1, &buffer, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, nullptr, nullptr);
    if (error == CL_SUCCESS) error = api().clFinish(memory_queue_);
    if (error != CL_SUCCESS) api().clReleaseMemObject(buffer);
  }
  if (error == CL_SUCCESS) return addresses_.add(*this, buffer, size_bytes);
  if (size_bytes <= limit && size_bytes <= total) allocated_bytes_ -= size_bytes;
  if (status_of(error) == TENON_OUT_OF_MEMORY) {
    throw sdk::Error(TENON_OUT_OF_MEMORY, "no device memory for " + std::to_string(size_bytes) + " bytes; the device has " +
                                              std::to_string(total) + ", " + std::to_string(limit) + " at most in one allocation");
  }
  check(error, "clCreateBuffer");
  return 0;
}

std::uint64_t Device::allocate_pinned(std::uint64_t size_bytes) {
  cl_int error = CL_SUCCESS;
  cl_mem buffer = nullptr;
  void* mapped = nullptr;
  if (size_bytes > listed_.description.max_allocation_size_bytes) error = CL_MEM_OBJECT_ALLOCATION_FAILURE;
  if (error == CL_SUCCESS) {
    buffer = api().clCreateBuffer(context_, CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size_bytes, nullptr, &error);
  }
  if (error == CL_SUCCESS) {
    mapped =
        api().clEnqueueMapBuffer(memory_queue_, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0, size_bytes, 0, nullptr, nullptr, &error);
    if (error != CL_SUCCESS) api().clReleaseMemObject(buffer);
  }
  if (error != CL_SUCCESS && status_of(error) == TENON_OUT_OF_MEMORY) {
    throw sdk::Error(TENON_OUT_OF_MEMORY, "no pinned memory for " + std::to_string(size_bytes) + " bytes");
  }
  check(error, "clEnqueueMapBuffer");
  const std::uint64_t address = reinterpret_cast<std::uintptr_t>(mapped);
  const std::lock_guard lock(pinned_mutex_);
  pinned_.emplace(address, buffer);
  return address;
}

void Device::deallocate(std::uint32_t kind, std::uint64_t address, std::uint64_t size_bytes) {
  if (kind == TENON_MEMORY_DEVICE) {
    const cl_mem buffer = addresses_.remove(address);
    allocated_bytes_ -= size_bytes;
    check(api().clReleaseMemObject(buffer), "clReleaseMemObject");
  } else if (kind == TENON_MEMORY_PINNED) {
    const std::lock_guard lock(pinned_mutex_);
    const auto at = pinned_.find(address);
    if (at == pinned_.end()) throw sdk::Error(TENON_INVALID_ARGUMENT, "no pinned memory begins at " + std::to_string(address));
    const cl_mem buffer = at->second;
    pinned_.erase(at);
    api().clEnqueueUnmapMemObject(memory_queue_, buffer, pointer(address), 0, nullptr, nullptr);
    api().clFinish(memory_queue_);
    check(api().clReleaseMemObject(buffer), "clReleaseMemObject");
  } else {
    host.release(pointer(address), size_bytes);
  }
}

void Device::copy(const tenon_copy& copy, sdk::Stream& stream) {
  const std::uint64_t bytes = copy.size_bytes;
  if (bytes == 0) return;
  const cl_command_queue queue = queue_of(stream);
  if (copy.direction == TENON_COPY_HOST_TO_DEVICE) {
    const Place to = addresses_.find(copy.destination, bytes);
    check(api().clEnqueueWriteBuffer(queue, to.buffer, CL_FALSE, to.offset, bytes, pointer(copy.source), 0, nullptr, nullptr),
          "clEnqueueWriteBuffer");
  } else if (copy.direction == TENON_COPY_DEVICE_TO_HOST) {
    const Place from = addresses_.find(copy.source, bytes);
    check(api().clEnqueueReadBuffer(queue, from.buffer, CL_FALSE, from.offset, bytes, pointer(copy.destination), 0, nullptr, nullptr),
          "clEnqueueReadBuffer");
  } else {
    const Place from = addresses_.find(copy.source, bytes), to = addresses_.find(copy.destination, bytes);
    if (from.buffer == to.buffer && from.offset == to.offset) return;
    if (from.owner != to.owner) return copy_between_contexts(from, to, bytes, queue);
    check(api().clEnqueueCopyBuffer(queue, from.buffer, to.buffer, from.offset, to.offset, bytes, 0, nullptr, nullptr),
          "clEnqueueCopyBuffer");
  }
  check(api().clFlush(queue), "clFlush");
}

/// Buffers of two contexts have no direct path: the bytes go through the host, inside the call.
void Device::copy_between_contexts(const Place& from, const Place& to, std::uint64_t size_bytes, cl_command_queue queue) {
  void* const bytes = host.allocate(size_bytes);
  if (bytes == nullptr) throw sdk::Error(TENON_OUT_OF_MEMORY, "no host memory for " + std::to_string(size_bytes) + " bytes");
  cl_int error =
      api().clEnqueueReadBuffer(from.owner->memory_queue_, from.buffer, CL_TRUE, from.offset, size_bytes, bytes, 0, nullptr, nullptr);
  if (error == CL_SUCCESS) error = api().clEnqueueWriteBuffer(queue, to.buffer, CL_TRUE, to.offset, size_bytes, bytes, 0, nullptr, nullptr);
  host.release(bytes, size_bytes);
  check(error, "a copy between devices");
}

void Device::fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value, sdk::Stream& stream) {
  if (size_bytes == 0) return;
  const Place at = addresses_.find(address, size_bytes);
  check(api().clEnqueueFillBuffer(queue_of(stream), at.buffer, &value, 1, at.offset, size_bytes, 0, nullptr, nullptr),
        "clEnqueueFillBuffer");
  check(api().clFlush(queue_of(stream)), "clFlush");
}

std::unique_ptr<sdk::Stream> Device::make_stream(const sdk::StreamOptions&) {
  return std::make_unique<Stream>(*this);
}
std::unique_ptr<sdk::Event> Device::make_event(const sdk::EventOptions& options) {
  return std::make_unique<Event>(*this, options);
}

}  // namespace tenon::opencl
