// SPDX-License-Identifier: Apache-2.0
#include "device/device.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <limits>
#include <mutex>
#include <new>
#include <string>

#include "device/status.h"

namespace tenon::cuda {
namespace {

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

/// State shared by all Devices of one GPU: CUDA has one context for them, so one illegal access breaks them all.
struct Shared {
  std::mutex mutex;
  int open = 0;
  std::atomic<cudaError_t> lost{cudaSuccess};
};
Shared& shared_of(int index) {
  static constexpr std::size_t max_gpus = 64;
  static Shared all[max_gpus];
  return all[static_cast<std::size_t>(index) % max_gpus];
}

/// All open Devices of the process.
struct OpenDevices {
  std::mutex mutex;
  std::vector<Device*> all;
};
OpenDevices& open_devices() {
  static auto* const devices = new OpenDevices;  // never destroyed: a process may end with open devices
  return *devices;
}

class Event final : public sdk::Event {
 public:
  Event(Device& device, const sdk::EventOptions& options) : device_(device) {
    device_.enter();
    device_.check(cudaEventCreateWithFlags(&handle_, options.timed ? cudaEventDefault : cudaEventDisableTiming),
                  "cudaEventCreateWithFlags");
  }
  ~Event() override { cudaEventDestroy(handle_); }
  void record(sdk::Stream& stream) override {
    device_.enter();
    auto& queue = static_cast<Stream&>(stream);
    // In a recording, an external event node, recorded anew at each replay.
    device_.check(cudaEventRecordWithFlags(handle_, queue.handle(), queue.capturing() ? cudaEventRecordExternal : cudaEventRecordDefault),
                  "cudaEventRecordWithFlags");
    records_ = queue.fault_records();
    recorded_ = true;
  }
  void wait(sdk::Stream& stream) override {
    device_.enter();
    auto& queue = static_cast<Stream&>(stream);
    if (!recorded_ && !queue.capturing()) return;
    // In a recording, an external event node: each replay waits for what the event marks when it is submitted.
    device_.check(cudaStreamWaitEvent(queue.handle(), handle_, queue.capturing() ? cudaEventWaitExternal : cudaEventWaitDefault),
                  "cudaStreamWaitEvent");
  }
  bool done() override {
    if (!recorded_) return true;
    device_.enter();
    const cudaError_t error = cudaEventQuery(handle_);
    if (error == cudaErrorNotReady) {
      cudaGetLastError();  // clears the error
      return false;
    }
    device_.check(error, "cudaEventQuery");
    report_all();
    return true;
  }
  void synchronize() override {
    if (!recorded_) return;
    device_.enter();
    device_.check(cudaEventSynchronize(handle_), "cudaEventSynchronize");
    report_all();
  }
  std::uint64_t nanoseconds_since(sdk::Event& begin) override {
    const auto& from = static_cast<Event&>(begin);
    if (!recorded_ || !from.recorded_) throw sdk::Error(TENON_INVALID_ARGUMENT, "event_elapsed: both events must have been recorded");
    device_.enter();
    float milliseconds = 0;
    device_.check(cudaEventElapsedTime(&milliseconds, from.handle_, handle_), "cudaEventElapsedTime");
    if (milliseconds < 0) throw sdk::Error(TENON_INVALID_ARGUMENT, "event_elapsed: the end was recorded before the beginning");
    return static_cast<std::uint64_t>(static_cast<double>(milliseconds) * 1e6);
  }

 private:
  void report_all() {
    for (const auto& record : records_) report(*record);
  }

