// SPDX-License-Identifier: Apache-2.0
// Compiles a graph to a program: passes, placement, plans, copies, memory.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <tenon/sdk/memory_plan.h>
#include <tenon/sdk/rounding.h>

#include "core/log.h"
#include "exec/lower.h"
#include "exec/op_versions.h"
#include "exec/oracle.h"
#include "exec/packed_parameters.h"
#include "exec/placement.h"
#include "exec/program_state.h"
#include "exec/vendor_ops.h"
#include "graph/collectives.h"
#include "graph/passes.h"

namespace tenon {
namespace {

using exec::max_plan_bytes;
using DevicePointer = std::shared_ptr<exec::DeviceState>;

std::uint64_t bytes_of(const ValueInfo& info) {
  return static_cast<std::uint64_t>(info.shape.count() * size_of(info.dtype));
}

/// The layout that compile() determines before it assigns memory.
struct Layout {
  const Graph& graph;
  std::vector<exec::Partition> partitions;
  std::vector<std::uint32_t> part_of;               ///< per node
  std::vector<std::vector<std::uint32_t>> readers;  ///< per value: the parts that read it, ascending, unique
  std::vector<bool> last;                           ///< per node, if updates come last: the last ones of their part

  Layout(const Graph& g, std::vector<exec::Partition> sets, bool updates_last) : graph(g), partitions(std::move(sets)) {
    if (updates_last) {
      last = graph::only_update(graph);
      for (exec::Partition& set : partitions) {
        std::stable_partition(set.nodes.begin(), set.nodes.end(), [&](NodeId n) { return !last[n]; });
      }
    }
    part_of.resize(g.nodes().size());
    readers.resize(g.values().size());
    for (std::uint32_t p = 0; p < partitions.size(); ++p) {
      for (const NodeId n : partitions[p].nodes) {
        part_of[n] = p;
        for (const ValueId v : g.nodes()[n].inputs) {
          if (v != no_id && (readers[v].empty() || readers[v].back() != p)) readers[v].push_back(p);
        }
      }
    }
  }
  bool computed(ValueId v) const { return graph.info(v).kind == ValueKind::computed; }
  std::uint32_t producer(ValueId v) const { return part_of[graph.info(v).producer]; }

  /// Updates whose new value may overwrite the parameter: one per value, computed on the parameter's device after all other reads. If
  /// updates come last, by a node that computes nothing else. `sent`: what other ranks read until the end of the run.
  std::vector<bool> donatable(const std::map<ValueId, DevicePointer>& home, const std::set<ValueId>& sent) const {
    std::set<ValueId> kept_old, taken;
    for (const GraphOutput& output : graph.outputs()) kept_old.insert(output.value);
    for (const GraphUpdate& update : graph.updates()) kept_old.insert(update.value);
    kept_old.insert(sent.begin(), sent.end());
    std::vector<bool> result;
    for (const GraphUpdate& update : graph.updates()) {
      const bool yes = computed(update.value) && graph.nodes()[graph.info(update.value).producer].op != graph::op_all_reduce &&
                       (last.empty() || last[graph.info(update.value).producer]) && !kept_old.contains(update.parameter) &&
                       !taken.contains(update.value) && home.at(update.parameter) == partitions[producer(update.value)].device &&
                       (readers[update.parameter].empty() || readers[update.parameter].back() <= producer(update.value));
      if (yes) taken.insert(update.value);
      result.push_back(yes);
    }
    return result;
  }
};

}  // namespace

/// The steps of compile() on the final graph, in order. Each value gets an address per device that holds it, a slot; memory shared by plans
/// is laid out last, when all requirements are known.
struct Program::State::Compiler {
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
  const Layout layout;
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
        last_part(static_cast<std::uint32_t>(layout.partitions.empty() ? 0 : layout.partitions.size() - 1)),
        needed_outside(state.graph.values().size(), false),
        live_after(state.graph.values().size(), false) {}

