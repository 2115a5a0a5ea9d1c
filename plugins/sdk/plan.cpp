// SPDX-License-Identifier: Apache-2.0
#include "plan.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include <tenon/sdk/needs.h>
#include <tenon/sdk/rounding.h>
#include <tenon/sdk/vendor_schema.h>

#include "elementwise_group.h"

namespace tenon::sdk {
namespace {

std::atomic<const KernelMarkers*> kernel_markers{nullptr};

void* pointer(std::uint64_t address) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(address));
}

/// One operand's address, filled in at each execution.
struct Patch {
  std::uint32_t operand;
  std::uint32_t binding;
};
struct WorkspacePatch {
  void** address;  ///< of an operand or a call's scratch
  std::uint64_t offset;
};
/// The kernel of a call, or of several that run together, kept separate from the calls so that the loop reads little else.
struct Launch {
  KernelFunction function;
  std::uint64_t node_id;
  void (*together)(const Call* calls, std::uint32_t count) = nullptr;
  std::uint32_t count = 1;  ///< calls from this one on that run together

  void operator()(const Call* calls) const {
    if (count > 1) {
      together(calls, count);
    } else {
      function(*calls);
    }
  }
};

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
  if (node.merged_heads) text += "+merged_heads";
  if (node.scale != TENON_NO_INDEX) text += "+dequantize";
  if (node.bias != TENON_NO_INDEX) text += "+bias";
  if (node.residual != TENON_NO_INDEX) text += "+residual";
  static constexpr const char* activations[] = {"", "+relu", "+sigmoid", "+tanh", "+clip", "+gelu", "+silu"};
  text += activations[node.activation.kind];
  if (node.relu_result != TENON_NO_INDEX) text += "+relu_grad";
  return node.y_scale == TENON_NO_INDEX ? text : text + "+quantize";
}

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

std::string cancelled_before(const char* slot, const Node& node) {
  return std::string(slot) + ": cancelled before " + algorithm_of(node);
}

}  // namespace

// ---------------------------------------------------------------- making a plan

/// The mutable state of one execution: operands with addresses, and the calls that point to them.
struct Plan::Frame {
  std::vector<Operand> operands;
  std::vector<Call> calls;
  std::vector<Launch> launches;  ///< one per call; those of calls that run together with an earlier one are skipped
  std::vector<Patch> patches;
  std::vector<WorkspacePatch> workspace_patches;
  std::vector<const void*> packed;
  std::uint64_t workspace = 0;  ///< the address that workspace_patches were last applied for
  Host host;                    ///< with the run of the execution
  std::uint64_t execution_id = 0;
  std::unique_ptr<Frame> next;  ///< in the list of spare frames
};

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
  markers_ = kernel_markers.load();
  if (markers_ != nullptr) name_steps(abi_graph);
  place_values(layout_);
  place_constants();
  for (Value& value : layout_.graph.values) {  // borrowed until now
    value.data = nullptr;
    value.packed = nullptr;
  }
  cancellable_ = count_cancellable();
  idle_.store(make_frame().release());
}

Plan::~Plan() {
  delete idle_.load();
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
    if (graph.values[v].kind == TENON_VALUE_CONSTANT) {
      packed_constants_.push_back(std::move(packed));
    } else {
      packed_parameters_.push_back({std::move(packed), packing.copies});
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

// ---------------------------------------------------------------- frames

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
  for (const Step& step : layout_.steps) {
    Call& call = frame->calls.emplace_back();
    frame->launches.push_back({step.node.function, step.node.id, step.node.row->kernel->traits.run_together});
    call.inputs = frame->operands.data() + frame->operands.size();
    for (const std::uint32_t v : step.node.inputs) append(v);
    call.outputs = frame->operands.data() + frame->operands.size();
    for (const std::uint32_t v : step.node.outputs) append(v);
    call.input_count = static_cast<std::uint32_t>(step.node.inputs.size());
    call.output_count = static_cast<std::uint32_t>(step.node.outputs.size());
    call.attributes = step.node.attributes.data();
    for (const EpilogueOperand& part : epilogue_operands) {
      if (step.node.*part.value == TENON_NO_INDEX) continue;
      call.epilogue.*part.operand = frame->operands.data() + frame->operands.size();
      append(step.node.*part.value);
    }
    call.epilogue.activation = step.node.activation;
    call.math = graph.options.math;
    call.deterministic = graph.options.deterministic != 0;
    call.channels_last = step.node.channels_last;
    call.merged_heads = step.node.merged_heads;
    call.node_id = step.node.id;
    call.device = graph.device;
    call.host = graph.host;
    if (!step.node.packed.empty()) {
      call.packed = frame->packed.data() + frame->packed.size();
      for (const std::uint64_t address : step.node.packed) frame->packed.push_back(pointer(address));
    }
    if (step.scratch_size > 0) frame->workspace_patches.push_back({&call.scratch, step.scratch_offset});
  }
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

void set_kernel_markers(const KernelMarkers* markers) {
  kernel_markers = markers;
}

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
  }
  const tenon_run* const run = TENON_HAS(&bindings, tenon_bindings, run) ? bindings.run : nullptr;
  if (frame.host.run() != run) {
    frame.host = frame.host.with(run);
    for (Call& call : frame.calls) call.host = frame.host;
  }
  frame.execution_id = TENON_HAS(&bindings, tenon_bindings, execution_id) ? bindings.execution_id : 0;
}

void Plan::execute(const tenon_bindings& bindings, std::uint64_t workspace, tenon_stream* stream, std::uint64_t* out_node_id) {
  check_needs("plan_execute", bindings.needs);
  const std::uint32_t expected = layout_.graph.binding_count;
  if (bindings.address_count < expected || (expected > 0 && bindings.addresses == nullptr)) {
    throw Error(TENON_INVALID_ARGUMENT, "plan_execute: expected " + std::to_string(expected) + " addresses, got " +
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
      for (const Packing::Read& copy : p.copies) {
        const Node& node = layout_.steps[copy.node].node;
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

void Plan::name_steps(const tenon_graph& graph) {
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

// ---------------------------------------------------------------- profiles

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
    record.fused_count = node.fused_count;
    std::snprintf(record.algorithm, sizeof record.algorithm, "%s", algorithm_of(node).c_str());
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