  Device& device_;
  cudaEvent_t handle_ = nullptr;
  bool recorded_ = false;
  std::vector<std::shared_ptr<FaultRecord>> records_;  ///< of the stream that recorded the event, and of what was replayed on it
};

std::string identity_of(int index, const cudaDeviceProp& properties) {
  char bus[32] = {};
  if (cudaDeviceGetPCIBusId(bus, sizeof bus, index) != cudaSuccess) bus[0] = '\0';
  std::string text = "uuid=GPU-";
  const auto* bytes = reinterpret_cast<const unsigned char*>(properties.uuid.bytes);
  for (int i = 0; i < 16; ++i) {
    char hex[4];
    std::snprintf(hex, sizeof hex, i == 4 || i == 6 || i == 8 || i == 10 ? "-%02x" : "%02x", bytes[i]);
    text += hex;
  }
  if (bus[0] != '\0') text += std::string(" pci=") + bus;
  return text;
}

}  // namespace

sdk::DeviceDescription describe_gpu(int index, int driver_version) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, index), "cudaGetDeviceProperties");
  int clock_khz = 0;
  cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, index);
  sdk::DeviceDescription gpu;
  gpu.kind = TENON_DEVICE_GPU;
  gpu.compute_major = static_cast<std::uint32_t>(properties.major);
  gpu.compute_minor = static_cast<std::uint32_t>(properties.minor);
  gpu.clock_khz = static_cast<std::uint32_t>(clock_khz);
  gpu.name = properties.name;
  gpu.identity = identity_of(index, properties);
  gpu.description = "CUDA " + version_text(CUDART_VERSION) + ", driver for CUDA " + version_text(driver_version) + ", " +
                    std::to_string(properties.multiProcessorCount) + " multiprocessors";
  int memory_khz = 0;
  cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, index);
  if (memory_khz > 0 && properties.memoryBusWidth > 0) {  // `tenon bandwidth` computes the peak from them
    gpu.description += ", memory " + std::to_string(memory_khz / 1000) + " MHz x " + std::to_string(properties.memoryBusWidth) + " bits";
  }
  gpu.memory_size_bytes = properties.totalGlobalMem;
  gpu.alignment_bytes = 256;
  for (tenon_dtype t = TENON_DTYPE_F16; t <= TENON_DTYPE_BOOL; ++t) gpu.dtypes |= TENON_DTYPE_BIT(t);
  return gpu;
}

void report(FaultRecord& record) {
  static std::mutex mutex;  // threads that wait for one stream: one of them reports its fault
  const std::lock_guard lock(mutex);
  const std::atomic_ref<std::uint32_t> state(record.state);
  if (state.load(std::memory_order_acquire) != fault_written) return;
  const FaultRecord found = record;
  state.store(fault_none, std::memory_order_release);
  throw sdk::Error(TENON_INVALID_ARGUMENT, text_of(found), found.node_id);
}

Stream::Stream(Device& device, const sdk::StreamOptions& options) : device_(device) {
  device_.enter();
  void* memory = nullptr;
  device_.check(cudaHostAlloc(&memory, sizeof(FaultRecord), cudaHostAllocPortable | cudaHostAllocMapped), "cudaHostAlloc");
  faults_ = {new (memory) FaultRecord{}, [](FaultRecord* record) { cudaFreeHost(record); }};
  int lowest = 0, highest = 0;  // CUDA counts the other way: -5 goes before 0
  device_.check(cudaDeviceGetStreamPriorityRange(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  const int priority = std::clamp(-std::max(options.priority, -std::numeric_limits<std::int32_t>::max()), highest, lowest);
  device_.check(cudaStreamCreateWithPriority(&handle_, cudaStreamNonBlocking, priority), "cudaStreamCreateWithPriority");
}

Stream::~Stream() {
  cudaSetDevice(device_.index());
  attached.clear();
  cudaStreamDestroy(handle_);
}

void Stream::synchronize() {
  device_.enter();
  std::vector<std::shared_ptr<FaultRecord>> records;  // of what is submitted already: this waits for nothing else
  {
    const std::lock_guard lock(watched_mutex_);
    records.swap(watched_);
  }
  try {
    device_.check(cudaStreamSynchronize(handle_), "cudaStreamSynchronize");
    report(*faults_);
    for (const auto& record : records) report(*record);
  } catch (...) {
    for (auto& record : records) watch(std::move(record));  // not all have been read
    throw;
  }
}

std::vector<std::shared_ptr<FaultRecord>> Stream::fault_records() {
  const std::lock_guard lock(watched_mutex_);
  std::vector<std::shared_ptr<FaultRecord>> records = watched_;
  records.push_back(faults_);
  return records;
}

void Stream::watch(std::shared_ptr<FaultRecord> record) {
  const std::lock_guard lock(watched_mutex_);
  if (record == faults_ || std::find(watched_.begin(), watched_.end(), record) != watched_.end()) return;
  watched_.push_back(std::move(record));
}

Device::Device(sdk::Host services, int index) : sdk::Device(services), index_(index) {
  enter();
  cudaMemPoolProps properties{};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = index;
  check(cudaMemPoolCreate(&pool_, &properties), "cudaMemPoolCreate");
  // The pool keeps freed memory, so that the next allocation of that size needs no system call.
  std::uint64_t keep = std::numeric_limits<std::uint64_t>::max();
  check(cudaMemPoolSetAttribute(pool_, cudaMemPoolAttrReleaseThreshold, &keep), "cudaMemPoolSetAttribute");
  check(cudaStreamCreateWithFlags(&memory_stream_, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  int major = 0, minor = 0;
  check(cudaDeviceGetAttribute(&multiprocessors_, cudaDevAttrMultiProcessorCount, index), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, index), "cudaDeviceGetAttribute");
  check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, index), "cudaDeviceGetAttribute");
  compute_capability_ = 10 * major + minor;
  int shared_bytes = 0;
  if (cudaDeviceGetAttribute(&shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, index) == cudaSuccess) {
    max_shared_bytes_ = std::max(max_shared_bytes_, static_cast<std::size_t>(shared_bytes));
  }
  int cooperative = 0;
  cooperative_ = cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, index) == cudaSuccess && cooperative != 0;
  cudaGetLastError();  // clears the errors of these queries
  {
    OpenDevices& open = open_devices();
    const std::lock_guard lock(open.mutex);
    for (Device* other : open.all) {
      other->grant_access(index);
      grant_access(other->index());
    }
    open.all.push_back(this);
  }
  Shared& shared = shared_of(index);
  const std::lock_guard lock(shared.mutex);
  ++shared.open;
}