  std::uint32_t new_slot(std::uint64_t address) {
    s.slots.push_back(address);
    return static_cast<std::uint32_t>(s.slots.size() - 1);
  }
  std::uint32_t arena_slot(const DevicePointer& device, std::uint64_t size, std::uint32_t first, std::uint32_t last) {
    const std::uint32_t slot = new_slot(0);
    blocks.push_back({device, slot, {first, last, std::max<std::uint64_t>(size, 1)}, device->info.operand_alignment_bytes});
    return slot;
  }
  void keep_at(ValueId v, const Origin& place) {
    origin[v] = place;
    slot_of[{v, place.device.get()}] = place.slot;
  }

  /// A parameter lives where it was created, else where it is first read or computed; a prologue output where it is computed.
  void place_parameters() {
    std::map<ValueId, DevicePointer> home;
    for (ValueId v = 0; v < s.graph.values().size(); ++v) {
      const ValueInfo& info = s.graph.info(v);
      if (info.kind != ValueKind::parameter) continue;
      DevicePointer device = main_device;
      std::uint64_t address = 0;
      if (const Output* made = s.made_by_prologue(info.name); made != nullptr) {
        device = made->device;
        address = s.prologue->slots[made->slot];
      } else {
        if (!layout.readers[v].empty()) device = layout.partitions[layout.readers[v].front()].device;
        if (s.parameters->has(info.name)) device = std::static_pointer_cast<DeviceState>(s.parameters->get(info.name).storage()->device);
        if (s.memory.allocates()) address = s.parameters->create(info.name, Device(device), info.dtype, info.shape).address();
        s.memory.count_parameter(*device, info.name, bytes_of(info));
      }
      home[v] = device;
      keep_at(v, {device, new_slot(address)});
    }
    donatable = layout.donatable(home, sent_values());
    for (std::size_t u = 0; u < s.graph.updates().size(); ++u) {
      if (donatable[u]) keep_at(s.graph.updates()[u].value, origin.at(s.graph.updates()[u].parameter));
    }
  }

  /// Whether the operands of a node are those that other ranks get.
  bool is_sent(const NodeInfo& node) const {
    return node.op == graph::op_broadcast &&
           static_cast<int>(node.attributes.as<graph::BroadcastAttributes>().root) == s.communicator->rank();
  }

  std::set<ValueId> sent_values() const {
    std::set<ValueId> sent;
    for (const NodeInfo& node : s.graph.nodes()) {
      if (is_sent(node)) sent.insert(node.inputs.begin(), node.inputs.end());
    }
    return sent;
  }

  void compute_liveness() {
    for (const GraphOutput& output : s.graph.outputs()) live_after[output.value] = needed_outside[output.value] = true;
    for (const GraphUpdate& update : s.graph.updates()) live_after[update.value] = needed_outside[update.value] = true;
    for (const ValueId v : sent_values()) live_after[v] = true;  // other ranks may read it until the end of the run
    for (ValueId v = 0; v < s.graph.values().size(); ++v) {
      if (!layout.computed(v)) continue;
      for (const std::uint32_t p : layout.readers[v]) needed_outside[v] = needed_outside[v] || p != layout.producer(v);
    }
  }

