// SPDX-License-Identifier: Apache-2.0
// Where the values of a program lie: parameters, outputs, operands of collectives, values between parts, and the arenas for them.
#include <algorithm>

#include <tenon/sdk/rounding.h>

#include "exec/program_compiler.h"
#include "graph/collectives.h"

namespace tenon {

void Program::State::Compiler::place_parameters() {
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

void Program::State::Compiler::compute_liveness() {
  for (const GraphOutput& output : s.graph.outputs()) live_after[output.value] = needed_outside[output.value] = true;
  for (const GraphUpdate& update : s.graph.updates()) live_after[update.value] = needed_outside[update.value] = true;
  for (const ValueId v : sent_values()) live_after[v] = true;  // other ranks may read it until the end of the run
  for (ValueId v = 0; v < s.graph.values().size(); ++v) {
    if (!layout.computed(v)) continue;
    for (const std::uint32_t p : layout.readers[v]) needed_outside[v] = needed_outside[v] || p != layout.producer(v);
  }
}

void Program::State::Compiler::place_collectives() {
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

void Program::State::Compiler::place_results() {
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

void Program::State::Compiler::lay_out_arenas() {
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

std::uint32_t Program::State::Compiler::arena_slot(const DevicePointer& device, std::uint64_t size, std::uint32_t first,
                                                   std::uint32_t last) {
  const std::uint32_t slot = new_slot(0);
  blocks.push_back({device, slot, {first, last, std::max<std::uint64_t>(size, 1)}, device->info.operand_alignment_bytes});
  return slot;
}

void Program::State::Compiler::keep_at(ValueId v, const Origin& place) {
  origin[v] = place;
  slot_of[{v, place.device.get()}] = place.slot;
}

std::set<ValueId> Program::State::Compiler::sent_values() const {
  std::set<ValueId> sent;
  for (const NodeInfo& node : s.graph.nodes()) {
    if (is_sent(node)) sent.insert(node.inputs.begin(), node.inputs.end());
  }
  return sent;
}

std::uint32_t Program::State::Compiler::input_slot(ValueId v, const DevicePointer& device) {
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

std::uint32_t Program::State::Compiler::slot_for(ValueId v, std::uint32_t part) {
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

Program::State::Compiler::Origin Program::State::Compiler::source_of(ValueId v) {
  const ValueInfo& info = s.graph.info(v);
  if (info.kind == ValueKind::input) return {main_device, input_slot(v, main_device)};
  if (info.kind != ValueKind::constant) return origin.at(v);
  const std::uint64_t address = s.memory.keep(main_device, bytes_of(info), &MemoryPlan::packed_size_bytes);
  if (s.memory.allocates()) main_device->upload(address, info.constant.raw(), bytes_of(info));
  return {main_device, new_slot(address)};
}

}  // namespace tenon
