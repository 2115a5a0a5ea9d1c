// SPDX-License-Identifier: Apache-2.0
// exec/program_compiler.h - how compile() makes plans and memory from a final graph (program_addresses.cpp, program_plans.cpp).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tenon/sdk/memory_plan.h>

#include "exec/lower.h"
#include "exec/program_layout.h"
#include "exec/program_state.h"

namespace tenon {

/// The steps of compile() on the final graph, in order. Each value gets an address per device that holds it, a slot; memory shared by plans
/// is laid out last, when all requirements are known.
struct Program::State::Compiler {
  using DevicePointer = std::shared_ptr<DeviceState>;
  /// Where a value is computed or kept.
  struct Origin {
    DevicePointer device;
    std::uint32_t slot;
  };
  /// A piece of a device's arena, used while the parts of its interval run.
  struct Block {
    DevicePointer device;
    std::uint32_t slot;  ///< TENON_NO_INDEX: the workspace of part interval.first
    sdk::Interval interval;
    std::uint64_t alignment;
  };

  State& s;
  const DevicePointer main_device;
  const exec::ProgramLayout layout;
  const std::uint32_t last_part;
  std::map<ValueId, Origin> origin;
  std::vector<bool> donatable;       ///< per update
  std::vector<bool> needed_outside;  ///< per value: needed outside the part that computes it
  std::vector<bool> live_after;      ///< per value: needed after all parts have run
  std::map<std::pair<ValueId, DeviceState*>, std::uint32_t> slot_of;
  std::vector<Block> blocks;
  /// A value at some distance from another slot's address, in bytes.
  struct Offset {
    std::uint32_t slot, base;
    std::uint64_t size;
  };
  std::vector<Offset> offsets;
  /// Operands of collectives that are not computed in place: the part, the value and its slot there.
  struct Operand {
    std::uint32_t part;
    ValueId value;
    std::uint32_t slot;
  };
  std::vector<Operand> copied_operands;
  std::set<std::tuple<DeviceState*, std::string, std::string>> counted_packed;  ///< packed parameters: device, name, form

  Compiler(State& state, DevicePointer main, std::vector<exec::Partition> partitions, bool updates_last)
      : s(state),
        main_device(std::move(main)),
        layout(state.graph, std::move(partitions), updates_last),
        last_part(layout.last_part()),
        needed_outside(state.graph.values().size(), false),
        live_after(state.graph.values().size(), false) {}

  // The steps, in their order.

  /// A parameter lives where it was created, else where it is first read or computed; a prologue output where it is computed.
  void place_parameters();
  void compute_liveness();
  /// Places the operands of each sum over ranks one after the other, where their producers write them if nothing else reads them; the
  /// results replace them.
  void place_collectives();
  /// Places outputs, which their producer writes directly if possible, and values that one part computes for others.
  void place_results();
  void make_plans(const tenon_plan_options& options);
  /// Copies after all parts have run: outputs first, then parameters; updates that read other parameters go through a temporary.
  void plan_last_copies();
  /// One arena per device for workspaces and for values between parts.
  void lay_out_arenas();

  // Addresses.

  static std::uint64_t bytes_of(const ValueInfo& info) { return static_cast<std::uint64_t>(info.shape.count() * size_of(info.dtype)); }
  std::uint32_t new_slot(std::uint64_t address) {
    s.slots.push_back(address);
    return static_cast<std::uint32_t>(s.slots.size() - 1);
  }
  std::uint32_t arena_slot(const DevicePointer& device, std::uint64_t size, std::uint32_t first, std::uint32_t last);
  void keep_at(ValueId v, const Origin& place);
  std::set<ValueId> sent_values() const;
  std::uint32_t input_slot(ValueId v, const DevicePointer& device);
  /// The slot where a part reads a value; adds a copy before the part if the value is computed elsewhere.
  std::uint32_t slot_for(ValueId v, std::uint32_t part);
  /// The slot where a copy after the last part reads a value, which need not come from a part.
  Origin source_of(ValueId v);

  // Plans.

  /// Whether the operands of a node are those that other ranks get.
  bool is_sent(const NodeInfo& node) const;
  void add_collective(std::uint32_t p);
  /// The pieces of a broadcast: on the root its operands, elsewhere its results.
  void add_broadcast(std::uint32_t p, Collective& collective);
  /// Hands parameters over packed where the backend offers it, so that programs of the same store share the copies. Parameters that this
  /// program computes by itself have bytes of their own.
  void share_packed(const DevicePointer& device, exec::AbiGraph& lowered, const tenon_plan_options& options);
  void make_plan(Part& part, const std::string& name, const tenon_graph& lowered, const tenon_plan_options& options, std::uint32_t p);
};

}  // namespace tenon