  /// Places the operands of each sum over ranks one after the other, where their producers write them if nothing else reads them; the
  /// results replace them.
  void place_collectives() {
    for (std::uint32_t p = 0; p < layout.partitions.size(); ++p) {
      const exec::Partition& set = layout.partitions[p];
      if (!set.collective) continue;
      const NodeInfo& node = s.graph.nodes()[set.nodes[0]];
      const DType dtype = s.graph.info(node.inputs[0]).dtype;
      s.collectives.push_back({set.device, dtype});
      if (node.op == graph::op_broadcast) {  // its values stay where they are
        s.collectives.back().root = static_cast<int>(node.attributes.as<graph::BroadcastAttributes>().root);
        continue;
      }
      const std::uint64_t alignment = std::max<std::uint64_t>(sdk::block_alignment, set.device->info.operand_alignment_bytes);
      const std::uint32_t base = new_slot(0);
      std::uint32_t first = p, last = p;
      std::uint64_t size = 0;
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const ValueId v = node.inputs[i], result = node.outputs[i];
        const std::uint32_t slot = new_slot(0);
        offsets.push_back({slot, base, size});
        size = sdk::aligned_size(size + bytes_of(s.graph.info(v)), alignment);
        s.report.bytes_reduced_per_run += bytes_of(s.graph.info(v));
        const bool once = std::ranges::count(node.inputs, v) == 1 && layout.readers[v].size() == 1;
        if (once && layout.computed(v) && !live_after[v] && layout.partitions[layout.producer(v)].device == set.device &&
            !layout.partitions[layout.producer(v)].collective) {
          keep_at(v, {set.device, slot});
          first = std::min(first, layout.producer(v));
        } else {
          copied_operands.push_back({p, v, slot});
        }
        if (result == no_id) continue;
        keep_at(result, {set.device, slot});
        last = std::max(last, live_after[result] || layout.readers[result].empty() ? last_part : layout.readers[result].back());
      }
      if (last == p) last = last_part;  // nothing waits for it before the end of the run
      blocks.push_back({set.device, base, {first, last, std::max<std::uint64_t>(size, 1)}, alignment});
      s.collectives.back().pieces.push_back({base, size / static_cast<std::uint64_t>(size_of(dtype))});
      ++s.report.collectives;
    }
  }

  /// Places outputs, which their producer writes directly if possible, and values that one part computes for others.
  void place_results() {
    for (const GraphOutput& output : s.graph.outputs()) {
      const ValueId v = output.value;
      const ValueInfo& info = s.graph.info(v);
      const bool is_kept = origin.contains(v);
      const bool is_direct = layout.computed(v) && !is_kept;
      const DevicePointer device = is_direct ? layout.partitions[layout.producer(v)].device : is_kept ? origin[v].device : main_device;
      const std::uint32_t slot = new_slot(0);
      s.outputs.push_back({device, slot, info.dtype, info.shape});
      s.memory.count(*device, bytes_of(info), &MemoryPlan::outputs_size_bytes);
      if (is_direct) keep_at(v, {device, slot});
    }
    for (ValueId v = 0; v < s.graph.values().size(); ++v) {
      if (!layout.computed(v) || !needed_outside[v] || origin.contains(v)) continue;
      const std::uint32_t p = layout.producer(v);
      const std::uint32_t last = live_after[v] ? last_part : std::max(p, layout.readers[v].empty() ? p : layout.readers[v].back());
      const DevicePointer& device = layout.partitions[p].device;
      keep_at(v, {device, arena_slot(device, bytes_of(s.graph.info(v)), p, last)});
    }
  }

  std::uint32_t input_slot(ValueId v, const DevicePointer& device) {
    const auto [found, inserted] = slot_of.try_emplace({v, device.get()}, 0);
    if (inserted) {
      found->second = new_slot(0);
      const auto position = static_cast<std::size_t>(std::find(s.inputs.begin(), s.inputs.end(), v) - s.inputs.begin());
      s.input_uses.push_back({position, device, found->second, {}});
      const bool copied = std::ranges::any_of(s.report.dense_copies, [&](const DenseCopy& c) { return c.value == s.graph.info(v).name; });
      if (!device->host_addressable() || copied) s.memory.count(*device, bytes_of(s.graph.info(v)), &MemoryPlan::inputs_size_bytes);
    }
    return found->second;
  }

