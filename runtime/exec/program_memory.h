// SPDX-License-Identifier: Apache-2.0
// exec/program_memory.h - the memory of a program: allocated and counted, or only counted.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <tenon/program.h>
#include <tenon/tensor.h>

#include "exec/device_state.h"

namespace tenon::exec {

/// Limit of each kind of memory of one plan, so that the sum of a few fits 64 bits.
inline constexpr std::uint64_t max_plan_bytes = std::uint64_t{1} << 60;

/// Threads  one at a time.
class ProgramMemory {
 public:
  enum class Mode { allocate, count };
  /// What memory is used for.
  using Use = std::uint64_t MemoryPlan::*;

  explicit ProgramMemory(Mode mode) : mode_(mode) {}
  Mode mode() const { return mode_; }
  /// False: there is no memory behind the addresses.
  bool allocates() const { return mode_ == Mode::allocate; }

  /// Memory that lives as long as the program; address 0 if it is only counted.
  std::uint64_t keep(const std::shared_ptr<DeviceState>& device, std::uint64_t size_bytes, Use use) {
    count(*device, size_bytes, use);
    if (!allocates()) return 0;
    kept_.push_back(Device(device).empty(DType::u8, {static_cast<std::int64_t>(size_bytes)}));
    return kept_.back().address();
  }
  /// Memory that something else allocates.
  void count(const DeviceState& device, std::uint64_t size_bytes, Use use) { on(device.info.name).*use += size_bytes; }
  void count_parameter(const DeviceState& device, const std::string& name, std::uint64_t size_bytes) {
    on(device.info.name).parameters[name] = size_bytes;
  }
  void count_packed_parameter(const DeviceState& device, const std::string& name, std::uint64_t size_bytes) {
    on(device.info.name).packed_parameters[name] += size_bytes;
  }
  /// Adds the memory of a program whose outputs this program reads in place of computing them.
  void add_prologue(const ProgramMemory& prologue) {
    for (const MemoryPlan& from : prologue.plans_) {
      MemoryPlan& to = on(from.device);
      to.parameters.insert(from.parameters.begin(), from.parameters.end());
      to.packed_parameters.insert(from.packed_parameters.begin(), from.packed_parameters.end());
      to.workspace_size_bytes += from.workspace_size_bytes;
      to.packed_size_bytes += from.packed_size_bytes + from.outputs_size_bytes;
    }
  }

  const std::vector<MemoryPlan>& plans() const { return plans_; }
  std::uint64_t total(Use use) const {
    std::uint64_t sum = 0;
    for (const MemoryPlan& plan : plans_) sum += plan.*use;
    return sum;
  }
  std::uint64_t packed_parameters_size_bytes() const {
    std::uint64_t sum = 0;
    for (const MemoryPlan& plan : plans_) sum += plan.packed_parameters_size_bytes();
    return sum;
  }

 private:
  MemoryPlan& on(const std::string& device) {
    for (MemoryPlan& plan : plans_) {
      if (plan.device == device) return plan;
    }
    return plans_.emplace_back(MemoryPlan{.device = device});
  }

  Mode mode_;
  std::vector<MemoryPlan> plans_;  ///< in the order of first use
  std::vector<Tensor> kept_;
};

}  // namespace tenon::exec
