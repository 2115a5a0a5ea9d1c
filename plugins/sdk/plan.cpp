// SPDX-License-Identifier: Apache-2.0
// plan.cpp - makes a plan: its kernel calls, their packed operands and scratch memory, and its constants.
#include "plan.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include <tenon/sdk/rounding.h>

#include "plan_frame.h"

namespace tenon::sdk {
namespace {

/// What a scratch function is asked with: a host that says how many threads a run has, and notes that it was asked.
struct ThreadQuestion {
  tenon_run run{};  // first: the host's functions get its address
  mutable bool asked = false;
};

/// The largest scratch memory that the call needs with any number of threads up to the host's: a run may have fewer threads than the plan
/// was made for, and a kernel that divides its work among fewer may need more memory.
std::size_t scratch_for_any_threads(const Traits& traits, Call call) {
  if (call.host.table() == nullptr) return traits.scratch(call);
  tenon_host table{};
  std::memcpy(&table, call.host.table(), std::min<std::size_t>(sizeof table, call.host.table()->struct_size));
  table.thread_count = [](tenon_host_context*, const tenon_run* run) {
    const auto* const question = reinterpret_cast<const ThreadQuestion*>(run);
    question->asked = true;
    return question->run.threads;
  };
  ThreadQuestion question;
  question.run.struct_size = sizeof question.run;
  question.run.threads = std::max<std::uint32_t>(1, call.host.thread_count());
  call.host = Host(&table, &question.run);
  std::size_t bytes = traits.scratch(call);
  while (question.asked && --question.run.threads > 0) bytes = std::max(bytes, traits.scratch(call));
  return bytes;
}

}  // namespace

GraphModel read_graph(const char* slot, Device& device, const tenon_graph& abi_graph, const tenon_plan_options& options,
                      const KernelRow* rows) {
  GraphModel graph = GraphModel::read(abi_graph, options, rows);
  if (graph.problem.reason != TENON_REASON_NONE) throw Error(TENON_UNSUPPORTED, std::string(slot) + ": " + graph.problem.text);
  graph.host = device.host;
  graph.device = &device;
  if (const ElementwiseFusion* fusion = device.elementwise_fusion()) graph.fusion = fusion;
  graph.options.run = nullptr;  // borrowed: kernels must not see it, and their scratch memory has to suffice for the threads of any run
  return graph;
}

void arrange_supported(GraphModel& graph, const KernelRow* rows) {
  for (Node& node : graph.nodes) {
    const tenon_answer yes = answer(graph, node, rows);
    if (!yes.supported) throw Error(TENON_UNSUPPORTED, yes.text, node.id);
  }
  arrange(graph, rows);
}

Plan::Plan(Device& device, MemoryStats& memory_stats, const tenon_graph& abi_graph, const tenon_plan_options& options,
           const KernelRow* rows)
    : device_(device), blocks_(device, memory_stats) {
  layout_.alignment = std::max<std::uint64_t>(layout_.alignment, device.operand_alignment_bytes);
  layout_.graph = read_graph("plan_create", device, abi_graph, options, rows);
  arrange_supported(layout_.graph, rows);
  take_packed(memory_stats);
  make_steps(device.host.with(options.run));
  name_steps(abi_graph);
  place_values(layout_);
  place_constants();
  for (Value& value : layout_.graph.values) {  // borrowed until now
    value.data = nullptr;
    value.packed = nullptr;
  }
  cancellable_ = count_cancellable();
  idle_.store(make_frame().release());
}

/// The packed copies that kernels read: those that were handed over, else the plan's own.
void Plan::take_packed(MemoryStats& memory_stats) {
  GraphModel& graph = layout_.graph;
  const std::map<std::uint32_t, Packing> packings = packings_of(graph);
  const Packing unread;
  const auto own_lock = std::make_shared<SharedMutex>();
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    const auto found = packings.find(v);
    const bool is_read = found != packings.end();
    if (!is_read && (graph.values[v].packed == nullptr || graph.values[v].root != v)) continue;
    const Packing& packing = is_read ? found->second : unread;
    std::shared_ptr<Packed> packed = packed_for(v, packing, memory_stats, own_lock);
    for (const Packing::Read& read : packing.reads) {
      Node& node = graph.nodes[read.node];
      node.packed.resize(node.inputs.size(), 0);
      node.packed[read.input] = packed->address() + read.offset;
    }
    for (const Packing::Converted& converted : packing.converted) {
      layout_.converted[converted.value] = packed->address() + converted.offset;
    }
    if (graph.values[v].kind == TENON_VALUE_CONSTANT) {
      packed_constants_.push_back(std::move(packed));
    } else {
      packed_parameters_.push_back({std::move(packed), packing.copies, packing.converted});
    }
  }
  std::set<const Packed*> once;
  std::set<SharedMutex*> locks;
  for (const PackedParameter& p : packed_parameters_) {
    locks.insert(&p.packed->lock());
    if (once.insert(p.packed.get()).second) continue;
    throw Error(TENON_INVALID_ARGUMENT, "plan_create: expected a packed operand for each parameter, got one for two of them");
  }
  pack_locks_.assign(locks.begin(), locks.end());
}