  /// The slot where a part reads a value; adds a copy before the part if the value is computed elsewhere.
  std::uint32_t slot_for(ValueId v, std::uint32_t part) {
    const DevicePointer& device = layout.partitions[part].device;
    const ValueInfo& info = s.graph.info(v);
    if (info.kind == ValueKind::input) return input_slot(v, device);
    const auto [found, inserted] = slot_of.try_emplace({v, device.get()}, 0);
    if (inserted) {
      // Devices count as separate memories even if they can access each other: each crossing value is copied once per run.
      std::uint32_t last = part;
      for (const std::uint32_t p : layout.readers[v]) {
        if (layout.partitions[p].device == device) last = std::max(last, p);
      }
      found->second = arena_slot(device, bytes_of(info), part, last);
      s.before[part].push_back({origin[v].device, device, origin[v].slot, found->second, bytes_of(info)});
      s.report.copies.push_back({info.name, origin[v].device->info.name, device->info.name, bytes_of(info)});
    }
    return found->second;
  }

  void make_plans(const tenon_plan_options& options) {
    s.before.resize(layout.partitions.size());
    const auto uses = exec::count_uses(s.graph);
    for (std::uint32_t p = 0; p < layout.partitions.size(); ++p) {
      const exec::Partition& set = layout.partitions[p];
      if (std::find(s.devices.begin(), s.devices.end(), set.device) == s.devices.end()) s.devices.push_back(set.device);
      if (set.collective) {
        add_collective(p);
        continue;
      }
      std::vector<GraphUpdate> donations;
      for (std::size_t u = 0; u < s.graph.updates().size(); ++u) {
        if (donatable[u] && layout.producer(s.graph.updates()[u].value) == p) donations.push_back(s.graph.updates()[u]);
      }
      exec::AbiGraph lowered;
      lowered.program = s.program_id;
      exec::lower(s.graph, set.nodes, needed_outside, donations, uses, lowered);
      exec::lower_to_supported_versions(*set.device->loaded->backend, s.graph, lowered);
      exec::use_own_ids(*set.device->loaded, lowered);
      Part part;
      part.device = set.device;
      part.nodes = lowered.node_ids;
      for (const ValueId v : lowered.bound) part.slots.push_back(slot_for(v, p));
      part.addresses.resize(part.slots.size());
      part.updates = !donations.empty();
      part.after = set.after;
      part.fixed = set.fixed;
      for (const ValueId v : lowered.bound) {
        const ValueInfo& info = s.graph.info(v);
        if (part.fixed && info.kind == ValueKind::parameter && s.made_by_prologue(info.name) == nullptr)
          part.parameters.push_back(info.name);
      }
      s.parts.push_back(std::move(part));  // from here on the destructor destroys the plan
      share_packed(set.device, lowered, options);
      make_plan(s.parts.back(), fmt::format("a plan of {} nodes", set.nodes.size()), lowered.graph, options, p);
    }
  }

  void add_collective(std::uint32_t p) {
    const exec::Partition& set = layout.partitions[p];
    Part part;
    part.device = set.device;
    part.nodes = set.nodes;
    part.after = set.after;
    part.collective =
        static_cast<std::uint32_t>(std::ranges::count_if(s.parts, [](const Part& other) { return other.collective != TENON_NO_INDEX; }));
    const std::uint32_t index = part.collective;
    s.parts.push_back(std::move(part));
    if (s.collectives[index].root) return add_broadcast(p, s.collectives[index]);
    for (const Operand& operand : copied_operands) {
      if (operand.part != p) continue;
      const Origin source = source_of(operand.value);
      const ValueInfo& info = s.graph.info(operand.value);
      s.before[p].push_back({source.device, set.device, source.slot, operand.slot, bytes_of(info)});
      if (source.device != set.device)
        s.report.copies.push_back({info.name, source.device->info.name, set.device->info.name, bytes_of(info)});
    }
  }

