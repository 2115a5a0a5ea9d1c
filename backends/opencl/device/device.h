// SPDX-License-Identifier: Apache-2.0
// device.h - one OpenCL device: its memory, streams, events, copies.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include <tenon/sdk/backend.h>

#include "device/address_space.h"
#include "device/fault.h"
#include "kernel/programs.h"
#include "libraries/opencl.h"

namespace tenon::opencl {

/// A device that a platform lists.
struct Listed {
  cl_platform_id platform = nullptr;
  cl_device_id id = nullptr;
  sdk::DeviceDescription description;
};
/// The devices of all platforms, GPUs first. `out_reason`: why there are none.
std::vector<Listed> list_devices(std::string& out_reason);

/// An in-order command queue.
class Stream final : public sdk::Stream {
 public:
  explicit Stream(class Device& device);
  ~Stream() override;
  void synchronize() override;
  void flush() override;

  cl_command_queue queue() const { return queue_; }
  Device& device() const { return device_; }
  Faults& faults() { return *faults_; }

 private:
  Device& device_;
  cl_command_queue queue_ = nullptr;
  std::unique_ptr<Faults> faults_;
};
inline cl_command_queue queue_of(sdk::Stream& stream) {
  return static_cast<Stream&>(stream).queue();
}

class Device final : public sdk::Device {
 public:
  Device(sdk::Host services, const Listed& listed);
  ~Device() override;
  std::uint64_t allocate(std::uint32_t kind, std::uint64_t size_bytes) override;
  void deallocate(std::uint32_t kind, std::uint64_t address, std::uint64_t size_bytes) override;
  void copy(const tenon_copy& copy, sdk::Stream& stream) override;
  void fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value, sdk::Stream& stream) override;
  std::unique_ptr<sdk::Stream> make_stream(const sdk::StreamOptions& options) override;
  std::unique_ptr<sdk::Event> make_event(const sdk::EventOptions& options) override;

  cl_context context() const { return context_; }
  cl_device_id id() const { return listed_.id; }
  const sdk::DeviceDescription& description() const { return listed_.description; }
  /// The place of an operand or of scratch memory; NULL: no buffer, as for operands that are absent or empty.
  Place place_of(const void* address) const {
    return address == nullptr ? Place{} : addresses_.find(reinterpret_cast<std::uintptr_t>(address));
  }
  /// Of a convolution's scratch memory, if more than one image is in it.
  std::int64_t columns_limit_bytes() const { return columns_limit_bytes_; }
  Programs& programs() { return *programs_; }
  /// Held while the arguments of a kernel are set and until it is enqueued: they belong to the kernel object.
  std::mutex submission;
  /// Multiplications from which on CLBlast lays out operands anew, for f32, f64 and complex ones of both; -1 before its first call. Guarded
  /// by `submission`.
  std::array<std::int64_t, 4> clblast_min_indirect{-1, -1, -1, -1};
  /// Like opencl::check; also remembers that the device is lost.
  void check(cl_int error, const char* function);

 private:
  std::uint64_t allocate_buffer(std::uint64_t size_bytes);
  std::uint64_t allocate_pinned(std::uint64_t size_bytes);
  void copy_between_contexts(const Place& from, const Place& to, std::uint64_t size_bytes, cl_command_queue queue);

  const Listed listed_;
  cl_context context_ = nullptr;
  cl_command_queue memory_queue_ = nullptr;  ///< makes drivers allocate, maps pinned memory
  AddressSpace& addresses_ = AddressSpace::shared();
  std::atomic<std::uint64_t> allocated_bytes_{0};
  std::mutex pinned_mutex_;
  std::map<std::uint64_t, cl_mem> pinned_;  ///< by host address
  std::unique_ptr<Programs> programs_;
  std::int64_t columns_limit_bytes_ = std::int64_t{64} << 20;
  std::atomic<bool> unavailable_{false};
};

}  // namespace tenon::opencl
