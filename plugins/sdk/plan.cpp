#include "plan.h"

#include <chrono>
#include <cstdio>
#include <cstring>

namespace tenon::sdk {
namespace {

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

std::uint64_t upload(Device& device, const void* bytes, std::uint64_t size) {
  const std::uint64_t address = device.allocate(TENON_MEMORY_DEVICE, size);
  const auto stream = device.make_stream();
  tenon_copy copy{};
  copy.struct_size = sizeof copy;
  copy.direction = TENON_COPY_HOST_TO_DEVICE;
  copy.destination = address;
  copy.source = reinterpret_cast<std::uintptr_t>(bytes);
  copy.size_bytes = size;
  device.copy(copy, *stream);
  stream->synchronize();
  return address;
}

/// One operand's address, filled in at each execution.
struct Patch {
  std::uint32_t operand;
  std::uint32_t source;  ///< index of a binding, or workspace_source
  std::uint64_t offset;
};
constexpr std::uint32_t workspace_source = TENON_NO_INDEX;

}  // namespace

/// What one execution at a time writes to: operands with addresses, and the calls that point at them.
struct Plan::Frame {
  std::vector<Operand> operands;
  std::vector<Call> calls;
  std::vector<Patch> patches;
  std::vector<std::pair<std::uint32_t, std::uint64_t>> scratch;  ///< call, offset in the workspace
  std::vector<const void*> packed;
};

Plan::Plan(Device& device, const tenon_graph& wire, const tenon_plan_options& options, const KernelRow* rows)
    : device_(device), host_(device.host), options_(options) {
  GraphModel& graph = layout_.graph;
  graph = GraphModel::read(wire);
  for (Node& node : graph.nodes) {
    const tenon_answer yes = answer(graph, node, rows);
    if (!yes.supported) throw Error(TENON_UNSUPPORTED, yes.text);
  }
  resolve_views(graph);
  if (options.fusion == TENON_FUSION_FULL) fuse_epilogues(graph);
  make_dense(graph, rows);
  order_for_donations(graph, rows);

  std::vector<Operand> room;
  for (Node& node : graph.nodes) {
    Step step;
    const Traits& traits = node.row->kernel->traits;
    const Call call = describe(graph, node, room);
    if (traits.scratch != nullptr) step.scratch_size = traits.scratch(call);
    step.node = std::move(node);
    layout_.steps.push_back(std::move(step));
  }
  graph.nodes.clear();
  place_values(layout_);

  // Constants and packed operands live in memory of the plan's own. A constant that is packed wherever it is read keeps no plain copy.
  try {
    std::vector<bool> plain(graph.values.size(), false);
    const auto take = [&](std::uint64_t address, std::uint64_t size) {
      blocks_.push_back({address, size});
      layout_.packed_size += size;
      return address;
    };
    const auto upload_once = [&](std::uint32_t root) {
      Value& value = graph.values[root];
      if (value.kind != TENON_VALUE_CONSTANT || value.count == 0 || layout_.locations[root].place == Location::Place::plan) return;
      layout_.locations[root] = {Location::Place::plan, take(upload(device_, value.data, value.size_bytes()), value.size_bytes())};
    };
    for (std::uint32_t s = 0; s < layout_.steps.size(); ++s) {
      Step& step = layout_.steps[s];
      const Traits& traits = step.node.row->kernel->traits;
      for (std::uint32_t i = 0; i < step.node.inputs.size(); ++i) {
        const std::uint32_t v = step.node.inputs[i];
        if (v == TENON_NO_INDEX) continue;
        const std::uint32_t root = graph.values[v].root;
        const std::uint32_t kind = graph.values[root].kind;
        std::size_t size = 0;
        if (traits.pack_size != nullptr && (kind == TENON_VALUE_CONSTANT || kind == TENON_VALUE_PARAMETER)) {
          size = traits.pack_size(describe(graph, step.node, room), i);
        }
        if (size == 0) {
          plain[root] = true;
          continue;
        }
        step.packed.resize(step.node.inputs.size(), 0);
        step.packed[i] = take(device_.allocate(TENON_MEMORY_DEVICE, size), size);
        if (kind == TENON_VALUE_PARAMETER) layout_.packed_parameters.push_back({s, i});
      }
      if (step.node.bias != TENON_NO_INDEX) plain[graph.values[step.node.bias].root] = true;
    }
    for (std::uint32_t v = 0; v < graph.values.size(); ++v) upload_once(v);
    for (Step& step : layout_.steps) {
      for (std::uint32_t i = 0; i < step.packed.size(); ++i) {
        const std::uint32_t v = step.node.inputs[i];
        if (step.packed[i] == 0 || graph.values[graph.values[v].root].kind != TENON_VALUE_CONSTANT) continue;
        Call call = describe(graph, step.node, room);
        call.host = host_;
        room[i].data = pointer(layout_.locations[graph.values[v].root].offset);
        step.node.row->kernel->traits.pack(call, i, pointer(step.packed[i]));
      }
    }
    for (std::uint32_t v = 0; v < graph.values.size(); ++v) {
      if (plain[v] || graph.values[v].kind != TENON_VALUE_CONSTANT || layout_.locations[v].place != Location::Place::plan) continue;
      const std::uint64_t address = layout_.locations[v].offset;
      for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
        if (block->address != address) continue;
        device_.deallocate(TENON_MEMORY_DEVICE, block->address, block->size);
        layout_.packed_size -= block->size;
        blocks_.erase(block);
        break;
      }
      layout_.locations[v] = {};
    }
    for (Value& value : graph.values) value.data = nullptr;
    idle_.store(make_frame().release());
  } catch (...) {
    for (const Block& block : blocks_) device_.deallocate(TENON_MEMORY_DEVICE, block.address, block.size);
    throw;
  }
}

