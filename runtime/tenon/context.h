// tenon/context.h - where everything starts: a configuration, the backends it loaded, their devices.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <tenon/config.h>
#include <tenon/device_name.h>
#include <tenon/graph.h>
#include <tenon/tensor.h>

namespace tenon {

namespace exec {
struct DeviceState;
struct ContextState;
}  // namespace exec
namespace loader {
struct Result;
}

/// What list_devices and the reports say about a device.
struct DeviceInfo {
  std::string name;   ///< canonical: "openblas:0"
  std::string alias;  ///< "cpu:0", "gpu:1"; empty for accelerators
  std::string backend;
  DeviceKind kind = DeviceKind::cpu;
  std::string product;      ///< "AMD EPYC ...", "NVIDIA H200"
  std::string identity;     ///< stable across runs: PCI address, UUID, "host"
  std::string description;  ///< libraries, instruction set
  std::uint64_t memory_size_bytes = 0, memory_free_bytes = 0;
  std::uint32_t compute_major = 0, compute_minor = 0;  ///< GPUs
  std::uint32_t clock_khz = 0;                         ///< 0: unknown
  std::uint32_t flags = 0;                             ///< TENON_DEVICE_*
  std::vector<DType> dtypes;                           ///< that its memory may hold
  std::vector<std::string> ops;                        ///< "Softmax-13", as its backend states them
};

/// What a context's programs and tensors take of one device.
struct MemoryUse {
  std::uint64_t live_size_bytes = 0;      ///< held by tensors, plans and programs
  std::uint64_t peak_size_bytes = 0;      ///< the most that ever was
  std::uint64_t reserved_size_bytes = 0;  ///< taken from the device: what is held, and what is kept for reuse
  std::uint64_t limit_size_bytes = 0;     ///< of `reserved` over all contexts of the process; 0: none
  std::uint64_t allocations = 0;          ///< pieces asked for
  std::uint64_t device_allocations = 0;   ///< of these, how many the device was asked for
};

/// An open device. Copies share it; it closes with the last of them.
/// Threads  any. In a child of fork() a device that the parent opened refuses with FORKED, unless it is a CPU whose streams are inline; a
///          context made in the child has devices of its own.
class Device {
 public:
  /// For the runtime's own use: users get devices from a Context.
  explicit Device(std::shared_ptr<exec::DeviceState> state) : state_(std::move(state)) {}
  const std::string& name() const;  ///< "openblas:0"
  const DeviceInfo& info() const;   ///< as the context lists it
  /// Uninitialised device memory, dense. Errors: OUT_OF_MEMORY with requested, live and peak bytes.
  Tensor empty(DType dtype, const Shape& shape) const;
  /// Uninitialised host memory, dense, that this device copies from and to without staging: what copy_async wants on the host's side.
  /// Errors: OUT_OF_MEMORY.
  Tensor empty_pinned(DType dtype, const Shape& shape) const;
  /// Bytes this device's tensors, plans and programs hold now.
  std::uint64_t live_size_bytes() const;
  /// The most they held.
  std::uint64_t peak_size_bytes() const;
  /// The same and more, for this handle's context.
  MemoryUse memory() const;
  /// Gives memory back to the device that is kept for reuse and that nobody holds.
  void trim() const;
  /// True for handles on one device.
  bool operator==(const Device& other) const { return state_ == other.state_; }
  /// For the runtime's own use.
  const std::shared_ptr<exec::DeviceState>& state() const { return state_; }

 private:
  std::shared_ptr<exec::DeviceState> state_;
};

/// Copies in one direction.
struct CopyCounts {
  std::uint64_t copies = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t duration_ns = 0;  ///< see ContextProfile
};

/// What a context's devices copied since it was made, by tensors, programs and streams. Times are those of the copies themselves where they
/// are known: of inline and synchronous copies as the caller waited for them, of copy_async as the device measured them, once the stream
/// has been synchronised. Copies that a program gives to an asynchronous device count with their bytes alone.
struct ContextProfile {
  CopyCounts host_to_device;
  CopyCounts device_to_host;
  CopyCounts device_to_device;
};

/// Loaded backends and their devices. There is no global one: whoever wants two configurations in one process makes two contexts.
/// Objects made from it keep what they need of it alive; copies of it are handles on the same one.
/// Threads  const members from any thread. After fork() a child makes a context of its own; see Device for what the parent's still does.
class Context {
 public:
  /// Loads backends as the configuration says; `plugins` (files or folders) come before every other search place. One bad candidate
  /// never stops the others: see load_report(). Errors: an impossible configuration, or no healthy backend at all.
  explicit Context(const Config& config = resolve_config(), const std::vector<std::filesystem::path>& plugins = {},
                   const std::vector<std::filesystem::path>& command_line_plugins = {});
  ~Context();

  /// As resolved.
  const Config& config() const;
  /// In the order of `backends.use`, or of priority; virtual devices in the place of what they are made of.
  const std::vector<DeviceInfo>& devices() const;
  /// Opens by any accepted name; the same device each time. Errors: DEVICE_NOT_FOUND listing what there is.
  Device device(const std::string& name) const;
  /// The one that the innermost PlacementScope of this thread names, else `device:` of the configuration; with soft_placement, the next
  /// best one and a warning. Programs and immediate ops that name no device go there.
  Device default_device() const;
  /// The name of the first GPU; nothing without one. Never throws.
  std::optional<std::string> default_gpu() const noexcept;
  /// Every candidate file, how far it came and why no further.
  const loader::Result& load_report() const;
  /// Bytes and time of copies so far.
  ContextProfile profile() const;
  /// "Device mapping:" and a line for each device: name, alias, product, description. log_device_placement writes it when the context is
  /// made.
  std::string device_mapping() const;
  /// For the runtime's own use.
  const std::shared_ptr<exec::ContextState>& state() const { return state_; }

  /// Immediate mode: one op on tensors, now. Operands are brought to `device`; results are new tensors there. The one-node plan is
  /// kept and reused for equal op, attributes, dtypes and shapes; at most 256 of them. Under a mixed precision products come back rounded
  /// to 16 bits, as f32.
  std::vector<Tensor> apply(const Device& device, tenon_op op, const std::vector<Tensor>& inputs, const Attributes& attributes = {},
                            const NodeOptions& options = {}) const;
  /// The same on default_device().
  std::vector<Tensor> apply(tenon_op op, const std::vector<Tensor>& inputs, const Attributes& attributes = {},
                            const NodeOptions& options = {}) const;

 private:
  std::shared_ptr<exec::ContextState> state_;
};

/// While it lives, what its thread runs without naming a device runs on this one: immediate ops, and programs when they are made. Scopes
/// nest, the inner one wins; ops that name a device of their own (DeviceScope, PlacementRule) keep it.
///
///   const PlacementScope on_gpu(context, "gpu:0");
///
/// Threads  ends on the thread that made it, in the reverse order of making.
class PlacementScope {
 public:
  /// Errors: DEVICE_NOT_FOUND listing what there is.
  PlacementScope(const Context& context, const std::string& device);
  ~PlacementScope();
  PlacementScope(const PlacementScope&) = delete;
  PlacementScope& operator=(const PlacementScope&) = delete;
};

/// The devices a default configuration finds. Always at least one with a complete installation.
/// Errors: those of Context. Threads: any.
std::vector<DeviceInfo> list_devices();

/// The name of the first GPU that a default configuration finds; empty without one, or without a usable installation. Never throws.
/// Threads: any.
std::string default_gpu() noexcept;

}  // namespace tenon
