// device.h - one GPU: its memory from a stream-ordered pool, streams, events, copies, recorded work.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <memory>
#include <vector>

#include <tenon/sdk/backend.h>

#include "attached.h"
#include "fault.h"

namespace tenon::cuda {

/// What the driver says of a device.
sdk::DeviceDescription describe_gpu(int index, int driver_version);

/// A stream beside the others, never the legacy default one.
class Stream final : public sdk::Stream {
 public:
  explicit Stream(class Device& device);
  ~Stream() override;
  void synchronize() override;
  bool captures() const override { return true; }
  void begin_capture() override;
  std::unique_ptr<sdk::Capture> end_capture() override;

  cudaStream_t handle() const { return handle_; }
  Device& device() const { return device_; }
  /// True while it notes down what it is given.
  bool capturing() const { return capturing_; }
  /// Where kernels of this stream leave what they find wrong. Lives as long as anybody may write or read it.
  const std::shared_ptr<FaultRecord>& faults() const { return faults_; }
  /// What vendor libraries keep for this stream.
  Attached attached;
  /// Kernels that write to that record run in this stream too: those of a recorded stream, replayed here.
  void watch(std::shared_ptr<FaultRecord> record);

 private:
  Device& device_;
  cudaStream_t handle_ = nullptr;
  bool capturing_ = false;
  std::shared_ptr<FaultRecord> faults_;
  std::vector<std::shared_ptr<FaultRecord>> watched_;
  Attached::All outside_;  ///< of `attached`, while it is recorded
};
inline cudaStream_t handle_of(sdk::Stream& stream) {
  return static_cast<Stream&>(stream).handle();
}

/// Throws what a kernel left in the record, which is free again.
void report(FaultRecord& record);

/// Threads  any; each entry makes the device the thread's current one.
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
  std::unique_ptr<sdk::Stream> make_stream() override;
  std::unique_ptr<sdk::Event> make_event() override;
  const sdk::ElementwiseFusion* elementwise_fusion() const override;

  int index() const { return index_; }
  int multiprocessors() const { return multiprocessors_; }
  int compute_capability() const { return compute_capability_; }  ///< 10 * major + minor
  /// What vendor libraries keep for this device.
  Attached attached;
  /// Makes it the thread's current device. Throws DEVICE_LOST once it is lost.
  void enter();
  /// As cuda::check, and remembers a sticky error.
  void check(cudaError_t error, const char* call);
  /// What the context itself says, for libraries whose runtime is not ours: throws what is wrong with it, under the name of their call.
  void check_context(const char* call);
  /// True once a sticky error was seen, by whichever Device of this GPU: nothing of it can be used any more. Closing the last of them
  /// resets the GPU for this process.
  bool is_lost() const;

 private:
  const int index_;
  int multiprocessors_ = 1;
  int compute_capability_ = 0;
  cudaMemPool_t pool_ = nullptr;
  cudaStream_t memory_stream_ = nullptr;  ///< orders allocations
};

}  // namespace tenon::cuda