Plan::~Plan() {
  delete idle_.load();
  for (const Block& block : blocks_) device_.deallocate(TENON_MEMORY_DEVICE, block.address, block.size);
}

tenon_plan_info Plan::info() const {
  tenon_plan_info info{};
  info.struct_size = sizeof info;
  info.kernel_count = static_cast<std::uint32_t>(layout_.steps.size());
  info.workspace_size_bytes = layout_.workspace_size;
  info.workspace_alignment_bytes = 64;
  info.packed_size_bytes = layout_.packed_size;
  return info;
}

std::unique_ptr<Plan::Frame> Plan::make_frame() const {
  auto frame = std::make_unique<Frame>();
  std::size_t operand_count = 0, packed_count = 0;
  for (const Step& step : layout_.steps) {
    operand_count += step.node.inputs.size() + step.node.outputs.size() + 1;
    packed_count += step.packed.size();
  }
  frame->operands.reserve(operand_count);  // never grows: calls point into it
  frame->packed.reserve(packed_count);
  frame->calls.reserve(layout_.steps.size());
  const GraphModel& graph = layout_.graph;
  const auto append = [&](std::uint32_t v) {
    frame->operands.push_back(v == TENON_NO_INDEX ? Operand{} : graph.values[v].operand());
    if (v == TENON_NO_INDEX) return;
    const auto operand = static_cast<std::uint32_t>(frame->operands.size() - 1);
    const Location& location = layout_.locations[graph.values[v].root];
    switch (location.place) {
      case Location::Place::binding:
        frame->patches.push_back({operand, static_cast<std::uint32_t>(location.offset), 0});
        break;
      case Location::Place::workspace:
        frame->patches.push_back({operand, workspace_source, location.offset});
        break;
      case Location::Place::plan:
        frame->operands[operand].data = pointer(location.offset);
        break;
      case Location::Place::nowhere:  // no elements, or packed wherever it is read
        break;
    }
  };
  for (const Step& step : layout_.steps) {
    Call call;
    call.inputs = frame->operands.data() + frame->operands.size();
    for (const std::uint32_t v : step.node.inputs) append(v);
    call.outputs = frame->operands.data() + frame->operands.size();
    for (const std::uint32_t v : step.node.outputs) append(v);
    call.input_count = static_cast<std::uint32_t>(step.node.inputs.size());
    call.output_count = static_cast<std::uint32_t>(step.node.outputs.size());
    call.attributes = step.node.attributes.data();
    if (step.node.bias != TENON_NO_INDEX) {
      call.epilogue.bias = frame->operands.data() + frame->operands.size();
      append(step.node.bias);
    }
    call.epilogue.activation = step.node.activation;
    call.math = options_.math;
    call.deterministic = options_.deterministic != 0;
    call.host = host_;
    if (!step.packed.empty()) {
      call.packed = frame->packed.data() + frame->packed.size();
      for (const std::uint64_t address : step.packed) frame->packed.push_back(pointer(address));
    }
    if (step.scratch_size > 0) frame->scratch.emplace_back(static_cast<std::uint32_t>(frame->calls.size()), step.scratch_offset);
    frame->calls.push_back(call);
  }
  return frame;
}