  /// The pieces of a broadcast: on the root its operands, elsewhere its results.
  void add_broadcast(std::uint32_t p, Collective& collective) {
    const DevicePointer& device = layout.partitions[p].device;
    const NodeInfo& node = s.graph.nodes()[layout.partitions[p].nodes[0]];
    ++s.report.broadcasts;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      const ValueInfo& info = s.graph.info(node.inputs[i]);
      const std::uint64_t size = bytes_of(info);
      s.report.bytes_broadcast_per_run += size;
      const auto result = origin.find(node.outputs[i]);
      std::uint32_t slot = result == origin.end() ? TENON_NO_INDEX : result->second.slot;
      if (is_sent(node)) {
        const Origin source = source_of(node.inputs[i]);
        if (slot != TENON_NO_INDEX && slot != source.slot) s.before[p].push_back({source.device, device, source.slot, slot, size});
        if (source.device == device) {
          slot = source.slot;
        } else if (slot == TENON_NO_INDEX) {
          slot = arena_slot(device, size, p, last_part);
          s.before[p].push_back({source.device, device, source.slot, slot, size});
        }
        if (source.device != device) s.report.copies.push_back({info.name, source.device->info.name, device->info.name, size});
      } else if (slot == TENON_NO_INDEX) {
        slot = arena_slot(device, size, p, last_part);  // nobody reads it
      }
      collective.pieces.push_back({slot, static_cast<std::uint64_t>(info.shape.count())});
    }
  }

  /// Hands parameters over packed where the backend offers it, so that programs of the same store share the copies. Parameters that this
  /// program computes by itself have bytes of their own.
  void share_packed(const DevicePointer& device, exec::AbiGraph& lowered, const tenon_plan_options& options) {
    const std::vector<tenon_packing> packings = exec::describe_packings(*device, lowered.graph, options);
    std::vector<exec::ParameterPacking> wanted;
    for (std::uint32_t v = 0; v < packings.size(); ++v) {
      if (lowered.values[v].kind != TENON_VALUE_PARAMETER || packings[v].key[0] == 0) continue;
      const std::string& name = s.graph.info(lowered.bound[lowered.values[v].binding]).name;
      if (s.made_by_prologue(name) == nullptr) wanted.push_back({v, name, packings[v].key, packings[v].size_bytes});
    }
    if (wanted.empty()) return;
    const bool allocates = s.memory.allocates();
    const auto make = [&](const std::vector<exec::ParameterPacking>& missing) {
      return exec::make_packed(device, s.parameters, lowered.graph, options, missing, allocates);
    };
    const exec::PackedList packed = allocates ? device->packed_parameters.get(*s.parameters, wanted, make) : make(wanted);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      lowered.values[wanted[i].value].packed = packed[i]->handle();
      s.packed_parameters.push_back(packed[i]);
      if (counted_packed.emplace(device.get(), wanted[i].name, wanted[i].form).second) {
        s.memory.count_packed_parameter(*device, wanted[i].name, wanted[i].size_bytes);
      }
    }
  }

  void make_plan(Part& part, const std::string& name, const tenon_graph& lowered, const tenon_plan_options& options, std::uint32_t p) {
    DeviceState& device = *part.device;
    const std::string what = fmt::format("device '{}': {}", device.info.name, name);
    const auto create = [&] { return device.table.plan_create(device.handle, &lowered, &options, &part.plan, s.error); };
    const tenon_status status = exec::guarded_call("plan_create", s.error, create);
    exec::check_made(status, s.error, part.plan != nullptr, "plan_create", what);
    tenon_plan_info info{};
    info.struct_size = sizeof info;
    exec::check(device.table.plan_info(part.plan, &info, s.error), s.error, what);
    for (const auto& [size, use] :
         {std::pair{info.workspace_size_bytes, "workspace"}, std::pair{info.packed_size_bytes, "packed operands"}}) {
      if (size > max_plan_bytes) {
        throw Error(Status::out_of_memory, fmt::format("{}: expected at most {} bytes of {}, got {}", what, max_plan_bytes, use, size));
      }
    }
    const std::uint64_t alignment = std::max<std::uint64_t>(info.workspace_alignment_bytes, 1);
    if (alignment > device.info.alignment_bytes || (alignment & (alignment - 1)) != 0) {
      throw Error(Status::unsupported,
                  fmt::format("{}: expected a workspace alignment that is a power of two up to {} bytes, the alignment of the device's "
                              "memory, got {}",
                              what, device.info.alignment_bytes, alignment));
    }
    blocks.push_back({part.device, TENON_NO_INDEX, {p, p, info.workspace_size_bytes}, alignment});
    s.memory.count(device, info.packed_size_bytes, &MemoryPlan::packed_size_bytes);
    s.report.kernels += info.kernel_count;
    if (!s.memory.allocates()) return;
    device.allocator->reserve(info.packed_size_bytes, name);
    part.packed = info.packed_size_bytes;
  }

  /// The slot where a copy after the last part reads a value, which need not come from a part.
  Origin source_of(ValueId v) {
    const ValueInfo& info = s.graph.info(v);
    if (info.kind == ValueKind::input) return {main_device, input_slot(v, main_device)};
    if (info.kind != ValueKind::constant) return origin.at(v);
    const std::uint64_t address = s.memory.keep(main_device, bytes_of(info), &MemoryPlan::packed_size_bytes);
    if (s.memory.allocates()) main_device->upload(address, info.constant.raw(), bytes_of(info));
    return {main_device, new_slot(address)};
  }

  /// Copies after all parts have run: outputs first, then parameters; updates that read other parameters go through a temporary.
  void plan_last_copies() {
    const auto crosses = [&](ValueId v, const Copy& copy) {
      if (copy.from != copy.to) s.report.copies.push_back({s.graph.info(v).name, copy.from->info.name, copy.to->info.name, copy.size});
    };
    for (std::size_t i = 0; i < s.outputs.size(); ++i) {
      const ValueId v = s.graph.outputs()[i].value;
      if (const auto found = origin.find(v); found != origin.end() && found->second.slot == s.outputs[i].slot) continue;
      const Origin source = source_of(v);
      s.after.push_back({source.device, s.outputs[i].device, source.slot, s.outputs[i].slot, bytes_of(s.graph.info(v))});
      crosses(v, s.after.back());
    }
    std::vector<Copy> last;
    for (std::size_t u = 0; u < s.graph.updates().size(); ++u) {
      if (donatable[u]) continue;
      const GraphUpdate& update = s.graph.updates()[u];
      const std::uint64_t size = bytes_of(s.graph.info(update.value));
      Origin source = source_of(update.value);
      if (s.graph.info(update.value).kind == ValueKind::parameter) {
        const std::uint32_t temporary = new_slot(s.memory.keep(source.device, size, &MemoryPlan::workspace_size_bytes));
        s.after.push_back({source.device, source.device, source.slot, temporary, size});
        source.slot = temporary;
      }
      const Origin& home = origin.at(update.parameter);
      last.push_back({source.device, home.device, source.slot, home.slot, size});
      crosses(update.value, last.back());
    }
    s.after.insert(s.after.end(), last.begin(), last.end());
    s.report.copies_inserted = static_cast<std::uint32_t>(s.report.copies.size());
    for (const PlannedCopy& copy : s.report.copies) s.report.bytes_copied_per_run += copy.size_bytes;
  }

  /// One arena per device for workspaces and for values between parts.
  void lay_out_arenas() {
    std::map<DeviceState*, std::vector<std::size_t>> by_device;
    for (std::size_t b = 0; b < blocks.size(); ++b) by_device[blocks[b].device.get()].push_back(b);
    for (const auto& [device, members] : by_device) {
      std::uint64_t alignment = sdk::block_alignment;  // a cache line, at least
      for (const std::size_t b : members) alignment = std::max(alignment, blocks[b].alignment);
      std::vector<sdk::Interval> intervals;
      for (const std::size_t b : members) {
        intervals.push_back(blocks[b].interval);
        intervals.back().size = sdk::aligned_size(intervals.back().size, alignment);
      }
      std::uint64_t size = sdk::assign_offsets(intervals);
      if (size > 0 && alignment > MemoryPool::min_alignment) size += alignment;  // what the pool gives may start lower
      const std::uint64_t kept = s.memory.keep(blocks[members.front()].device, size, &MemoryPlan::workspace_size_bytes);
      const std::uint64_t base = sdk::aligned_size(kept, alignment);
      for (std::size_t i = 0; i < members.size(); ++i) {
        const Block& block = blocks[members[i]];
        const std::uint64_t address = base + intervals[i].offset;
        if (block.slot == TENON_NO_INDEX) {
          s.parts[block.interval.first].workspace = address;
        } else {
          s.slots[block.slot] = address;
        }
      }
    }
    for (const Offset& offset : offsets) s.slots[offset.slot] = s.slots[offset.base] + offset.size;
  }
};

