// SPDX-License-Identifier: Apache-2.0
// plan_execute.cpp - executes a plan: binds addresses, packs parameters that have changed, and runs the calls, if need be with times.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <utility>

#include <tenon/sdk/kernel_markers.h>
#include <tenon/sdk/needs.h>
#include <tenon/sdk/vendor_schema.h>

#include "counted.h"
#include "elementwise_group.h"
#include "passes/passes.h"
#include "plan_frame.h"

namespace tenon::sdk {
namespace {

std::atomic<const KernelMarkers*> kernel_markers{nullptr};

}  // namespace

std::string algorithm_of(const Node& node) {
  if (node.group != nullptr) {
    std::string text;
    for (const ElementwiseMember& member : node.group->members) {
      text += (text.empty() ? "" : "+") + (member.vendor_op == nullptr ? op_name(member.op) : full_name(*member.vendor_op));
    }
    return text;
  }
  std::string text = op_name(node);
  if (node.joins_previous) text += " (joined)";  // first, because records cut long texts
  if (node.relu_grad) text += "+relu_grad";
  if (node.is(TENON_OP_SoftmaxCrossEntropyLoss) && node.outputs.size() == 4) {  // fuse_losses
    if (node.outputs[2] != TENON_NO_INDEX) text += "+gradient";
    if (node.outputs[3] != TENON_NO_INDEX) text += "+accuracy";
  }
  if (node.is(TENON_OP_Gemm) && node.outputs.size() == 2) text += "+column_sums";
  if (node.is(TENON_OP_Conv) && node.inputs.size() == conv_input::count) text += "+scale";
  const bool attends = is_quantized_attention(node);
  if (attends) text += "+attention";
  if (node.merged_heads) text += "+merged_heads";
  if (!attends && node.scale != TENON_NO_INDEX) text += "+dequantize";
  if (node.bias != TENON_NO_INDEX) text += "+bias";
  if (node.residual != TENON_NO_INDEX) text += "+residual";
  static constexpr const char* activations[] = {"", "+relu", "+sigmoid", "+tanh", "+clip", "+gelu", "+silu"};
  text += activations[node.activation.kind];
  if (node.relu_result != TENON_NO_INDEX) text += "+relu_grad";
  if (node.is(TENON_OP_Conv) && node.outputs.size() == 2) text += "+mean";
  return node.y_scale == TENON_NO_INDEX ? text : text + "+quantize";
}

std::string cancelled_before(const char* slot, const Node& node) {
  return std::string(slot) + ": cancelled before " + algorithm_of(node);
}

// ---------------------------------------------------------------- frames

Plan::~Plan() {
  delete idle_.load();
}

std::unique_ptr<Plan::Frame> Plan::make_frame() const {
  auto frame = std::make_unique<Frame>();
  frame->host = layout_.graph.host;
  std::size_t operand_count = 0, packed_count = 0;
  for (const Step& step : layout_.steps) {
    operand_count += step.node.inputs.size() + step.node.outputs.size() + std::size(epilogue_operands);
    packed_count += step.node.packed.size();
  }
  frame->operands.reserve(operand_count);  // never reallocated: calls and patches point into them
  frame->packed.reserve(packed_count);
  frame->calls.reserve(layout_.steps.size());
  const GraphModel& graph = layout_.graph;
  operand_count += 2 * graph.conversions.size();
  const auto append = [&](std::uint32_t v) {
    frame->operands.push_back(v == TENON_NO_INDEX ? Operand{} : graph.values[v].operand());
    if (v == TENON_NO_INDEX || graph.values[v].count == 0) return;
    Operand& operand = frame->operands.back();
    const Location& location = layout_.locations[graph.values[v].root];
    switch (location.place) {
      case Location::Place::binding:
        frame->patches.push_back({static_cast<std::uint32_t>(frame->operands.size() - 1), static_cast<std::uint32_t>(location.offset)});
        break;
      case Location::Place::workspace:
        frame->workspace_patches.push_back({&operand.data, location.offset});
        break;
      case Location::Place::plan:
        operand.data = pointer(location.offset);
        break;
      case Location::Place::nowhere:  // packed wherever it is read
        break;
    }
  };
  const auto describe_call = [&](const Node& node, Call& call) {
    call.inputs = frame->operands.data() + frame->operands.size();
    for (const std::uint32_t v : node.inputs) append(v);
    call.outputs = frame->operands.data() + frame->operands.size();
    for (const std::uint32_t v : node.outputs) append(v);
    call.input_count = static_cast<std::uint32_t>(node.inputs.size());
    call.output_count = static_cast<std::uint32_t>(node.outputs.size());
    call.attributes = node.attributes.data();
    for (const EpilogueOperand& part : epilogue_operands) {
      if (node.*part.value == TENON_NO_INDEX) continue;
      call.epilogue.*part.operand = frame->operands.data() + frame->operands.size();
      append(node.*part.value);
    }
    call.epilogue.activation = node.activation;
    call.math = graph.options.math;
    call.deterministic = graph.options.deterministic != 0;
    call.channels_last = node.channels_last;
    call.merged_heads = node.merged_heads;
    call.node_id = node.id;
    call.device = graph.device;
    call.host = graph.host;
  };
  for (const Step& step : layout_.steps) {
    Call& call = frame->calls.emplace_back();
    const Traits& traits = step.node.row->kernel->traits;
    frame->launches.push_back({step.node.function, step.node.id, step.node.chained ? traits.run_chain : traits.run_together});
    describe_call(step.node, call);
    if (!step.node.packed.empty()) {
      call.packed = frame->packed.data() + frame->packed.size();
      for (const std::uint64_t address : step.node.packed) frame->packed.push_back(pointer(address));
    }
    if (step.scratch_size > 0) frame->workspace_patches.push_back({&call.scratch, step.scratch_offset});
  }
  for (const auto& [v, node] : graph.conversions) describe_call(node, frame->conversions[v]);
  for (std::size_t s = 1, first = 0; s < layout_.steps.size(); ++s) {
    if (!layout_.steps[s].node.joins_previous) first = s;
    if (first != s) ++frame->launches[first].count;
  }
  return frame;
}

std::unique_ptr<Plan::Frame> Plan::take_frame() {
  if (Frame* frame = idle_.exchange(nullptr, std::memory_order_acquire)) return std::unique_ptr<Frame>(frame);
  {
    const std::lock_guard lock(frames_mutex_);
    if (spare_ != nullptr) {
      auto frame = std::move(spare_);
      spare_ = std::move(frame->next);
      return frame;
    }
  }
  return make_frame();
}

void Plan::return_frame(std::unique_ptr<Frame> frame) noexcept {
  Frame* expected = nullptr;
  if (idle_.compare_exchange_strong(expected, frame.get(), std::memory_order_release, std::memory_order_relaxed)) {
    static_cast<void>(frame.release());
    return;
  }
  const std::lock_guard lock(frames_mutex_);
  frame->next = std::move(spare_);
  spare_ = std::move(frame);
}

// ---------------------------------------------------------------- execution

void Plan::bind(Frame& frame, const tenon_bindings& bindings, std::uint64_t workspace, tenon_stream* stream) const {
  for (const Patch& patch : frame.patches) {
    const std::uint64_t address = bindings.addresses[patch.binding];
    if (address == 0) {
      throw Error(TENON_INVALID_ARGUMENT, "plan_execute: address " + std::to_string(patch.binding) + " is 0, and its value has elements");
    }
    frame.operands[patch.operand].data = pointer(address);
  }
  if (frame.workspace != workspace) {
    for (const WorkspacePatch& patch : frame.workspace_patches) *patch.address = pointer(workspace + patch.offset);
    frame.workspace = workspace;
  }
  if (!frame.calls.empty() && frame.calls[0].stream != stream) {
    for (Call& call : frame.calls) call.stream = stream;
    for (auto& [v, call] : frame.conversions) call.stream = stream;
  }
  const tenon_run* const run = TENON_HAS(&bindings, tenon_bindings, run) ? bindings.run : nullptr;
  if (frame.host.run() != run) {
    frame.host = frame.host.with(run);
    for (Call& call : frame.calls) call.host = frame.host;
    for (auto& [v, call] : frame.conversions) call.host = frame.host;
  }
  frame.execution_id = TENON_HAS(&bindings, tenon_bindings, execution_id) ? bindings.execution_id : 0;
}

void Plan::execute(const tenon_bindings& bindings, std::uint64_t workspace, tenon_stream* stream, std::uint64_t* out_node_id) {
  check_needs("plan_execute", bindings.needs);
  const std::uint32_t expected = layout_.graph.binding_count;
  if (bindings.address_count < expected || (expected > 0 && bindings.addresses == nullptr)) {
    throw Error(TENON_INVALID_ARGUMENT, "plan_execute: expected " + counted(expected, "address", "addresses") + ", got " +
                                            std::to_string(bindings.addresses == nullptr ? 0 : bindings.address_count));
  }
  if (layout_.workspace_size > 0 && (workspace == 0 || workspace % layout_.alignment != 0)) {
    throw Error(TENON_INVALID_ARGUMENT, "plan_execute: expected a workspace of " + std::to_string(layout_.workspace_size) +
                                            " bytes at a multiple of " + std::to_string(layout_.alignment) + ", got address " +
                                            std::to_string(workspace));
  }
  if (stream->recording) check_recordable(out_node_id);
  struct Loan {
    Plan* plan;
    std::unique_ptr<Frame> frame;
    ~Loan() { plan->return_frame(std::move(frame)); }
  } loan{this, take_frame()};
  Frame& frame = *loan.frame;
  bind(frame, bindings, workspace, stream);
  if (packed_parameters_.empty()) {
    run(frame, out_node_id);
  } else {
    run_packed(frame, TENON_HAS(&bindings, tenon_bindings, parameters_epoch) ? bindings.parameters_epoch : 0, *stream, out_node_id);
  }
}

/// Holds the locks of packed parameters.
class Plan::PackLocks {
 public:
  enum class Mode { shared, exclusive };
  PackLocks(const std::vector<SharedMutex*>& locks, Mode mode) : locks_(locks), mode_(mode) {
    for (SharedMutex* lock : locks_) mode_ == Mode::shared ? lock->lock_shared() : lock->lock();
  }
  ~PackLocks() {
    for (SharedMutex* lock : locks_) mode_ == Mode::shared ? lock->unlock_shared() : lock->unlock();
  }
  PackLocks(const PackLocks&) = delete;
  PackLocks& operator=(const PackLocks&) = delete;

