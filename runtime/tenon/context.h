// SPDX-License-Identifier: Apache-2.0
// tenon/context.h - the entry point: a configuration, the backends it loads, and their devices.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <tenon/api.h>
#include <tenon/config.h>
#include <tenon/device_name.h>
#include <tenon/graph.h>
#include <tenon/load_report.h>
#include <tenon/tensor.h>

namespace tenon {

namespace exec {
struct DeviceState;
struct ContextState;
}  // namespace exec

/// Description of a device in list_devices and reports.
struct DeviceInfo {
  std::string name;   ///< canonical: "openblas:0"
  std::string alias;  ///< "cpu:0", "gpu:1"; empty for accelerators
  std::string backend;
  DeviceKind kind = DeviceKind::cpu;
  std::string product;      ///< "AMD EPYC ...", "NVIDIA H200"
  std::string identity;     ///< stable across runs: PCI address, UUID, "host"
  std::string description;  ///< libraries, instruction set
  std::uint64_t memory_size_bytes = 0, memory_free_bytes = 0;
  std::uint64_t max_allocation_size_bytes = 0;  ///< of one tensor; 0: as much as it has memory
  std::uint32_t compute_major = 0, compute_minor = 0;  ///< GPUs
  std::uint32_t clock_khz = 0;                         ///< 0: unknown
  std::uint32_t flags = 0;                             ///< TENON_DEVICE_*
  std::uint64_t alignment_bytes = 1;                   ///< of its allocations
  std::uint64_t operand_alignment_bytes = 1;           ///< of operands, if more than their dtype's
  std::vector<DType> dtypes;                           ///< that it computes with
  std::vector<std::string> ops;                        ///< "Softmax-13", as reported by its backend

  /// Whether it computes with the dtype.
  bool holds(DType dtype) const {
    return std::find(dtypes.begin(), dtypes.end(), dtype) != dtypes.end();
  }
};

/// Memory of one device that a context's programs and tensors use.
struct MemoryUse {
  std::uint64_t live_size_bytes = 0;      ///< in use by tensors, plans and programs
  std::uint64_t peak_size_bytes = 0;      ///< maximum of live_size_bytes
  std::uint64_t reserved_size_bytes = 0;  ///< allocated on the device: in use or cached for reuse
  /// limit of reserved_size_bytes over all contexts of the process; 0: none
  std::uint64_t limit_size_bytes = 0;
  std::uint64_t allocations = 0;         ///< requests of the runtime
  std::uint64_t device_allocations = 0;  ///< requests that reached the device
};

/// An open device. Copies share it; it closes with the last copy.
/// Threads  any. In a child of fork(), a device that the parent opened fails with FORKED unless it
///          is a CPU with inline streams; a context created in the child has its own devices.
class TENON_API Device {
 public:
  /// For the runtime's own use; users get devices from a Context.
  explicit Device(std::shared_ptr<exec::DeviceState> state) : state_(std::move(state)) {}
  const std::string& name() const;  ///< "openblas:0"
  const DeviceInfo& info() const;   ///< the entry in Context::devices()
  /// Uninitialised device memory, dense. Errors: OUT_OF_MEMORY with requested, live and peak bytes.
  Tensor empty(DType dtype, const Shape& shape) const;
  /// Dense zeros in device memory. Errors: those of empty.
  Tensor zeros(DType dtype, const Shape& shape) const;
  /// Uninitialised dense host memory that this device can copy without staging; use it with
  /// copy_async. Errors: OUT_OF_MEMORY.
  Tensor empty_pinned(DType dtype, const Shape& shape) const;
  /// Bytes in use by this device's tensors, plans and programs.
  std::uint64_t live_size_bytes() const;
  /// Maximum of live_size_bytes().
  std::uint64_t peak_size_bytes() const;
  /// Memory statistics of this handle's context.
  MemoryUse memory() const;
  /// Returns cached memory that is not in use to the device.
  void trim() const;
  /// True if both handles refer to the same device.
  bool operator==(const Device& other) const { return state_ == other.state_; }
  /// For the runtime's own use.
  const std::shared_ptr<exec::DeviceState>& state() const { return state_; }

 private:
  std::shared_ptr<exec::DeviceState> state_;
};

/// Statistics of copies in one direction.
struct CopyCounts {
  std::uint64_t copies = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t duration_ns = 0;  ///< see ContextProfile
};

/// Copies on a context's devices since it was created, by tensors, programs and streams. Durations
/// are those of the copies themselves where known: the time the caller waited for inline and
/// synchronous copies, the device's measurement for copy_async once the stream has been
/// synchronised. Copies that a program submits to an asynchronous device are counted with their
/// bytes but without a duration.
struct ContextProfile {
  CopyCounts host_to_device;
  CopyCounts device_to_host;
  CopyCounts device_to_device;
};

/// A struct of the application that backends may ask for by name and version (tenon_host.extension of
/// the plugin ABI), such as functions that a vendor's backend calls. It has to live as long as the
/// context, and as the devices, tensors and programs made from it.
struct HostExtension {
  std::string name;  ///< "com.example.counters"
  std::uint32_t version = 0;
  const void* table = nullptr;
};

/// Loaded backends and their devices. There is no global context: create two for two configurations
/// in one process. Objects created from a context keep alive what they need; copies are handles on
/// the same context.
/// Threads  const members may be called from any thread. After fork() a child creates its own
///          context; see Device for the parent's devices. A context that has run something has
///          threads of its own, which end with its last handle. On Windows that has to be destroyed
///          before the process ends or the DLL that keeps it is unloaded: by then the system has
///          stopped the threads, and a context in static storage of a DLL would wait for them.
class TENON_API Context {
 public:
  /// Loads backends as configured. `plugins` and `command_line_plugins` (files or folders) are
  /// searched before all other places. A candidate that another place has and that is not usable
  /// does not stop the others, with the limits that docs/backends.md states under "Probing": see
  /// load_report(). Backends may ask for `extensions`. `plugin_origins`: where each of `plugins` comes
  /// from, in reports; empty: "API". Errors: an invalid configuration; a path of `plugins` without an
  /// origin of its own that does not exist, or is a file that is not usable; no usable backend.
  explicit Context(const Config& config = resolve_config(),
                   const std::vector<std::filesystem::path>& plugins = {},
                   const std::vector<std::filesystem::path>& command_line_plugins = {},
                   const std::vector<HostExtension>& extensions = {},
                   const std::vector<std::string>& plugin_origins = {});
  /// For the runtime's own use: another handle on the same context.
  explicit Context(std::shared_ptr<exec::ContextState> state) : state_(std::move(state)) {}
  ~Context();

