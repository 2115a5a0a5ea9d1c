// SPDX-License-Identifier: Apache-2.0
// exec/packed_parameters.h - parameters as a backend packs them, which all programs of a store share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>

#include <tenon/backend.h>

namespace tenon {
class ParameterStore;
}

namespace tenon::exec {

struct DeviceState;

/// The packed copies of one parameter in one form, on one device.
/// Owner    the programs whose plans read it.
/// Threads  any.
class PackedParameter {
 public:
  /// `handle` was created by the pack block of the device's backend. Its memory is accounted for if `reserved_bytes` is not 0.
  PackedParameter(std::shared_ptr<DeviceState> device, std::shared_ptr<const ParameterStore> store, tenon_packed* handle,
                  std::uint64_t reserved_bytes);
  ~PackedParameter();
  PackedParameter(const PackedParameter&) = delete;
  PackedParameter& operator=(const PackedParameter&) = delete;

  tenon_packed* handle() const { return handle_; }

 private:
  const std::shared_ptr<DeviceState> device_;
  const std::shared_ptr<const ParameterStore> store_;  ///< so that no other store has its address, by which it is found
  tenon_packed* const handle_;
  const std::uint64_t reserved_bytes_;
};

/// The packed parameters of one device, as long as programs hold them.
/// Threads  any.
class PackedParameters {
 public:
  /// The one with that store, parameter and form, made by make() if there is none.
  template <class Make>
  std::shared_ptr<PackedParameter> get(const ParameterStore& store, const std::string& name, const std::string& form, const Make& make) {
    const std::lock_guard lock(mutex_);
    std::erase_if(parameters_, [](const auto& entry) { return entry.second.expired(); });
    std::weak_ptr<PackedParameter>& kept = parameters_[{&store, name, form}];
    std::shared_ptr<PackedParameter> found = kept.lock();
    if (found == nullptr) kept = found = make();
    return found;
  }

 private:
  using Key = std::tuple<const ParameterStore*, std::string, std::string>;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<PackedParameter>> parameters_;
};

/// Whether the backend of the device offers to share packed operands.
bool offers_packing(const DeviceState& device);

/// The form in which a plan reads a parameter packed.
struct ParameterPacking {
  std::string form;  ///< tenon_packing.key; empty: the plan reads it as it is
  std::uint64_t size_bytes = 0;
};
/// How the plan of a graph reads `value`.
/// Errors  the backend's, or of an answer that makes no sense.
ParameterPacking describe_packing(DeviceState& device, const tenon_graph& graph, const tenon_plan_options& options, std::uint32_t value);
/// Packed copies of a parameter, which the plan of this graph may read. `reserves`: their memory is accounted for.
/// Errors  the device's memory does not suffice; the backend's.
std::shared_ptr<PackedParameter> make_packed(const std::shared_ptr<DeviceState>& device, std::shared_ptr<const ParameterStore> store,
                                             const tenon_graph& graph, const tenon_plan_options& options, std::uint32_t value,
                                             const std::string& name, std::uint64_t size_bytes, bool reserves);

}  // namespace tenon::exec
