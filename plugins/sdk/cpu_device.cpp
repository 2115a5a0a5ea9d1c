// SPDX-License-Identifier: Apache-2.0
// The CPU as a device: all work is done when it is submitted.
#include <chrono>
#include <cstring>
#include <thread>

#include <tenon/sdk/backend.h>
#include <tenon/sdk/elementwise.h>

#include "address.h"
#include "cpu_facts.h"

namespace tenon::sdk {
namespace {

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

class InlineStream final : public Stream {
 public:
  void synchronize() override {}
};

class InlineEvent final : public Event {
 public:
  void record(Stream&) override {
    time_ns_ = now_ns();
    recorded_ = true;
  }
  void wait(Stream&) override {}
  bool done() override { return true; }
  void synchronize() override {}
  std::uint64_t nanoseconds_since(Event& begin) override {
    const auto& from = static_cast<InlineEvent&>(begin);
    if (!from.recorded_ || !recorded_) throw Error(TENON_INVALID_ARGUMENT, "event_elapsed: both events must have been recorded");
    if (time_ns_ < from.time_ns_) throw Error(TENON_INVALID_ARGUMENT, "event_elapsed: the end was recorded before the beginning");
    return time_ns_ - from.time_ns_;
  }

 private:
  bool recorded_ = false;
  std::uint64_t time_ns_ = 0;
};

/// With kernels for whole groups of elementwise nodes.
class FusingCpuDevice final : public CpuDevice {
 public:
  FusingCpuDevice(Host services, const ElementwiseFusion* fusion) : CpuDevice(services), fusion_(fusion) {}
  const ElementwiseFusion* elementwise_fusion() const override { return fusion_; }

 private:
  const ElementwiseFusion* fusion_;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(Host services, std::string text, const ElementwiseFusion* fusion)
      : Backend(services), description_(describe_cpu(std::move(text))), fusion_(fusion) {}
  std::uint32_t device_count() override { return 1; }
  const DeviceDescription& describe(std::uint32_t) override { return description_; }
  std::unique_ptr<Device> open(std::uint32_t) override { return std::make_unique<FusingCpuDevice>(host, fusion_); }

 private:
  DeviceDescription description_;
  const ElementwiseFusion* fusion_;
};

}  // namespace

void Stream::begin_capture() {
  throw Error(TENON_UNSUPPORTED, "this device's streams cannot be recorded");
}
std::unique_ptr<Capture> Stream::end_capture() {
  throw Error(TENON_UNSUPPORTED, "this device's streams cannot be recorded");
}

std::uint64_t Device::import_host(void* memory, std::uint64_t size_bytes, std::uint32_t terms) {
  if (borrows(terms)) return reinterpret_cast<std::uintptr_t>(memory);
  if (terms != TENON_IMPORT_COPY && terms != TENON_IMPORT_HOLD) {
    throw Error(TENON_UNSUPPORTED, "memory_import: this device cannot use host memory in place; import with COPY or HOLD");
  }
  const auto stream = make_stream({});
  const std::uint64_t address = allocate(TENON_MEMORY_DEVICE, size_bytes);
  try {
    tenon_copy transfer{};
    transfer.struct_size = sizeof transfer;
    transfer.direction = TENON_COPY_HOST_TO_DEVICE;
    transfer.destination = address;
    transfer.source = reinterpret_cast<std::uintptr_t>(memory);
    transfer.size_bytes = size_bytes;
    copy(transfer, *stream);
    stream->synchronize();
  } catch (...) {
    deallocate(TENON_MEMORY_DEVICE, address, size_bytes);
    throw;
  }
  return address;
}

std::uint64_t CpuDevice::allocate(std::uint32_t, std::uint64_t size_bytes) {
  void* memory = host.allocate(size_bytes, 64);
  if (memory == nullptr) throw Error(TENON_OUT_OF_MEMORY, "no host memory for " + std::to_string(size_bytes) + " bytes");
  return reinterpret_cast<std::uintptr_t>(memory);
}

void CpuDevice::deallocate(std::uint32_t, std::uint64_t address, std::uint64_t size_bytes) {
  host.release(pointer(address), size_bytes);
}

void CpuDevice::copy(const tenon_copy& copy, Stream&) {
  if (copy.size_bytes > 0) std::memcpy(pointer(copy.destination), pointer(copy.source), copy.size_bytes);
}

void CpuDevice::fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value, Stream&) {
  if (size_bytes > 0) std::memset(pointer(address), value, size_bytes);
}

std::unique_ptr<Stream> CpuDevice::make_stream(const StreamOptions&) {
  return std::make_unique<InlineStream>();
}
std::unique_ptr<Event> CpuDevice::make_event(const EventOptions&) {
  return std::make_unique<InlineEvent>();
}

DeviceDescription describe_cpu(std::string description) {
  DeviceDescription cpu;
  cpu.flags = TENON_DEVICE_HOST_ADDRESSABLE | TENON_DEVICE_INLINE_STREAMS;
  cpu.name = "CPU";
  cpu.identity = "host";
  cpu.description = std::move(description);
  for (tenon_dtype t = TENON_DTYPE_F16; t <= TENON_DTYPE_BOOL; ++t) cpu.dtypes |= TENON_DTYPE_BIT(t);
  const CpuFacts facts = cpu_facts();
  if (!facts.name.empty()) cpu.name = facts.name;
  cpu.clock_khz = facts.clock_khz;
  cpu.memory_size_bytes = facts.memory_size_bytes;
  cpu.memory_free_bytes = facts.memory_free_bytes;
  return cpu;
}

std::unique_ptr<Backend> make_cpu_backend(Host host, std::string description, const ElementwiseFusion* fusion) {
  return std::make_unique<CpuBackend>(host, std::move(description), fusion);
}

}  // namespace tenon::sdk