  /// The resolved configuration.
  const Config& config() const;
  /// In the order of `backends.use`, or by priority; virtual devices take the place of the device
  /// they divide.
  const std::vector<DeviceInfo>& devices() const;
  /// Opens a device by any accepted name; returns the same device each time. Errors:
  /// DEVICE_NOT_FOUND with the list of devices.
  Device device(const std::string& name) const;
  /// The device of the innermost PlacementScope of this thread, else the configured `device:`; with
  /// soft_placement, the next best one and a warning if that one is missing. Programs and immediate
  /// ops that name no device use it.
  Device default_device() const;
  /// The name of the first GPU, or nothing. Never throws.
  std::optional<std::string> default_gpu() const noexcept;
  /// Every candidate file, the loading stage it reached, and why it was not loaded. Lives as long as
  /// the context.
  const LoadReport& load_report() const;
  /// Replaces a backend by its file as it is now, without a restart: a plugin that was built again,
  /// or updated. The file is opened as a copy, so that the library that is mapped, and may not be
  /// unloaded, does not stand for it. Put the new file in place by renaming, as installers and
  /// linkers do: to write into a library that is mapped ends the process. If anything fails, the
  /// backend stays as it was.
  /// Its devices get new entries in devices(), whose references end; those of others stay open.
  /// Errors   INVALID_ARGUMENT: no backend of that name is in use, it is part of the program, or
  ///          something of it is alive (tensors, programs, models, streams, Device objects): the
  ///          text says what holds which device. Otherwise why the new file cannot be loaded.
  /// Threads  no other call on this context at the same time.
  void reload_backend(const std::string& name);
  /// What a backend offers besides the plugin ABI: the struct of this name and version that its
  /// documentation describes, or null if it has none. It lives as long as the backend, which the
  /// context and its devices, tensors and programs keep, and reload_backend ends.
  /// Errors   DEVICE_NOT_FOUND: no backend of that name is in use.
  /// Threads  any, where the struct says nothing else about its functions.
  const void* backend_extension(const std::string& backend, const std::string& name,
                                std::uint32_t version) const;
  /// Copy statistics so far.
  ContextProfile profile() const;
  /// "Device mapping:" and a line for each device: name, alias, product, description. Logged at
  /// creation if log_device_placement is set.
  std::string device_mapping() const;
  /// For the runtime's own use.
  const std::shared_ptr<exec::ContextState>& state() const { return state_; }

  /// Immediate mode: runs one op on tensors. Operands are copied to `device` if necessary; results
  /// are new tensors there. The program is cached (with those of tenon/tensor_functions.h at most
  /// 256) and reused for equal op, attributes, dtypes and shapes. With a mixed precision, products
  /// are rounded to 16 bits and returned as f32.
  std::vector<Tensor> apply(const Device& device, tenon_op op, const std::vector<Tensor>& inputs,
                            const Attributes& attributes = {},
                            const NodeOptions& options = {}) const;
  /// The same on default_device().
  std::vector<Tensor> apply(tenon_op op, const std::vector<Tensor>& inputs,
                            const Attributes& attributes = {},
                            const NodeOptions& options = {}) const;

 private:
  std::shared_ptr<exec::ContextState> state_;
};

/// While it lives, immediate ops and newly created programs of its thread that name no device use
/// this one. Scopes nest, the innermost wins; ops with a device of their own (DeviceScope,
/// PlacementRule) keep it.
///
///   const PlacementScope on_gpu(context, "gpu:0");
///
/// Threads  destroy it on the thread that created it, in reverse order of creation.
class TENON_API PlacementScope {
 public:
  /// Errors: DEVICE_NOT_FOUND with the list of devices.
  PlacementScope(const Context& context, const std::string& device);
  ~PlacementScope();
  PlacementScope(const PlacementScope&) = delete;
  PlacementScope& operator=(const PlacementScope&) = delete;
};

/// The devices that a default configuration finds; a complete installation has at least one.
/// Errors: those of Context. Threads: any.
TENON_API std::vector<DeviceInfo> list_devices();

/// The name of the first GPU that a default configuration finds; empty without one or without a
/// usable installation. Never throws. Threads: any.
TENON_API std::string default_gpu() noexcept;

}  // namespace tenon
