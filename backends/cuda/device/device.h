// SPDX-License-Identifier: Apache-2.0
// device.h - one GPU: its memory from a stream-ordered pool, streams, events, copies, recorded work.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include <tenon/sdk/backend.h>

#include "device/attached.h"
#include "device/fault.h"

namespace tenon::cuda {

/// Describes a device from the driver's properties.
sdk::DeviceDescription describe_gpu(int index, int driver_version);

/// A non-blocking stream, never the legacy default stream.
class Stream final : public sdk::Stream {
 public:
  explicit Stream(class Device& device, const sdk::StreamOptions& options = {});
  ~Stream() override;
  void synchronize() override;
  bool captures() const override { return true; }
  void begin_capture() override;
  std::unique_ptr<sdk::Capture> end_capture() override;

  cudaStream_t handle() const { return handle_; }
  Device& device() const { return device_; }
  /// True while the stream is being recorded.
  bool capturing() const { return capturing_; }
  /// Where kernels of this stream report faults. Lives as long as anything may write or read it.
  const std::shared_ptr<FaultRecord>& faults() const { return faults_; }
  /// Per-stream state of vendor libraries.
  Attached attached;
  /// Also checks this record when the stream is synchronized: recorded kernels replayed here write to the record of their own stream.
  void watch(std::shared_ptr<FaultRecord> record);
  /// The records that what was submitted since the last synchronization may write.
  std::vector<std::shared_ptr<FaultRecord>> fault_records();

 private:
  Device& device_;
  cudaStream_t handle_ = nullptr;
  bool capturing_ = false;
  std::shared_ptr<FaultRecord> faults_;
  std::mutex watched_mutex_;
  std::vector<std::shared_ptr<FaultRecord>> watched_;  ///< guarded: one thread may wait while another replays
  Attached::All outside_;                              ///< `attached` of the time before the recording
};
inline cudaStream_t handle_of(sdk::Stream& stream) {
  return static_cast<Stream&>(stream).handle();
}

/// RAII: lets the calling thread do what a recording forbids. Creating a handle allocates memory, which is not recorded.
class OutsideOfRecordings {
 public:
  OutsideOfRecordings() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  ~OutsideOfRecordings() { cudaThreadExchangeStreamCaptureMode(&mode_); }
  OutsideOfRecordings(const OutsideOfRecordings&) = delete;
  OutsideOfRecordings& operator=(const OutsideOfRecordings&) = delete;

 private:
  cudaStreamCaptureMode mode_ = cudaStreamCaptureModeRelaxed;
};

/// Throws the fault in the record, if any, and clears it.
void report(FaultRecord& record);

/// Threads  any; each call makes the device current for the thread.
class Device final : public sdk::Device {
 public:
  Device(sdk::Host services, int index);
  ~Device() override;
  std::uint64_t allocate(std::uint32_t kind, std::uint64_t size_bytes) override;
  void deallocate(std::uint32_t kind, std::uint64_t address, std::uint64_t size_bytes) override;
  std::uint64_t import_host(void* memory, std::uint64_t size_bytes, std::uint32_t terms) override;
  bool borrows(std::uint32_t terms) const override { return terms != TENON_IMPORT_COPY; }
  void end_import(void* memory, std::uint64_t size_bytes) override;
  void copy(const tenon_copy& copy, sdk::Stream& stream) override;
  void fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value, sdk::Stream& stream) override;
  std::unique_ptr<sdk::Stream> make_stream(const sdk::StreamOptions& options) override;
  std::unique_ptr<sdk::Event> make_event(const sdk::EventOptions& options) override;
  /// Errors  INCOMPATIBLE: NCCL is missing or too old. VENDOR_ERROR: a rank is missing when the time is over, or NCCL fails.
  std::unique_ptr<sdk::Group> join(const sdk::GroupOptions& options) override;
  const sdk::ElementwiseFusion* elementwise_fusion() const override;
  const sdk::KernelRow* batched_copy() const override;

  int index() const { return index_; }
  int multiprocessors() const { return multiprocessors_; }
  int compute_capability() const { return compute_capability_; }  ///< 10 * major + minor
  /// True if it can launch kernels whose blocks all run at once.
  bool cooperative() const { return cooperative_; }
  /// The shared memory that a block may have. More than 48 KB has to be allowed.
  std::size_t max_shared_bytes() const { return max_shared_bytes_; }
  /// Allows blocks of a kernel all dynamic shared memory that its static one leaves of max_shared_bytes(), whatever the launch needs: the
  /// limit is the kernel's, and other threads and recordings may need more.
  void allow_shared(const void* kernel);
  /// Per-device state of vendor libraries.
  Attached attached;
  /// Makes the device current for the thread. Throws DEVICE_LOST once it is lost.
  void enter();
  /// Like cuda::check; also remembers a sticky error.
  void check(cudaError_t error, const char* call);
  /// Throws the error of the CUDA context, if any, under the name of a library call. For libraries that link another CUDA runtime.
  void check_context(const char* call);
  /// True once any Device of this GPU has seen a sticky error: nothing on it can be used any more. Closing the last Device resets the GPU
  /// for this process.
  bool is_lost() const;

 private:
  /// Lets another GPU access the device's memory, if it can access any of this GPU. Kernels of NCCL access the buffers of ranks of the same
  /// process directly.
  void grant_access(int gpu);

  const int index_;
  int multiprocessors_ = 1;
  int compute_capability_ = 0;
  bool cooperative_ = false;
  std::size_t max_shared_bytes_ = 48 << 10;
  std::mutex allowed_mutex_;
  std::set<const void*> allowed_shared_;  ///< guarded: kernels after allow_shared
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t memory_stream_ = nullptr;  ///< orders allocations
};

}  // namespace tenon::cuda
