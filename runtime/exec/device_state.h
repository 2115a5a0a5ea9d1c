// SPDX-License-Identifier: Apache-2.0
// exec/device_state.h - an open device: its handle, stream and memory.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include <tenon/context.h>

#include "core/device_bridge.h"
#include "exec/call.h"
#include "exec/device_memory.h"
#include "exec/host_services.h"
#include "exec/packed_parameters.h"
#include "exec/trace.h"
#include "graph/vendor_ops.h"
#include "loader/loader.h"

namespace tenon::exec {

/// A loaded backend, its host services and the ops that it declares. Member order matters: the services outlive the backend, and the
/// backend its declarations.
struct LoadedBackend {
  std::shared_ptr<HostServices> services;
  std::shared_ptr<loader::Backend> backend;
  graph::VendorOpDeclarations vendor_ops = {};
};

/// Copy counters by TENON_COPY_*, for Context::profile.
/// Threads  any.
struct CopyCounters {
  struct Direction {
    std::atomic<std::uint64_t> copies{0}, size_bytes{0}, duration_ns{0};
  };
  std::array<Direction, 3> directions;

  void add_copy(std::uint32_t direction, std::uint64_t size_bytes) {
    directions[direction].copies.fetch_add(1, std::memory_order_relaxed);
    directions[direction].size_bytes.fetch_add(size_bytes, std::memory_order_relaxed);
  }
  void add_time(std::uint32_t direction, std::uint64_t duration_ns) {
    directions[direction].duration_ns.fetch_add(duration_ns, std::memory_order_relaxed);
  }
};

/// What a device shares with its context; null or empty: not shared.
struct DeviceSettings {
  std::shared_ptr<CopyCounters> copy_counters = {};
  std::shared_ptr<TraceRecorder> trace = {};
  MemoryPolicy memory = {};
  std::weak_ptr<ContextState> context = {};
  tenon_plan_options arithmetic = {};  ///< math and determinism of its configuration, for BLAS
};

struct DeviceState final : DeviceMemory, std::enable_shared_from_this<DeviceState> {
  DeviceState(std::shared_ptr<LoadedBackend> backend, std::uint32_t index, DeviceInfo info, DeviceSettings settings = {});
  ~DeviceState() override;

  // DeviceMemory, used by tensors.
  bool host_addressable() const override { return (info.flags & TENON_DEVICE_HOST_ADDRESSABLE) != 0; }
  void download(std::uint64_t address, void* host, std::uint64_t size_bytes) override;
  void upload(std::uint64_t address, const void* host, std::uint64_t size_bytes) override;
  void move(std::uint64_t to, std::uint64_t from, std::uint64_t size_bytes) override;
  void fill(std::uint64_t address, std::uint64_t size_bytes, std::uint8_t value) override;
  /// Size 0 is allowed.
  std::shared_ptr<Storage> allocate(std::uint64_t size_bytes) override;
  std::optional<DlpackDevice> dlpack_device() const override;

  /// The alignment in bytes that an operand needs: the device's, at least that of an element.
  std::uint64_t alignment_of(DType dtype) const;
  /// Whether it records runs and replays them.
  bool records() const;
  bool inline_streams() const { return (info.flags & TENON_DEVICE_INLINE_STREAMS) != 0; }
  /// Allocates host memory that the device copies without staging.
  std::shared_ptr<Storage> allocate_pinned(std::uint64_t size_bytes);
  /// Host memory that the device uses in place on these TENON_IMPORT_* terms, until the storage is destroyed; null if the device cannot.
  std::shared_ptr<Storage> import(void* host, std::uint64_t size_bytes, std::uint32_t terms);
  /// Copies asynchronously on the device's stream or on `stream`.
  void copy(std::uint32_t direction, std::uint64_t destination, std::uint64_t source, std::uint64_t size_bytes,
            tenon_device* peer = nullptr, tenon_stream* other_stream = nullptr);
  /// Waits for what has been submitted to the device's stream; others may submit meanwhile.
  void synchronize();
  /// To be held during each call that submits to a stream of the device, or records or awaits an event on it. The programs, copies and BLAS
  /// calls of several threads share `stream`, and a backend gets one call on it at a time. Other streams belong to one thread at a time,
  /// and streams that work inside of the call have nothing to guard: nothing is locked for these.
  [[nodiscard]] std::unique_lock<std::mutex> submission(const tenon_stream* to) const {
    return to != stream || inline_streams() ? std::unique_lock<std::mutex>() : std::unique_lock(submission_);
  }
  /// The backend's statistics.
  tenon_memory_stats stats();
  /// False in a child of the process that opened the device, if its state does not survive a fork.
  bool in_its_process() const { return generation == fork_generation() || inline_streams(); }
  /// Throws FORKED in a child of the process that opened a device whose state does not survive a fork.
  void check_process() const;

  const std::shared_ptr<LoadedBackend> loaded;
  const DeviceInfo info;
  const tenon_backend_table& table;
  tenon_device* handle = nullptr;
  tenon_stream* stream = nullptr;
  const std::uint32_t index;       ///< index in its backend
  const std::uint32_t generation;  ///< fork_generation() at opening
  const std::shared_ptr<CopyCounters> copy_counters;
  const std::shared_ptr<TraceRecorder> trace;
  const std::weak_ptr<ContextState> context;  ///< the context that opened it
  const tenon_plan_options arithmetic;        ///< as in DeviceSettings
  std::optional<DeviceAllocator> allocator;   ///< device memory; empty during destruction
  PackedParameters packed_parameters;         ///< of the programs that are alive

 private:
  tenon_memory* allocate_kind(std::uint64_t size_bytes, std::uint32_t kind, std::uint64_t* out_address);
  std::uint64_t free_size_bytes() const;
  void trace_copy(std::uint32_t direction, std::uint64_t size_bytes, std::chrono::steady_clock::time_point begin, bool on_other_stream);
  /// Copies on the device's stream and waits.
  void copy_now(std::uint32_t direction, std::uint64_t destination, std::uint64_t source, std::uint64_t size_bytes);

  mutable std::mutex submission_;
};

}  // namespace tenon::exec