Program::State::State(exec::ProgramMemory::Mode mode)
    : program_id([] {
        static std::atomic<std::uint64_t> last{0};
        return ++last;
      }()),
      memory(mode) {}

void Program::State::compile(const Context& context, const ProgramOptions& options) {
  exec::ContextState& state = *context.state();
  check = state.config.check_numerics;
  sync_debug = state.config.sync_debug;
  trace = state.trace;
  visible = graph.outputs().size();
  if (options.optimize) exec::check_rules(state, graph);  // the runtime's own programs are not optimised
  const Precision precision = options.precision.value_or(state.config.precision);
  rewrite(context, options, precision);
  if (options.updates_last) graph::separate_updates(graph);
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    if (graph.info(v).kind == ValueKind::input) inputs.push_back(v);
  }

  const std::string fallback = options.device.empty() ? context.default_device().name() : options.device;
  const DevicePointer main_device = state.open_found(fallback);
  tenon_plan_options plan_options = exec::plan_options(state.config, precision);
  const exec::RunContext run(options.run);
  plan_options.run = run.get();
  std::set<std::string> fixed = options.fixed;
  if (prologue != nullptr) {
    for (const GraphOutput& output : prologue->graph.outputs()) fixed.insert(output.name);
  }
  const std::vector<bool> fixed_nodes = exec::fixed_nodes(graph, graph::fixed_values(graph, fixed));
  communicator = options.communicator;
  if (communicator == nullptr && std::ranges::any_of(graph.nodes(), [](const NodeInfo& node) { return graph::is_collective(node.op); }))
    throw Error("program: the graph has collectives (all_reduce, broadcast); expected ProgramOptions::communicator, got none");
  const auto device_of = exec::place(state, graph, fallback, plan_options, fixed_nodes, report);
  Compiler compiler(*this, main_device, exec::partition(graph, device_of, fixed_nodes, sync_debug), options.updates_last);
  report.partitions = static_cast<std::uint32_t>(compiler.layout.partitions.size());
  for (const NodeInfo& node : graph.nodes()) {
    if (node.op != graph::op_broadcast) continue;
    if (const std::uint32_t root = node.attributes.as<graph::BroadcastAttributes>().root;
        root >= static_cast<std::uint32_t>(communicator->size()))
      throw Error(
          fmt::format("broadcast '{}': expected a root below the number of ranks, {}, got {}", node.name, communicator->size(), root));
  }
  compiler.place_parameters();
  compiler.compute_liveness();
  compiler.place_collectives();
  compiler.place_results();
  compiler.make_plans(plan_options);
  compiler.plan_last_copies();
  compiler.lay_out_arenas();
  report.workspace_size_bytes = memory.total(&MemoryPlan::workspace_size_bytes);
  report.shared_packed_size_bytes = memory.packed_parameters_size_bytes();
  report.packed_size_bytes = memory.total(&MemoryPlan::packed_size_bytes) + report.shared_packed_size_bytes;
  if (!memory.allocates()) return;
  own_outputs.resize(outputs.size());
  make_outputs(visible);

  if (std::ranges::any_of(devices, [](const DevicePointer& device) { return device->records(); })) {
    const std::string reason = why_not_replayed(state.config.capture);
    report.replay = reason.empty() ? "from the third run at the same addresses on" : "never: " + reason;
    if (reason.empty()) {
      if (!collectives.empty()) report.replay += ", between its collectives";
      divide_into_segments();
      replay = std::make_unique<exec::Replay>(devices.front());
    }
  }
  if (state.config.log_device_placement) {
    name_kernels();
    log::print(report.mapping());  // the prologue printed its own
  }
  if (options.freeze) graph = graph::drop_constants(std::move(graph));
  if (prologue == nullptr) return;
  if (options.freeze) complete = graph::drop_constants(std::move(complete));
  prologue->name_kernels();
  for (Placement node : prologue->report.nodes) {
    node.once = true;
    report.nodes.push_back(std::move(node));
  }
}

