// SPDX-License-Identifier: Apache-2.0
// The plans of a program's parts, and the copies between them.
#include <fmt/core.h>

#include <algorithm>

#include "exec/op_versions.h"
#include "exec/packed_parameters.h"
#include "exec/program_compiler.h"
#include "exec/vendor_ops.h"
#include "graph/collectives.h"
#include "text/counted.h"

namespace tenon {

using exec::max_plan_bytes;

void Program::State::Compiler::make_plans(const tenon_plan_options& options) {
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
      if (part.fixed && info.kind == ValueKind::parameter && s.made_by_prologue(info.name) == nullptr) part.parameters.push_back(info.name);
    }
    s.parts.push_back(std::move(part));  // from here on the destructor destroys the plan
    share_packed(set.device, lowered, options);
    make_plan(s.parts.back(), fmt::format("a plan of {}", counted(set.nodes.size(), "node")), lowered.graph, options, p);
  }
}

void Program::State::Compiler::plan_last_copies() {
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

bool Program::State::Compiler::is_sent(const NodeInfo& node) const {
  return node.op == graph::op_broadcast &&
         static_cast<int>(node.attributes.as<graph::BroadcastAttributes>().root) == s.communicator->rank();
}

void Program::State::Compiler::add_collective(std::uint32_t p) {
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

void Program::State::Compiler::add_broadcast(std::uint32_t p, Collective& collective) {
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

void Program::State::Compiler::share_packed(const DevicePointer& device, exec::AbiGraph& lowered, const tenon_plan_options& options) {
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

void Program::State::Compiler::make_plan(Part& part, const std::string& name, const tenon_graph& lowered, const tenon_plan_options& options,
                                         std::uint32_t p) {
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

}  // namespace tenon
