// SPDX-License-Identifier: Apache-2.0
// exec/packed_parameters.h - parameters as a backend packs them, which all programs of a store share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

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
  /// `handle` was created by the pack block of the device's backend. `reserved_bytes`: of its memory, as accounted for.
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
using PackedList = std::vector<std::shared_ptr<PackedParameter>>;

/// A parameter that the plan of a graph reads packed.
struct ParameterPacking {
  std::uint32_t value;  ///< its index in the graph
  std::string name;
  std::string form;  ///< tenon_packing.key
  std::uint64_t size_bytes;
};

/// The packed parameters of one device, as long as programs hold them.
/// Threads  any.
class PackedParameters {
 public:
  /// Those that are wanted, for this store; make(missing) makes the ones that there are not, in that order.
  template <class Make>
  PackedList get(const ParameterStore& store, const std::vector<ParameterPacking>& wanted, const Make& make) {
    const std::lock_guard lock(mutex_);
    std::erase_if(parameters_, [](const auto& entry) { return entry.second.expired(); });
    PackedList found;
    std::vector<ParameterPacking> missing;
    for (const ParameterPacking& packing : wanted) {
      const auto kept = parameters_.find({&store, packing.name, packing.form});
      found.push_back(kept == parameters_.end() ? nullptr : kept->second.lock());
      if (found.back() == nullptr) missing.push_back(packing);
    }
    if (missing.empty()) return found;
    PackedList made = make(missing);
    for (std::size_t i = 0, m = 0; i < found.size(); ++i) {
      if (found[i] != nullptr) continue;
      found[i] = std::move(made[m++]);
      parameters_[{&store, wanted[i].name, wanted[i].form}] = found[i];
    }
    return found;
  }

 private:
  using Key = std::tuple<const ParameterStore*, std::string, std::string>;
  std::mutex mutex_;
  std::map<Key, std::weak_ptr<PackedParameter>> parameters_;
};

/// How the plan of a graph reads its values packed, by index; an empty key: as they are. Empty if the device's backend shares nothing.
/// Errors  the backend's, or of an answer that makes no sense.
std::vector<tenon_packing> describe_packings(DeviceState& device, const tenon_graph& graph, const tenon_plan_options& options);
/// Packed copies of these parameters, which the plan of the graph may read. `reserves`: their memory is accounted for.
/// Errors  the device's memory does not suffice; the backend's.
PackedList make_packed(const std::shared_ptr<DeviceState>& device, const std::shared_ptr<const ParameterStore>& store,
                       const tenon_graph& graph, const tenon_plan_options& options, const std::vector<ParameterPacking>& parameters,
                       bool reserves);

}  // namespace tenon::exec