/// Transforms the user's graph into the one that runs.
void Program::State::rewrite(const Context& context, const ProgramOptions& options, Precision precision) {
  if (check == CheckNumerics::all) {
    for (const NodeInfo& node : std::vector<NodeInfo>(graph.nodes())) {
      for (const ValueId v : node.outputs) {
        if (v != no_id && is_floating(graph.info(v).dtype)) graph.output(std::string(watch_prefix) + graph.info(v).name, Value(&graph, v));
      }
    }
  }
  if (options.freeze) {
    if (options.parameters == nullptr) throw Error("a frozen program: expected a store with the parameters' values, got none");
    if (!graph.updates().empty()) {
      throw Error(
          fmt::format("a frozen program: the graph updates parameter '{}'; expected a graph that only reads parameters, such as a "
                      "prediction",
                      graph.info(graph.updates()[0].parameter).name));
    }
    graph = graph::freeze(std::move(graph), [&](const std::string& name) {
      if (options.parameters->unset().contains(name)) throw Error(fmt::format("a frozen program: parameter '{}' has no value yet", name));
      return options.parameters->get(name).to_host();
    });
  }
  // After passes that merge adjacent ops, which casts would separate; before passes that create constants and prepare weights, so that
  // these are cast.
  if (options.optimize) graph = graph::optimize(std::move(graph), options.fixed);
  if (precision == Precision::mixed_bfloat16) graph = graph::mix_precision(std::move(graph), DType::bf16);
  if (precision == Precision::mixed_float16) graph = graph::mix_precision(std::move(graph), DType::f16);
  if (!options.optimize) return;
  graph = exec::fold_on_oracle(context, std::move(graph));
  hoist(context, options, precision);
}