std::unique_ptr<Plan::Frame> Plan::take_frame() {
  if (Frame* frame = idle_.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Frame>(frame);
  {
    std::lock_guard lock(frames_mutex_);
    if (!spare_frames_.empty()) {
      auto frame = std::move(spare_frames_.back());
      spare_frames_.pop_back();
      return frame;
    }
  }
  return make_frame();
}

void Plan::give_back(std::unique_ptr<Frame> frame) {
  Frame* expected = nullptr;
  if (idle_.compare_exchange_strong(expected, frame.get(), std::memory_order_release)) {
    static_cast<void>(frame.release());
    return;
  }
  std::lock_guard lock(frames_mutex_);
  spare_frames_.push_back(std::move(frame));
}

void Plan::repack(const Frame& frame, std::uint64_t epoch) {
  std::lock_guard lock(pack_mutex_);
  if (packed_epoch_.load() == epoch) return;
  for (const PackedParameter& p : layout_.packed_parameters) {
    const Step& step = layout_.steps[p.step];
    step.node.row->kernel->traits.pack(frame.calls[p.step], p.input, pointer(step.packed[p.input]));
  }
  packed_epoch_.store(epoch);
}

void Plan::execute(const tenon_bindings& bindings, std::uint64_t workspace, tenon_stream* stream, std::uint32_t* out_node) {
  if (bindings.address_count < layout_.graph.binding_count) {
    throw Error(TENON_INVALID_ARGUMENT, "plan_execute: " + std::to_string(layout_.graph.binding_count) + " addresses wanted, got " +
                                            std::to_string(bindings.address_count));
  }
  struct Loan {
    Plan* plan;
    std::unique_ptr<Frame> frame;
    ~Loan() { plan->give_back(std::move(frame)); }
  } loan{this, take_frame()};
  Frame& frame = *loan.frame;
  for (const Patch& patch : frame.patches) {
    const std::uint64_t base = patch.source == workspace_source ? workspace : bindings.addresses[patch.source];
    frame.operands[patch.operand].data = pointer(base + patch.offset);
  }
  for (const auto& [call, offset] : frame.scratch) frame.calls[call].scratch = pointer(workspace + offset);
  if (!frame.calls.empty() && frame.calls[0].stream != stream) {
    for (Call& call : frame.calls) call.stream = stream;
  }
  if (!layout_.packed_parameters.empty() && packed_epoch_.load() != bindings.parameters_epoch) repack(frame, bindings.parameters_epoch);
  if (profiling_.load(std::memory_order_relaxed)) {
    run_profiled(frame, out_node);
    return;
  }
  const Step* step = layout_.steps.data();
  for (const Call& call : frame.calls) {
    *out_node = step->node.index;
    step->node.function(call);
    ++step;
  }
}

void Plan::run_profiled(Frame& frame, std::uint32_t* out_node) {
  using Clock = std::chrono::steady_clock;
  const auto since = [](Clock::time_point a, Clock::time_point b) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(b - a).count());
  };
  std::vector<tenon_profile_record> records;
  const auto begin = Clock::now();
  for (std::size_t s = 0; s < frame.calls.size(); ++s) {
    const Node& node = layout_.steps[s].node;
    *out_node = node.index;
    const auto kernel_begin = Clock::now();
    node.function(frame.calls[s]);
    const auto kernel_end = Clock::now();
    tenon_profile_record record{};
    record.id = node.id;
    record.node = node.index;
    record.fused_count = node.fused_count;
    record.begin_ns = since(begin, kernel_begin);
    record.duration_ns = since(kernel_begin, kernel_end);
    std::snprintf(record.algorithm, sizeof record.algorithm, "%s", op_name(node.op));
    records.push_back(record);
  }
  std::lock_guard lock(profile_mutex_);
  profile_ = std::move(records);
}

std::uint32_t Plan::read_profile(tenon_profile_record* out_records, std::uint32_t capacity) const {
  std::lock_guard lock(profile_mutex_);
  const auto count = static_cast<std::uint32_t>(profile_.size());
  if (capacity > 0 && count > 0) std::memcpy(out_records, profile_.data(), sizeof(tenon_profile_record) * std::min(capacity, count));
  return count;
}

}  // namespace tenon::sdk
