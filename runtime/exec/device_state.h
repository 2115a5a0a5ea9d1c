// exec/device_state.h - an open device: its handle, its stream, and memory on it.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <tenon/context.h>

#include "core/device_bridge.h"
#include "exec/call.h"
#include "exec/host_services.h"
#include "loader/loader.h"

namespace tenon::exec {

/// A loaded backend with the services it was given. Order of members: the services outlive the backend.
struct LoadedBackend {
  std::shared_ptr<HostServices> services;
  std::shared_ptr<loader::Backend> backend;
};

struct DeviceState final : DeviceMemory, std::enable_shared_from_this<DeviceState> {
  DeviceState(std::shared_ptr<LoadedBackend> backend, std::uint32_t index, DeviceInfo info);
  ~DeviceState() override;

  // What tensors ask of it.
  bool host_addressable() const override { return (info.flags & TENON_DEVICE_HOST_ADDRESSABLE) != 0; }
  void download(std::uint64_t address, void* host, std::uint64_t size_bytes) override;
  void upload(std::uint64_t address, const void* host, std::uint64_t size_bytes) override;

  bool inline_streams() const { return (info.flags & TENON_DEVICE_INLINE_STREAMS) != 0; }
  /// Device memory that is freed with the last tensor on it. Size 0 is allowed.
  std::shared_ptr<Storage> allocate(std::uint64_t size_bytes, std::uint32_t kind = TENON_MEMORY_DEVICE);
  /// Asynchronous on the device's stream.
  void copy(std::uint32_t direction, std::uint64_t destination, std::uint64_t source, std::uint64_t size_bytes,
            tenon_device* peer = nullptr);
  void synchronize();
  tenon_memory_stats stats();
  /// Throws FORKED in a child of the process that opened a device whose state does not survive a fork.
  void check_process() const;

  const std::shared_ptr<LoadedBackend> loaded;
  const DeviceInfo info;
  const tenon_backend_table& table;
  tenon_device* handle = nullptr;
  tenon_stream* stream = nullptr;
  const std::uint32_t generation;  ///< fork_generation() at opening
};

}  // namespace tenon::exec