std::shared_ptr<Packed> Plan::packed_for(std::uint32_t value, const Packing& packing, MemoryStats& memory_stats,
                                         const std::shared_ptr<SharedMutex>& own_lock) {
  const Value& read = layout_.graph.values[value];
  if (read.packed == nullptr) {
    own_packed_size_ += packing.size_bytes;
    if (read.kind != TENON_VALUE_CONSTANT) return std::make_shared<Packed>(device_, memory_stats, packing, own_lock);
    return std::make_shared<Packed>(device_, memory_stats, packing, layout_.graph, read);
  }
  const std::shared_ptr<Packed>& given = read.packed->packed;
  const std::string name = "plan_create: value " + std::to_string(value);
  if (packing.key.empty())
    throw Error(TENON_INVALID_ARGUMENT, name + ": expected none packed, for the plan reads it as it is, got '" + given->key() + "'");
  if (&given->device() != &device_)
    throw Error(TENON_INVALID_ARGUMENT, name + ": expected one packed on this device, got '" + given->key() + "' of another device");
  if (given->key() != packing.key)
    throw Error(TENON_INVALID_ARGUMENT, name + ": expected one packed as '" + packing.key + "', got '" + given->key() + "'");
  return given;
}

/// Choosing algorithms may take long, so the creator is asked before each step.
void Plan::make_steps(const Host& creator) {
  std::vector<Operand> operands;
  std::vector<const void*> packed;
  for (Node& node : layout_.graph.nodes) {
    if (creator.cancel_requested()) throw Error(TENON_CANCELLED, cancelled_before("plan_create", node), node.id);
    Step step;
    const Traits& traits = node.row->kernel->traits;
    if (traits.scratch != nullptr) {
      packed.assign(node.inputs.size(), nullptr);
      std::transform(node.packed.begin(), node.packed.end(), packed.begin(), pointer);
      Call call = describe(layout_.graph, node, operands);
      call.packed = packed.data();
      step.scratch_size = checked_size(scratch_for_any_threads(traits, call), node, "scratch memory");
    }
    step.node = std::move(node);
    layout_.steps.push_back(std::move(step));
  }
  layout_.graph.nodes.clear();
}

/// Uploads the constants that a kernel reads as they are.
void Plan::place_constants() {
  GraphModel& graph = layout_.graph;
  std::vector<bool> is_read(graph.values.size(), false);
  for (const Step& step : layout_.steps) {
    const Node& node = step.node;
    for (std::uint32_t i = 0; i < node.inputs.size(); ++i) {
      const bool is_packed = i < node.packed.size() && node.packed[i] != 0;
      if (node.inputs[i] != TENON_NO_INDEX && !is_packed) is_read[graph.values[node.inputs[i]].root] = true;
    }
    node.for_each_epilogue_operand([&](std::uint32_t v) { is_read[graph.values[v].root] = true; });
  }
  std::unique_ptr<Stream> stream;
  for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
    const Value& value = graph.values[v];
    if (value.kind != TENON_VALUE_CONSTANT || value.count == 0 || !is_read[v]) continue;
    if (stream == nullptr) stream = device_.make_stream({});
    layout_.locations[v] = {Location::Place::plan, upload(blocks_, device_, value.data, value.size_bytes(), *stream)};
  }
  if (stream != nullptr) stream->synchronize();
}

/// The steps up to the first one that writes a donated output, whose old content would be lost.
std::size_t Plan::count_cancellable() const {
  std::vector<bool> donated(layout_.graph.values.size(), false);
  for (const tenon_donation& d : layout_.graph.donations) donated[d.output] = true;
  const auto writes_donated = [&](const Step& step) {
    return std::any_of(step.node.outputs.begin(), step.node.outputs.end(),
                       [&](std::uint32_t v) { return v != TENON_NO_INDEX && donated[v]; });
  };
  const auto first = std::find_if(layout_.steps.begin(), layout_.steps.end(), writes_donated);
  return static_cast<std::size_t>(first - layout_.steps.begin()) + (first == layout_.steps.end() ? 0 : 1);
}

tenon_plan_info Plan::info() const {
  tenon_plan_info info{};
  info.struct_size = sizeof info;
  info.kernel_count =
      static_cast<std::uint32_t>(std::ranges::count_if(layout_.steps, [](const Step& s) { return !s.node.joins_previous; }));
  info.workspace_size_bytes = layout_.workspace_size;
  info.workspace_alignment_bytes = layout_.alignment;
  info.packed_size_bytes = blocks_.size_bytes() + own_packed_size_;
  return info;
}

}  // namespace tenon::sdk