Device::~Device() {
  {
    OpenDevices& open = open_devices();
    const std::lock_guard lock(open.mutex);
    std::erase(open.all, this);
  }
  cudaSetDevice(index_);
  attached.clear();
  cudaStreamSynchronize(memory_stream_);
  cudaStreamDestroy(memory_stream_);
  cudaMemPoolDestroy(pool_);
  Shared& shared = shared_of(index_);
  const std::lock_guard lock(shared.mutex);
  --shared.open;
  if (shared.open == 0 && is_lost() && cudaDeviceReset() == cudaSuccess) shared.lost = cudaSuccess;
}

bool Device::is_lost() const {
  return shared_of(index_).lost.load(std::memory_order_relaxed) != cudaSuccess;
}

void Device::enter() {
  if (is_lost()) {
    throw sdk::Error(TENON_DEVICE_LOST, std::string("the device was lost by an earlier ") +
                                            cudaGetErrorName(shared_of(index_).lost.load(std::memory_order_relaxed)) + ": close it");
  }
  check(cudaSetDevice(index_), "cudaSetDevice");
}

void Device::check(cudaError_t error, const char* call) {
  if (error == cudaSuccess) return;
  if (is_sticky(error)) shared_of(index_).lost.store(error, std::memory_order_relaxed);
  cudaGetLastError();  // clears the error, which is reported here
  cuda::check(error, call);
}

void Device::allow_shared(const void* kernel) {
  const std::lock_guard lock(allowed_mutex_);
  if (allowed_shared_.contains(kernel)) return;
  const OutsideOfRecordings outside;  // CUDA may load the kernel's code now
  cudaFuncAttributes attributes{};
  check(cudaFuncGetAttributes(&attributes, kernel), "cudaFuncGetAttributes");
  const std::size_t left = max_shared_bytes_ - std::min(max_shared_bytes_, attributes.sharedSizeBytes);
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(left)), "cudaFuncSetAttribute");
  allowed_shared_.insert(kernel);
}

void Device::check_context(const char* call) {
  const cudaError_t error = cudaStreamQuery(memory_stream_);
  cudaGetLastError();
  if (error != cudaErrorNotReady) check(error, call);
}

void Device::grant_access(int gpu) {
  int can_access = 0;
  if (gpu == index_) return;
  cudaError_t error = cudaDeviceCanAccessPeer(&can_access, gpu, index_);
  if (error == cudaSuccess && can_access != 0) {
    cudaMemAccessDesc access{};
    access.location.type = cudaMemLocationTypeDevice;
    access.location.id = gpu;
    access.flags = cudaMemAccessFlagsProtReadWrite;
    error = cudaMemPoolSetAccess(pool_, &access, 1);
  }
  if (error == cudaSuccess) return;
  cudaGetLastError();  // clears the error: all else works
  const std::string line = "cuda: GPU " + std::to_string(gpu) + " was not granted access to the memory of GPU " + std::to_string(index_) +
                           ", so collectives of both may fail: " + cudaGetErrorName(error) + ", " + cudaGetErrorString(error);
  host.log(TENON_LOG_WARNING, line.c_str());
}

