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

/// An open device. Copies share it; it closes with the last of them.
/// Threads  any.
class Device {
 public:
  explicit Device(std::shared_ptr<exec::DeviceState> state) : state_(std::move(state)) {}
  const std::string& name() const;  ///< "openblas:0"
  const DeviceInfo& info() const;
  /// Uninitialised device memory, dense. Errors: OUT_OF_MEMORY with requested, live and peak bytes.
  Tensor empty(DType dtype, const Shape& shape) const;
  /// Bytes this device's tensors, plans and programs hold now, and the most they held.
  std::uint64_t live_size_bytes() const;
  std::uint64_t peak_size_bytes() const;
  bool operator==(const Device& other) const { return state_ == other.state_; }
  const std::shared_ptr<exec::DeviceState>& state() const { return state_; }

 private:
  std::shared_ptr<exec::DeviceState> state_;
};

/// Loaded backends and their devices. There is no global one: whoever wants two configurations in one process makes two contexts.
/// Objects made from it keep what they need of it alive.
/// Threads  const members from any thread.
class Context {
 public:
  /// Loads backends as the configuration says; `plugins` (files or folders) come before every other search place. One bad candidate
  /// never stops the others: see load_report(). Errors: an impossible configuration, or no healthy backend at all.
  explicit Context(const Config& config = resolve_config(), const std::vector<std::filesystem::path>& plugins = {},
                   const std::vector<std::filesystem::path>& command_line_plugins = {});
  ~Context();

  const Config& config() const;
  /// In the order of `backends.use`, or of priority; virtual devices in the place of what they are made of.
  const std::vector<DeviceInfo>& devices() const;
  /// Opens by any accepted name; the same device each time. Errors: DEVICE_NOT_FOUND listing what there is.
  Device device(const std::string& name) const;
  /// The one that `device:` names. With soft_placement, the next best one and a warning.
  Device default_device() const;
  /// The name of the first GPU; nothing without one. Never throws.
  std::optional<std::string> default_gpu() const noexcept;
  /// Every candidate file, how far it came and why no further.
  const loader::Result& load_report() const;
  const std::shared_ptr<exec::ContextState>& state() const { return state_; }

  /// Immediate mode: one op on tensors, now. Operands are brought to `device`; results are new tensors there. The one-node plan is
  /// kept and reused for equal op, attributes, dtypes and shapes; at most 256 of them.
  std::vector<Tensor> apply(const Device& device, tenon_op op, const std::vector<Tensor>& inputs, const Attributes& attributes = {},
                            const NodeOptions& options = {}) const;

 private:
  std::shared_ptr<exec::ContextState> state_;
};

/// The devices a default configuration finds. Always at least one with a complete installation.
std::vector<DeviceInfo> list_devices();

}  // namespace tenon
