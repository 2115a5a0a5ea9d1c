// SPDX-License-Identifier: Apache-2.0
// tenon/device_name.h - device names: their syntax, and the device that each one means. Threads:
// any.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <tenon/api.h>

namespace tenon {

/// A parsed device name.
///
///   auto                                           the first device in the order of `backends.use`
///   cpu, cpu:0, gpu:1                              the N-th CPU or GPU in that order
///   cuda:1, openblas                               a device of one backend
///   cuda:uuid=GPU-0123..., opencl:pci=0000:41:00.0 the device with this identity, wherever it is in
///                                                  the order; `tenon devices` shows identities
///   /device:GPU:0, /gpu:0, /job:localhost/replica:0/task:0/device:CPU:0  TensorFlow's forms
///
/// Names are not case-sensitive.
struct TENON_API DeviceName {
  /// The form of the name.
  enum class Kind { automatic, alias_cpu, alias_gpu, backend };

  Kind kind = Kind::automatic;
  std::string backend;   ///< for Kind::backend: "cuda"
  int index = -1;        ///< -1: not given, which means 0, or any index if there is an identity
  std::string identity;  ///< "uuid=gpu-0123...": lower case; empty: the index selects
  std::string typed;     ///< as the user wrote it

  /// The index, or 0 if none was given.
  int index_or_zero() const { return index < 0 ? 0 : index; }
  /// "auto", "cpu:0", "gpu:1", "cuda:uuid=gpu-0123...": lower case, always with an index or an
  /// identity.
  std::string str() const;
};

/// Errors  INVALID_ARGUMENT with the text, the reason and what was expected.
TENON_API DeviceName parse_device_name(std::string_view text);

/// The kind of processor.
enum class DeviceKind { cpu, gpu, accelerator };

/// A device that can be used.
struct AvailableDevice {
  std::string backend;
  int index = 0;
  DeviceKind kind = DeviceKind::cpu;
  /// What identifies the device across runs: "uuid=GPU-0123... pci=0000:41:00.0", or a name.
  std::string identity = {};

  /// "openblas:0": the canonical name.
  std::string name() const { return backend + ":" + std::to_string(index); }
};

// The functions below take the devices in the order of `backends.use`, and by index within a
// backend.

/// "cpu:1" or "gpu:0": the alias of devices[position]; "" for an accelerator, which has none.
TENON_API std::string alias_of(std::span<const AvailableDevice> devices, std::size_t position);

/// "openblas:0 (cpu:0), reference:0 (cpu:1)"; "none" without devices.
TENON_API std::string describe(std::span<const AvailableDevice> devices);

/// Position of the device that the name refers to; `auto` is the first.
/// Errors  DEVICE_NOT_FOUND: "device 'gpu:1' not found; available: openblas:0 (cpu:0), reference:0
///         (cpu:1)". For a name with an identity the text lists the identities of the devices.
TENON_API std::size_t find_device(const DeviceName& name, std::span<const AvailableDevice> devices);
TENON_API std::size_t find_device(std::string_view name, std::span<const AvailableDevice> devices);

/// The device in messages: "cuda:1", or "cuda:1 (gpu:0)" if the user wrote another name.
TENON_API std::string shown_name(const DeviceName& name, const AvailableDevice& device);

}  // namespace tenon