std::uint64_t Device::allocate(std::uint32_t kind, std::uint64_t size_bytes) {
  enter();
  void* memory = nullptr;
  cudaError_t error = cudaSuccess;
  if (kind == TENON_MEMORY_DEVICE) {
    error = cudaMallocFromPoolAsync(&memory, size_bytes, pool_, memory_stream_);
    if (error == cudaErrorMemoryAllocation) {  // the pool may hold enough memory in fragments
      cudaGetLastError();
      check(cudaStreamSynchronize(memory_stream_), "cudaStreamSynchronize");
      check(cudaMemPoolTrimTo(pool_, 0), "cudaMemPoolTrimTo");
      error = cudaMallocFromPoolAsync(&memory, size_bytes, pool_, memory_stream_);
    }
    if (error == cudaSuccess) error = cudaStreamSynchronize(memory_stream_);  // any stream may use the memory now
  } else {
    error = cudaHostAlloc(&memory, size_bytes, cudaHostAllocPortable);
  }
  if (error == cudaErrorMemoryAllocation) {
    cudaGetLastError();
    std::size_t free_bytes = 0, total_bytes = 0;
    cudaMemGetInfo(&free_bytes, &total_bytes);
    throw sdk::Error(TENON_OUT_OF_MEMORY, "no " + std::string(kind == TENON_MEMORY_DEVICE ? "device" : "pinned") + " memory for " +
                                              std::to_string(size_bytes) + " bytes; the device has " + std::to_string(free_bytes) + " of " +
                                              std::to_string(total_bytes) + " free");
  }
  check(error, kind == TENON_MEMORY_DEVICE ? "cudaMallocFromPoolAsync" : "cudaHostAlloc");
  return reinterpret_cast<std::uintptr_t>(memory);
}

void Device::deallocate(std::uint32_t kind, std::uint64_t address, std::uint64_t) {
  if (is_lost()) return;  // it was freed with the context
  enter();
  if (kind == TENON_MEMORY_DEVICE) {
    check(cudaFreeAsync(pointer(address), memory_stream_), "cudaFreeAsync");
  } else {
    check(cudaFreeHost(pointer(address)), "cudaFreeHost");
  }
}

std::uint64_t Device::import_host(void* memory, std::uint64_t size_bytes, std::uint32_t terms) {
  if (!borrows(terms)) return sdk::Device::import_host(memory, size_bytes, terms);
  enter();
  unsigned flags = cudaHostRegisterPortable | cudaHostRegisterMapped;
  int offered = 0;
  if (terms != TENON_IMPORT_BORROW_READ_WRITE &&
      cudaDeviceGetAttribute(&offered, cudaDevAttrHostRegisterReadOnlySupported, index_) == cudaSuccess && offered != 0) {
    flags |= cudaHostRegisterReadOnly;  // needed for memory that the host may only read, such as a mapped file
  }
  cudaGetLastError();  // clears the error of the query
  // Some memory cannot be pinned: pages that are registered already, mapped files on some systems, more than the system allows.
  const auto check_borrowed = [&](cudaError_t error, const char* call) {
    if (error == cudaSuccess) return;
    if (is_sticky(error)) check(error, call);
    cudaGetLastError();
    throw sdk::Error(TENON_UNSUPPORTED, std::string("memory_import: this memory cannot be used in place, since ") + call + " fails with " +
                                            cudaGetErrorName(error) + ", " + cudaGetErrorString(error) + "; import by copy");
  };
  check_borrowed(cudaHostRegister(memory, size_bytes, flags), "cudaHostRegister");
  void* address = nullptr;
  try {
    check_borrowed(cudaHostGetDevicePointer(&address, memory, 0), "cudaHostGetDevicePointer");
  } catch (...) {
    cudaHostUnregister(memory);
    throw;
  }
  return reinterpret_cast<std::uintptr_t>(address);
}

void Device::end_import(void* memory, std::uint64_t) {
  if (is_lost()) return;
  enter();
  check(cudaHostUnregister(memory), "cudaHostUnregister");
}

void Device::copy(const tenon_copy& copy, sdk::Stream& stream) {
  if (copy.size_bytes == 0) return;
  enter();
  if (copy.peer != nullptr) {
    if (const int from = static_cast<Device&>(sdk::device_of(copy.peer)).index(); from != index_) {
      // Memory of a pool can be copied by cudaMemcpyAsync only where its GPU can be accessed directly.
      return check(cudaMemcpyPeerAsync(pointer(copy.destination), index_, pointer(copy.source), from, copy.size_bytes, handle_of(stream)),
                   "cudaMemcpyPeerAsync");
    }
  }
  // Unified addressing: CUDA infers the kind of copy from the addresses. Device memory may be imported host memory.
  check(cudaMemcpyAsync(pointer(copy.destination), pointer(copy.source), copy.size_bytes, cudaMemcpyDefault, handle_of(stream)),
        "cudaMemcpyAsync");
}

void Device::fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value, sdk::Stream& stream) {
  if (size_bytes == 0) return;
  enter();
  check(cudaMemsetAsync(pointer(address), value, size_bytes, handle_of(stream)), "cudaMemsetAsync");
}

std::unique_ptr<sdk::Stream> Device::make_stream(const sdk::StreamOptions& options) {
  return std::make_unique<Stream>(*this, options);
}
std::unique_ptr<sdk::Event> Device::make_event(const sdk::EventOptions& options) {
  return std::make_unique<Event>(*this, options);
}

}  // namespace tenon::cuda