/// Allocates memory for the outputs from index `first` on that have none.
void Program::State::make_outputs(std::size_t first) {
  for (std::size_t i = first; i < outputs.size(); ++i) {
    if (own_outputs[i].defined()) continue;
    own_outputs[i] = Device(outputs[i].device).empty(outputs[i].dtype, outputs[i].shape);
    slots[outputs[i].slot] = own_outputs[i].address();
  }
  if (first == 0) results.assign(own_outputs.begin(), own_outputs.begin() + static_cast<std::ptrdiff_t>(visible));
}

/// Moves nodes that depend only on parameters into the prologue program.
void Program::State::hoist(const Context& context, const ProgramOptions& options, Precision precision) {
  graph::Hoisted halves = graph::hoist(graph, options.fixed);
  if (halves.prologue.outputs().empty()) return;
  complete = std::move(graph);
  graph = std::move(halves.main);
  // precision is already applied
  const Precision own = precision == Precision::float32 ? precision : Precision::tf32;
  try {
    const ProgramOptions same{.device = options.device, .parameters = parameters, .optimize = false, .precision = own, .run = options.run};
    prologue = compiled(context, halves.prologue, same, memory.mode());
  } catch (const exec::PlacementError&) {  // compile() reports all nodes of the graph together
    graph = std::move(complete);
    return;
  }
  memory.add_prologue(prologue->memory);
  if (memory.allocates()) prologue->make_outputs(0);
}

/// The prologue's output of that name, or null.
const Program::State::Output* Program::State::made_by_prologue(const std::string& name) const {
  if (prologue == nullptr) return nullptr;
  for (std::size_t i = 0; i < prologue->visible; ++i) {
    if (prologue->graph.outputs()[i].name == name) return &prologue->outputs[i];
  }
  return nullptr;
}

}  // namespace tenon