 private:
  const std::vector<SharedMutex*>& locks_;
  const Mode mode_;
};

/// Executions read the packed parameters together; packing them again waits until no execution of any plan reads them.
void Plan::run_packed(const Frame& frame, std::uint64_t epoch, tenon_stream& stream, std::uint64_t* out_node_id) {
  {
    const PackLocks reading(pack_locks_, PackLocks::Mode::shared);
    const bool was_executed = executed_ && executed_epoch_ == epoch;
    if (is_packed(epoch) && (was_executed || !stream.recording)) {
      for (const PackedParameter& p : packed_parameters_) p.packed->wait_on(stream);
      if (!was_executed) {
        executed_epoch_ = epoch;
        executed_ = true;
      }
      run(frame, out_node_id);
      return;
    }
  }
  if (stream.recording) {
    throw Error(TENON_UNSUPPORTED, "plan_execute: parameters of epoch " + std::to_string(epoch) +
                                       " are not packed yet, and a recording would not pack them; execute the plan with that epoch first");
  }
  const PackLocks writing(pack_locks_, PackLocks::Mode::exclusive);
  pack(frame, epoch, stream, out_node_id);
  executed_epoch_ = epoch;
  executed_ = true;
  run(frame, out_node_id);  // before the parameters are packed for another epoch
}

bool Plan::is_packed(std::uint64_t epoch) const {
  return std::all_of(packed_parameters_.begin(), packed_parameters_.end(),
                     [epoch](const PackedParameter& p) { return p.packed->has(epoch); });
}

/// Packs the parameters that are out of date.
void Plan::pack(const Frame& frame, std::uint64_t epoch, tenon_stream& stream, std::uint64_t* out_node_id) {
  for (const PackedParameter& p : packed_parameters_) {
    if (p.packed->has(epoch)) {
      p.packed->wait_on(stream);
      continue;
    }
    p.packed->pack(epoch, stream, [&] {
      const auto convert = [&](const Node& conversion) {
        *out_node_id = conversion.id;
        conversion.function(frame.conversions.at(conversion.outputs[0]));
      };
      for (const Packing::Converted& converted : p.converted) convert(*layout_.graph.conversion_of(converted.value));
      for (const Packing::Read& copy : p.copies) {
        const Node& node = layout_.steps[copy.node].node;
        const Node* const conversion = layout_.graph.conversion_of(node.inputs[copy.input]);
        if (conversion != nullptr && !layout_.converted.contains(conversion->outputs[0])) convert(*conversion);
        *out_node_id = node.id;
        node.row->kernel->traits.pack(frame.calls[copy.node], copy.input, pointer(p.packed->address() + copy.offset));
      }
    });
  }
}

void Plan::check_recordable(std::uint64_t* out_node_id) const {
  if (markers_ != nullptr) throw Error(TENON_UNSUPPORTED, "plan_execute: a profiler marks the kernels, which a replay would not do");
  for (const Step& step : layout_.steps) {
    if (step.node.row->kernel->traits.capture_safe) continue;
    *out_node_id = step.node.id;
    throw Error(TENON_UNSUPPORTED, op_name(step.node) + ": its kernel reads results on the host and cannot be recorded");
  }
}

/// Calls run_step(launch, calls, index) for each launch in order, with the index of its first step. Throws CANCELLED before a step if the
/// host wants no more and nothing is lost by it. An error of calls that run together is reported for the node of the first, and names the
/// ops of the others.
template <class RunStep>
void Plan::for_each_step(const Frame& frame, std::uint64_t* out_node_id, const RunStep& run_step) const {
  const std::size_t asking = frame.host.run() == nullptr ? 0 : cancellable_;
  for (std::size_t s = 0; s < frame.launches.size();) {
    const Launch& launch = frame.launches[s];
    *out_node_id = launch.node_id;
    if (s < asking && frame.host.cancel_requested()) {
      throw Error(TENON_CANCELLED, cancelled_before("plan_execute", layout_.steps[s].node));
    }
    try {
      run_step(launch, &frame.calls[s], s);
    } catch (const Error& e) {
      if (launch.count == 1) throw;
      std::string others;
      for (std::size_t i = s + 1; i < s + launch.count; ++i) others += (others.empty() ? "" : ", ") + op_name(layout_.steps[i].node);
      throw Error(e.status(), std::string(e.what()) + " (in one launch with " + others + ")", e.node_id());
    }
    s += launch.count;
  }
}

void Plan::run(const Frame& frame, std::uint64_t* out_node_id) {
  if (frame.execution_id != 0) {
    run_profiled(frame, out_node_id);
  } else if (markers_ != nullptr) {
    run_marked(frame, out_node_id);
  } else {
    for_each_step(frame, out_node_id, [](const Launch& launch, const Call* calls, std::size_t) { launch(calls); });
  }
}

// ---------------------------------------------------------------- profiles

void set_kernel_markers(const KernelMarkers* markers) {
  kernel_markers = markers;
}

void Plan::name_steps(const tenon_graph& graph) {
  markers_ = kernel_markers.load();
  if (markers_ == nullptr) return;
  for (const Step& step : layout_.steps) {
    const auto* node = reinterpret_cast<const tenon_node*>(reinterpret_cast<const char*>(graph.nodes) +
                                                           std::uint64_t{step.node.index} * graph.node_stride);
    marker_names_.push_back(algorithm_of(step.node) + (node->name == nullptr ? "" : std::string(" ") + node->name));
  }
}

void Plan::run_marked(const Frame& frame, std::uint64_t* out_node_id) const {
  for_each_step(frame, out_node_id, [&](const Launch& launch, const Call* calls, std::size_t s) {
    markers_->begin(marker_names_[s].c_str());
    struct End {
      const KernelMarkers* markers;
      ~End() { markers->end(); }
    } end{markers_};
    launch(calls);
  });
}

/// Records events around each kernel: device time, also of work that is recorded now and replayed later.
void Plan::run_profiled(const Frame& frame, std::uint64_t* out_node_id) {
  if (frame.calls.empty()) return;
  std::shared_ptr<Timing> timing = profile_.begin(device_, frame.calls.size());
  tenon_stream& stream = *frame.calls[0].stream;
  timing->marks[0]->record(*stream.stream);
  for_each_step(frame, out_node_id, [&](const Launch& launch, const Call* calls, std::size_t s) {
    launch(calls);
    for (std::size_t i = 1; i <= launch.count; ++i) timing->marks[s + i]->record(*stream.stream);
  });
  profile_.end(std::move(timing), frame.execution_id, stream);
}

std::uint32_t Plan::read_profile(std::uint64_t execution_id, tenon_profile_record* out_records, std::uint32_t record_stride,
                                 std::uint32_t capacity) {
  const auto count = static_cast<std::uint32_t>(layout_.steps.size());
  if (count == 0) return 0;
  const std::shared_ptr<const Timing> timing = execution_id == 0 ? nullptr : profile_.find(execution_id);
  for (std::uint32_t s = 0; s < std::min(capacity, count); ++s) {
    const Node& node = layout_.steps[s].node;
    tenon_profile_record record{};
    record.id = node.id;
    record.node = node.index;
    record.fused_count = std::max<std::uint32_t>(1, node.fused_count);
    const std::string algorithm = algorithm_of(node);
    std::snprintf(record.algorithm, sizeof record.algorithm, "%s", algorithm.c_str());
    if (algorithm.size() >= sizeof record.algorithm) std::strcpy(record.algorithm + sizeof record.algorithm - sizeof "...", "...");
    if (timing != nullptr) {
      record.begin_ns = timing->marks[s]->nanoseconds_since(*timing->marks[0]);
      if (!node.joins_previous) record.duration_ns = timing->marks[s + 1]->nanoseconds_since(*timing->marks[s]);
    }
    std::memcpy(reinterpret_cast<char*>(out_records) + std::size_t{s} * record_stride, &record,
                std::min<std::size_t>(record_stride, sizeof record));
  }
  return count;
}

}  // namespace tenon::sdk
