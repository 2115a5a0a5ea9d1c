// SPDX-License-Identifier: Apache-2.0
// packed.h - packed operands: how the kernels of a graph read a value, and the copies, which plans may share.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/backend.h>
#include <tenon/sdk/device.h>
#include <tenon/sdk/kernel.h>
#include <tenon/sdk/shared_mutex.h>

#include "device_blocks.h"
#include "graph_model.h"
#include "handles.h"

namespace tenon::sdk {

/// How the kernels of a graph read one value packed or converted. Kernels that read it in the same form read the same copy.
struct Packing {
  /// Input `input` of node `node` reads the copy that begins `offset` bytes after the first one.
  struct Read {
    std::uint32_t node, input;
    std::uint64_t offset;
  };
  /// Value `value` of GraphModel::conversions, which kernels read as it is, begins `offset` bytes after the first copy.
  struct Converted {
    std::uint32_t value;
    std::uint64_t offset;
  };
  std::vector<Read> reads;   ///< in the order of the nodes
  std::vector<Read> copies;  ///< the first read of each copy
  std::vector<Converted> converted;
  std::uint64_t size_bytes = 0;  ///< of all copies
  std::string key;               ///< of tenon_packing: names the forms, whatever the graph
  bool shareable = true;         ///< false: a kernel has no Traits::pack_form, so that the key means nothing in another graph
};

/// The values that the kernels of an arranged graph read packed or converted, by index.
std::map<std::uint32_t, Packing> packings_of(const GraphModel& graph);

/// The packed copies of one value. Those of a parameter are written and read under a lock, which parameters that were made together share.
class Packed {
 public:
  /// Of a parameter, which executions pack.
  Packed(Device& device, MemoryStats& memory_stats, const Packing& packing, std::shared_ptr<SharedMutex> lock);
  /// Of a constant of `graph`: packs its bytes, and waits until that is done.
  Packed(Device& device, MemoryStats& memory_stats, const Packing& packing, const GraphModel& graph, const Value& constant);

  const Device& device() const { return device_; }
  const std::string& key() const { return key_; }
  std::uint64_t size_bytes() const { return blocks_.size_bytes(); }
  std::uint64_t address() const { return address_; }
  /// Of a parameter. Whoever takes several takes them in the order of their addresses.
  SharedMutex& lock() const { return *lock_; }

  bool has(std::uint64_t epoch) const { return epoch_ == epoch; }
  /// Makes work that is then submitted to the stream wait for a packing that was submitted to another one.
  void wait_on(tenon_stream& stream);
  /// Calls pack_all(), which submits the packing of a parameter's copies to the stream. If it throws, they are of no epoch.
  template <class PackAll>
  void pack(std::uint64_t epoch, tenon_stream& stream, const PackAll& pack_all) {
    epoch_.reset();
    pack_all();
    if (packed_ != nullptr) packed_->record(*stream.stream);
    stream_id_ = stream.id;
    epoch_ = epoch;
  }

 private:
  Device& device_;
  const std::string key_;
  DeviceBlocks blocks_;
  const std::uint64_t address_;
  const std::shared_ptr<SharedMutex> lock_;
  std::optional<std::uint64_t> epoch_;  ///< of the parameters that were packed last
  std::uint64_t stream_id_ = 0;         ///< where they were packed
  std::mutex event_mutex_;
  std::unique_ptr<Event> packed_;  ///< when they have been; null on a device whose streams work inline
};

/// pack->describe. Throws UNSUPPORTED for a graph that `supports` refuses.
void describe_packings(Device& device, const tenon_graph& graph, const tenon_plan_options& options, const KernelRow* rows,
                       tenon_packing* out_packings, std::uint32_t packing_stride);
/// pack->create. Throws the same, and INVALID_ARGUMENT for a value that is not described.
std::vector<std::shared_ptr<Packed>> make_packed(Device& device, MemoryStats& memory_stats, const tenon_graph& graph,
                                                 const tenon_plan_options& options, const KernelRow* rows,
                                                 std::span<const std::uint32_t> values);

}  // namespace tenon::sdk

struct tenon_packed {
  std::shared_ptr<tenon::sdk::Packed> packed;
};
