#include <tenon/program.h>

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include <tenon/sdk/memory_plan.h>

#include "core/log.h"
#include "exec/context_state.h"
#include "exec/cost.h"
#include "exec/lower.h"
#include "exec/numerics.h"
#include "exec/op_versions.h"
#include "exec/oracle.h"
#include "exec/placement.h"
#include "exec/replay.h"
#include "graph/passes.h"

namespace tenon {
namespace {

/// Names of the outputs that check_numerics: all adds: one per floating result.
constexpr std::string_view watch_prefix = "check/";
/// Of one plan: sums of a few still fit 64 bits.
constexpr std::uint64_t most_workspace_bytes = std::uint64_t{1} << 60;

using exec::DeviceState;
using DevicePointer = std::shared_ptr<DeviceState>;

std::uint64_t bytes_of(const ValueInfo& info) {
  return static_cast<std::uint64_t>(info.shape.count() * size_of(info.dtype));
}

std::string type_of(const ValueInfo& info) {
  return std::string(name_of(info.dtype)) + info.shape.str();
}

/// Bytes from one device to another, by the shortest road there is. `staging` is host memory for the longest.
void copy_between(DeviceState& from, std::uint64_t source, DeviceState& to, std::uint64_t destination, std::uint64_t size,
                  std::vector<char>& staging) {
  if (size == 0) return;
  if (&from == &to) {
    to.copy(TENON_COPY_DEVICE_TO_DEVICE, destination, source, size);
  } else if (from.loaded == to.loaded) {
    from.synchronize();
    to.copy(TENON_COPY_DEVICE_TO_DEVICE, destination, source, size, from.handle);
  } else if (from.host_addressable()) {
    from.synchronize();
    to.copy(TENON_COPY_HOST_TO_DEVICE, destination, source, size);
  } else if (to.host_addressable()) {
    from.copy(TENON_COPY_DEVICE_TO_HOST, destination, source, size);
    from.synchronize();
  } else {
    if (staging.size() < size) staging.resize(size);
    const auto host = reinterpret_cast<std::uintptr_t>(staging.data());
    from.copy(TENON_COPY_DEVICE_TO_HOST, host, source, size);
    from.synchronize();
    to.copy(TENON_COPY_HOST_TO_DEVICE, destination, host, size);
    to.synchronize();
  }
}

}  // namespace

// ---------------------------------------------------------------- parameters

Tensor& ParameterStore::create(const std::string& name, const Device& device, DType dtype, const Shape& shape) {
  if (const auto found = tensors_.find(name); found != tensors_.end()) {
    if (found->second.dtype() != dtype || !(found->second.shape() == shape)) {
      throw Error(fmt::format("parameter '{}' is {}, but {}{} was asked for", name, found->second.str(), name_of(dtype), shape.str()));
    }
    return found->second;
  }
  touch();
  return tensors_[name] = device.empty(dtype, shape);
}

void ParameterStore::set(const std::string& name, const Tensor& value) {
  const Tensor& parameter = get(name);
  if (parameter.dtype() != value.dtype() || !(parameter.shape() == value.shape())) {
    throw Error(fmt::format("parameter '{}' is {}, but got {}", name, parameter.str(), value.str()));
  }
  const Tensor host = value.on_host() && value.is_dense() ? value : value.to_host();
  static_cast<DeviceState&>(*parameter.storage()->device)
      .upload(parameter.address(), host.raw(), static_cast<std::uint64_t>(host.size_bytes()));
  touch();
}

const Tensor& ParameterStore::get(const std::string& name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end()) throw Error(fmt::format("there is no parameter '{}'", name));
  return found->second;
}

// ---------------------------------------------------------------- programs

struct Program::State {
  /// One plan and what it is called with.
  struct Part {
    DevicePointer device;
    tenon_plan* plan = nullptr;
    std::uint64_t workspace = 0;
    std::vector<std::uint64_t> addresses;
    std::vector<std::uint32_t> slots;           ///< per address
    std::vector<NodeId> nodes;                  ///< per wire node
    std::uint64_t packed = 0;                   ///< bytes that the plan has taken for itself
    std::vector<std::uint32_t> traced_kernels;  ///< numbers of its kernels in the trace of that generation
    std::uint64_t trace_generation = 0;
  };
  struct Copy {
    DevicePointer from, to;
    std::uint32_t source, destination;  ///< slots
    std::uint64_t size;
  };
  /// A graph input on a device that reads it.
  struct InputUse {
    std::size_t input;
    DevicePointer device;
    std::uint32_t slot;
    Tensor staging;  ///< made when an operand first has to be copied
  };
  struct Output {
    DevicePointer device;
    std::uint32_t slot;
    DType dtype;
    Shape shape;
  };

  std::shared_ptr<ParameterStore> parameters;
  PlacementReport report;
  Graph graph;                       ///< what runs each time
  Graph complete;                    ///< with what `prelude` runs, if there is one
  std::unique_ptr<Program> prelude;  ///< runs when parameters have changed: its outputs are the memory of parameters of `graph`
  std::uint64_t prelude_epoch = 0;   ///< of the parameters that it has seen
  std::vector<ValueId> inputs;
  std::vector<InputUse> input_uses;
  std::vector<Part> parts;
  std::vector<std::vector<Copy>> before;  ///< per part
  std::vector<Copy> after;
  std::vector<std::uint64_t> slots;
  std::vector<Output> outputs;
  std::size_t visible = 0;             ///< outputs the caller asked for; the rest are watched by check_numerics
  std::vector<Tensor> own_outputs;     ///< memory of all outputs; undefined as long as the caller brings his own
  std::vector<Tensor> results;         ///< the visible ones, as handed out
  std::vector<Tensor> kept;            ///< arenas, constants, temporaries
  std::vector<DevicePointer> devices;  ///< each once
  std::vector<char> staging;
  CheckNumerics check = CheckNumerics::off;
  bool sync_debug = false;
  bool profile_wanted = false, profile_on = false;  ///< by the caller; in the plans
  bool kernels_named = false;                       ///< in the report
  std::size_t sent = 0;                             ///< parts of this run that their devices have got
  std::shared_ptr<exec::TraceRecorder> trace;
  std::unique_ptr<exec::Replay> replay;  ///< null: every run is executed
  exec::CallError error;

  ~State() {
    replay.reset();  // recordings point into the plans
    for (Part& part : parts) {
      if (part.plan != nullptr) part.device->table.plan_destroy(part.plan);
      part.device->books->refund_plan(part.packed);
    }
  }

  void compile(const Context& context, const ProgramOptions& options);
  void hoist(const Context& context, const ProgramOptions& options, Precision precision);
  void make_outputs(std::size_t first);
  const Tensor* made_by_prelude(const std::string& name) const;
  void bind_inputs(std::span<const Tensor> given);
  void execute();
  void run_parts(std::uint64_t epoch, bool traced);
  bool run_recorded(std::uint64_t epoch);
  void give_parts(std::uint64_t epoch, tenon_stream* stream);
  tenon_bindings bind(Part& part, std::uint64_t epoch);
  std::string why_not_replayed(Capture wanted) const;
  void check_results();

  [[noreturn]] void fail(tenon_status status, const DeviceState& device, const Part* part) const;
  /// Waits for the device. A failure is that of `part`, or of any part that ran there.
  void wait_for(const DeviceState& device, const Part* part);
  void set_profile(bool enabled);
  std::vector<tenon_profile_record> read_profile(const Part& part);
  std::vector<KernelTime> kernels_of(const Part& part, std::span<const tenon_profile_record> records) const;
  void name_kernels();
  void record(Part& part, std::uint64_t begin_ns);
};

namespace {

/// What compile() works out before memory is laid out.
struct Layout {
  const Graph& graph;
  std::vector<exec::Partition> partitions;
  std::vector<std::uint32_t> part_of;               ///< per node
  std::vector<std::vector<std::uint32_t>> readers;  ///< per value: parts, ascending, unique

  explicit Layout(const Graph& g, std::vector<exec::Partition> sets) : graph(g), partitions(std::move(sets)) {
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

  /// Updates whose new value may be written over the parameter: one per value, made on the parameter's device, after every other read.
  std::vector<bool> donatable(const std::map<ValueId, DevicePointer>& home) const {
    std::set<ValueId> kept_old, taken;
    for (const GraphOutput& output : graph.outputs()) kept_old.insert(output.value);
    for (const GraphUpdate& update : graph.updates()) kept_old.insert(update.value);
    std::vector<bool> result;
    for (const GraphUpdate& update : graph.updates()) {
      const bool yes = computed(update.value) && !kept_old.contains(update.parameter) && !taken.contains(update.value) &&
                       home.at(update.parameter) == partitions[producer(update.value)].device &&
                       (readers[update.parameter].empty() || readers[update.parameter].back() <= producer(update.value));
      if (yes) taken.insert(update.value);
      result.push_back(yes);
    }
    return result;
  }
};

}  // namespace

void Program::State::compile(const Context& context, const ProgramOptions& options) {
  exec::ContextState& state = *context.state();
  check = state.config.check_numerics;
  sync_debug = state.config.sync_debug;
  trace = state.trace;
  visible = graph.outputs().size();
  if (check == CheckNumerics::all) {
    for (const NodeInfo& node : std::vector<NodeInfo>(graph.nodes())) {
      for (const ValueId v : node.outputs) {
        if (v != no_id && is_floating(graph.info(v).dtype)) graph.output(std::string(watch_prefix) + graph.info(v).name, Value(&graph, v));
      }
    }
  }
  if (options.freeze) {
    if (options.parameters == nullptr) throw Error("a frozen program: wanted the store that has the parameters' values, got none");
    graph = graph::freeze(std::move(graph), [&](const std::string& name) { return options.parameters->get(name).to_host(); });
  }
  const Precision precision = options.precision.value_or(state.config.precision);
  // After what looks for ops side by side, which casts would part; before what makes constants and prepares weights, so that these are
  // cast.
  if (options.optimize) graph = graph::optimize(std::move(graph));
  if (precision == Precision::mixed_bfloat16) graph = graph::mix_precision(std::move(graph), DType::bf16);
  if (precision == Precision::mixed_float16) graph = graph::mix_precision(std::move(graph), DType::f16);
  if (options.optimize) {
    graph = exec::fold_on_oracle(context, std::move(graph));
    hoist(context, options, precision);
  }
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    if (graph.info(v).kind == ValueKind::input) inputs.push_back(v);
  }

  const std::string fallback = options.device.empty() ? context.default_device().name() : options.device;
  const DevicePointer main_device = state.open_found(fallback);
  const tenon_plan_options plan_options = exec::plan_options(state.config, precision);
  const auto device_of = exec::place(state, graph, fallback, plan_options, report);
  const Layout layout(graph, exec::partition(graph, device_of, sync_debug));
  report.partitions = static_cast<std::uint32_t>(layout.partitions.size());

  // A parameter lives where it was put, else where it is first read or made; one that the prelude makes, where it is made.
  std::map<ValueId, DevicePointer> home;
  std::map<ValueId, std::uint64_t> address_of;
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    const ValueInfo& info = graph.info(v);
    if (info.kind != ValueKind::parameter) continue;
    if (const Tensor* made = made_by_prelude(info.name); made != nullptr) {
      home[v] = std::static_pointer_cast<DeviceState>(made->storage()->device);
      address_of[v] = made->address();
      continue;
    }
    DevicePointer device = main_device;
    if (!layout.readers[v].empty()) device = layout.partitions[layout.readers[v].front()].device;
    if (parameters->has(info.name)) device = std::static_pointer_cast<DeviceState>(parameters->get(info.name).storage()->device);
    address_of[v] = parameters->create(info.name, Device(device), info.dtype, info.shape).address();
    home[v] = device;
  }
  const std::vector<bool> donatable = layout.donatable(home);

  // Slots: one address per (value, device). Arena blocks get theirs when all are known.
  std::map<std::pair<ValueId, DeviceState*>, std::uint32_t> slot_of;
  struct Block {
    DevicePointer device;
    std::uint32_t slot;  ///< TENON_NO_INDEX: the workspace of part interval.first
    sdk::Interval interval;
  };
  std::vector<Block> blocks;
  const auto new_slot = [&](std::uint64_t address) {
    slots.push_back(address);
    return static_cast<std::uint32_t>(slots.size() - 1);
  };
  const auto arena_slot = [&](const DevicePointer& device, std::uint64_t size, std::uint32_t first, std::uint32_t last) {
    const std::uint32_t slot = new_slot(0);
    blocks.push_back({device, slot, {first, last, sdk::aligned_size(std::max<std::uint64_t>(size, 1))}});
    return slot;
  };
  const auto last_part = static_cast<std::uint32_t>(layout.partitions.empty() ? 0 : layout.partitions.size() - 1);

  std::vector<bool> needed_outside(graph.values().size(), false);
  std::vector<bool> wanted_after(graph.values().size(), false);
  for (const GraphOutput& output : graph.outputs()) wanted_after[output.value] = needed_outside[output.value] = true;
  for (const GraphUpdate& update : graph.updates()) wanted_after[update.value] = needed_outside[update.value] = true;
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    if (!layout.computed(v)) continue;
    for (const std::uint32_t p : layout.readers[v]) needed_outside[v] = needed_outside[v] || p != layout.producer(v);
  }

  // Where each value is made or kept.
  std::map<ValueId, std::pair<DevicePointer, std::uint32_t>> origin;
  for (const auto& [v, device] : home) {
    origin[v] = {device, new_slot(address_of[v])};
    slot_of[{v, device.get()}] = origin[v].second;
  }
  for (std::size_t u = 0; u < graph.updates().size(); ++u) {
    if (!donatable[u]) continue;
    const GraphUpdate& update = graph.updates()[u];
    origin[update.value] = origin[update.parameter];
    slot_of[{update.value, home[update.parameter].get()}] = origin[update.parameter].second;
  }
  std::set<ValueId> direct;  // outputs written by their producer
  for (const GraphOutput& output : graph.outputs()) {
    const ValueId v = output.value;
    const ValueInfo& info = graph.info(v);
    const bool is_direct = layout.computed(v) && !origin.contains(v);
    const DevicePointer device = is_direct            ? layout.partitions[layout.producer(v)].device
                                 : origin.contains(v) ? origin[v].first
                                                      : main_device;
    const std::uint32_t slot = new_slot(0);
    outputs.push_back({device, slot, info.dtype, info.shape});
    if (is_direct) {
      origin[v] = {device, slot};
      slot_of[{v, device.get()}] = slot;
      direct.insert(v);
    }
  }
  for (ValueId v = 0; v < graph.values().size(); ++v) {
    if (!layout.computed(v) || !needed_outside[v] || origin.contains(v)) continue;
    const std::uint32_t p = layout.producer(v);
    const std::uint32_t last = wanted_after[v] ? last_part : std::max(p, layout.readers[v].empty() ? p : layout.readers[v].back());
    const DevicePointer& device = layout.partitions[p].device;
    origin[v] = {device, arena_slot(device, bytes_of(graph.info(v)), p, last)};
    slot_of[{v, device.get()}] = origin[v].second;
  }

  // Where it is read.
  before.resize(layout.partitions.size());
  const auto input_slot = [&](ValueId v, const DevicePointer& device) {
    const auto [found, inserted] = slot_of.try_emplace({v, device.get()}, 0);
    if (inserted) {
      found->second = new_slot(0);
      const auto position = static_cast<std::size_t>(std::find(inputs.begin(), inputs.end(), v) - inputs.begin());
      input_uses.push_back({position, device, found->second, {}});
    }
    return found->second;
  };
  const auto slot_for = [&](ValueId v, std::uint32_t part) {
    const DevicePointer& device = layout.partitions[part].device;
    const ValueInfo& info = graph.info(v);
    if (info.kind == ValueKind::input) return input_slot(v, device);
    const auto [found, inserted] = slot_of.try_emplace({v, device.get()}, 0);
    if (inserted) {
      // Devices are separate memories even where they could reach each other: what crosses is copied once a run, and counted.
      std::uint32_t last = part;
      for (const std::uint32_t p : layout.readers[v]) {
        if (layout.partitions[p].device == device) last = std::max(last, p);
      }
      found->second = arena_slot(device, bytes_of(info), part, last);
      before[part].push_back({origin[v].first, device, origin[v].second, found->second, bytes_of(info)});
      report.copies.push_back({info.name, origin[v].first->info.name, device->info.name, bytes_of(info)});
    }
    return found->second;
  };

  const auto uses = exec::count_uses(graph);
  for (std::uint32_t p = 0; p < layout.partitions.size(); ++p) {
    const exec::Partition& set = layout.partitions[p];
    std::vector<GraphUpdate> donations;
    for (std::size_t u = 0; u < graph.updates().size(); ++u) {
      if (donatable[u] && layout.producer(graph.updates()[u].value) == p) donations.push_back(graph.updates()[u]);
    }
    exec::WireGraph wire;
    exec::lower(graph, set.nodes, needed_outside, donations, uses, wire);
    exec::speak_versions_of(*set.device->loaded->backend, graph, wire);
    Part part;
    part.device = set.device;
    part.nodes = wire.node_ids;
    for (const ValueId v : wire.bound) part.slots.push_back(slot_for(v, p));
    part.addresses.resize(part.slots.size());
    parts.push_back(std::move(part));  // from here on the destructor sees to the plan
    const std::string what = fmt::format("device '{}': a plan of {} nodes", set.device->info.name, set.nodes.size());
    const tenon_backend_table& table = set.device->table;
    const auto create = [&] { return table.plan_create(set.device->handle, &wire.graph, &plan_options, &parts.back().plan, error.get()); };
    exec::check(exec::fenced("plan_create", error, create), error, what);
    tenon_plan_info info{};
    info.struct_size = sizeof info;
    exec::check(set.device->table.plan_info(parts.back().plan, &info, error.get()), error, what);
    if (info.workspace_size_bytes > most_workspace_bytes) {
      throw Error(Status::out_of_memory,
                  fmt::format("{} wants {} bytes of workspace, more than there can be", what, info.workspace_size_bytes));
    }
    blocks.push_back({set.device, TENON_NO_INDEX, {p, p, sdk::aligned_size(info.workspace_size_bytes)}});
    set.device->books->charge_plan(info.packed_size_bytes, fmt::format("a plan of {} nodes", set.nodes.size()));
    parts.back().packed = info.packed_size_bytes;
    report.kernels += info.kernel_count;
    report.packed_size_bytes += info.packed_size_bytes;
    if (std::find(devices.begin(), devices.end(), set.device) == devices.end()) devices.push_back(set.device);
  }

  // What is left to copy when every part has run: outputs first, then parameters, those that read other parameters by way of a temporary.
  const auto keep = [&](const DevicePointer& device, std::uint64_t size) {
    kept.push_back(Device(device).empty(DType::u8, {static_cast<std::int64_t>(size)}));
    return kept.back().address();
  };
  const auto source_of = [&](ValueId v) -> std::pair<DevicePointer, std::uint32_t> {
    const ValueInfo& info = graph.info(v);
    if (info.kind == ValueKind::input) return {main_device, input_slot(v, main_device)};
    if (info.kind != ValueKind::constant) return origin.at(v);
    const std::uint64_t address = keep(main_device, bytes_of(info));
    main_device->upload(address, info.constant.raw(), bytes_of(info));
    return {main_device, new_slot(address)};
  };
  const auto crosses = [&](ValueId v, const Copy& copy) {
    if (copy.from != copy.to) report.copies.push_back({graph.info(v).name, copy.from->info.name, copy.to->info.name, copy.size});
  };
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const ValueId v = graph.outputs()[i].value;
    if (direct.contains(v) && origin[v].second == outputs[i].slot) continue;
    const auto [device, slot] = source_of(v);
    after.push_back({device, outputs[i].device, slot, outputs[i].slot, bytes_of(graph.info(v))});
    crosses(v, after.back());
  }
  std::vector<Copy> last;
  for (std::size_t u = 0; u < graph.updates().size(); ++u) {
    if (donatable[u]) continue;
    const GraphUpdate& update = graph.updates()[u];
    const std::uint64_t size = bytes_of(graph.info(update.value));
    auto [device, slot] = source_of(update.value);
    if (graph.info(update.value).kind == ValueKind::parameter) {
      const std::uint32_t temporary = new_slot(keep(device, size));
      after.push_back({device, device, slot, temporary, size});
      slot = temporary;
    }
    last.push_back({device, home[update.parameter], slot, origin[update.parameter].second, size});
    crosses(update.value, last.back());
  }
  after.insert(after.end(), last.begin(), last.end());
  report.copies_inserted = static_cast<std::uint32_t>(report.copies.size());
  for (const PlannedCopy& copy : report.copies) report.bytes_copied_per_run += copy.size_bytes;

  // One arena per device for workspaces and for what lies between partitions.
  std::map<DeviceState*, std::vector<std::size_t>> by_device;
  for (std::size_t b = 0; b < blocks.size(); ++b) by_device[blocks[b].device.get()].push_back(b);
  for (const auto& [device, members] : by_device) {
    std::vector<sdk::Interval> intervals;
    for (const std::size_t b : members) intervals.push_back(blocks[b].interval);
    const std::uint64_t size = sdk::assign_offsets(intervals);
    report.workspace_size_bytes += size;
    const std::uint64_t base = keep(blocks[members.front()].device, size);
    for (std::size_t i = 0; i < members.size(); ++i) {
      const Block& block = blocks[members[i]];
      const std::uint64_t address = base + intervals[i].offset;
      if (block.slot == TENON_NO_INDEX) {
        parts[block.interval.first].workspace = address;
      } else {
        slots[block.slot] = address;
      }
    }
  }
  own_outputs.resize(outputs.size());
  make_outputs(visible);
  const auto records = [](const DevicePointer& device) {
    const tenon_capture_table* block = device->table.capture;
    return block != nullptr && block->begin != nullptr && block->end != nullptr && block->replay != nullptr && block->destroy != nullptr;
  };
  if (std::any_of(devices.begin(), devices.end(), records)) {
    const std::string reason = why_not_replayed(state.config.capture);
    report.replay = reason.empty() ? "from the third run at the same addresses on" : "never: " + reason;
    if (reason.empty()) replay = std::make_unique<exec::Replay>(devices.front());
  }
  if (state.config.log_device_placement) {
    name_kernels();
    log::print(report.mapping());  // the prelude has printed its own
  }
  if (options.freeze) graph = graph::drop_constants(std::move(graph));
  if (prelude == nullptr) return;
  if (options.freeze) complete = graph::drop_constants(std::move(complete));
  for (Placement node : prelude->placement().nodes) {
    node.once = true;
    report.nodes.push_back(std::move(node));
  }
}

/// Memory for those outputs from number `first` on that have none.
void Program::State::make_outputs(std::size_t first) {
  for (std::size_t i = first; i < outputs.size(); ++i) {
    if (own_outputs[i].defined()) continue;
    own_outputs[i] = Device(outputs[i].device).empty(outputs[i].dtype, outputs[i].shape);
    slots[outputs[i].slot] = own_outputs[i].address();
  }
  if (first == 0) results.assign(own_outputs.begin(), own_outputs.begin() + static_cast<std::ptrdiff_t>(visible));
}

/// Puts what depends on parameters alone into a program of its own.
void Program::State::hoist(const Context& context, const ProgramOptions& options, Precision precision) {
  graph::Hoisted halves = graph::hoist(graph);
  if (halves.prelude.outputs().empty()) return;
  complete = std::move(graph);
  graph = std::move(halves.main);
  // what was to be mixed is
  const Precision own = precision == Precision::float32 ? precision : Precision::tf32;
  prelude = std::make_unique<Program>(
      context, halves.prelude, ProgramOptions{.device = options.device, .parameters = parameters, .optimize = false, .precision = own});
  prelude->state_->make_outputs(0);
}

/// The result of the prelude by that name, or null.
const Tensor* Program::State::made_by_prelude(const std::string& name) const {
  if (prelude == nullptr) return nullptr;
  const State& made = *prelude->state_;
  for (std::size_t i = 0; i < made.visible; ++i) {
    if (made.graph.outputs()[i].name == name) return &made.results[i];
  }
  return nullptr;
}

void Program::State::bind_inputs(std::span<const Tensor> given) {
  if (given.size() != inputs.size()) throw Error(fmt::format("program: {} inputs wanted, got {}", inputs.size(), given.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const ValueInfo& info = graph.info(inputs[i]);
    if (given[i].dtype() != info.dtype || !(given[i].shape() == info.shape)) {
      throw Error(fmt::format("input '{}': wanted {}, got {}", info.name, type_of(info), given[i].str()));
    }
  }
  for (InputUse& use : input_uses) {
    const Tensor& tensor = given[use.input];
    const bool there = tensor.storage()->device.get() == use.device.get();
    const bool in_reach = there || (use.device->host_addressable() && tensor.on_host());
    if (in_reach && tensor.is_dense()) {
      slots[use.slot] = tensor.address();
      continue;
    }
    if (!use.staging.defined()) use.staging = Device(use.device).empty(tensor.dtype(), tensor.shape());
    const auto size = static_cast<std::uint64_t>(tensor.size_bytes());
    if (tensor.is_dense() && tensor.on_host()) {
      use.device->copy(TENON_COPY_HOST_TO_DEVICE, use.staging.address(), tensor.address(), size);
    } else {
      use.device->upload(use.staging.address(), tensor.to_host().raw(), size);
    }
    slots[use.slot] = use.staging.address();
  }
}

void Program::State::execute() {
  const bool traced = trace->on();
  const exec::TraceScope scope(*trace, "run");
  if (profile_on != (profile_wanted || traced)) set_profile(!profile_on);
  if (traced) {
    for (const DevicePointer& device : devices) trace->add_memory(device->info.name, device->books->use().live_size_bytes);
  }
  if (prelude != nullptr && prelude_epoch != parameters->epoch()) {
    prelude->run(std::span<const Tensor>());
    prelude_epoch = parameters->epoch();
  }
  sent = 0;
  const std::uint64_t epoch = parameters->epoch();
  if (profile_on || replay == nullptr || !run_recorded(epoch)) run_parts(epoch, traced);
  for (const DevicePointer& device : devices) wait_for(*device, nullptr);
  if (!graph.updates().empty()) parameters->touch();
}

tenon_bindings Program::State::bind(Part& part, std::uint64_t epoch) {
  for (std::size_t i = 0; i < part.slots.size(); ++i) part.addresses[i] = slots[part.slots[i]];
  tenon_bindings bindings{};
  bindings.struct_size = sizeof bindings;
  bindings.address_count = static_cast<std::uint32_t>(part.addresses.size());
  bindings.addresses = part.addresses.data();
  bindings.parameters_epoch = epoch;
  return bindings;
}

void Program::State::run_parts(std::uint64_t epoch, bool traced) {
  const auto run_copy = [&](const Copy& copy) {
    if (copy.from != copy.to) wait_for(*copy.from, nullptr);
    copy_between(*copy.from, slots[copy.source], *copy.to, slots[copy.destination], copy.size, staging);
  };
  for (std::size_t p = 0; p < parts.size(); ++p) {
    for (const Copy& copy : before[p]) run_copy(copy);
    Part& part = parts[p];
    const tenon_bindings bindings = bind(part, epoch);
    const std::uint64_t begin_ns = traced ? exec::TraceRecorder::now_ns() : 0;
    const tenon_status status = exec::fenced("plan_execute", error, [&] {
      return part.device->table.plan_execute(part.plan, &bindings, part.workspace, part.device->stream, error.get());
    });
    if (status != TENON_OK) fail(status, *part.device, &part);
    sent = p + 1;
    if (sync_debug || traced) wait_for(*part.device, &part);
    if (traced) record(part, begin_ns);
  }
  for (const Copy& copy : after) run_copy(copy);
  if (replay != nullptr) replay->executed(epoch);
}

/// Replays the run, recording it first if its time has come. False: it is to be executed.
bool Program::State::run_recorded(std::uint64_t epoch) {
  const exec::Replay::Turn turn = replay->next(slots, epoch);
  if (turn == exec::Replay::Turn::execute) return false;
  if (turn == exec::Replay::Turn::record && !replay->record(epoch, [&](tenon_stream* stream) { give_parts(epoch, stream); })) return false;
  sent = parts.size();
  const DeviceState& device = *devices.front();
  const tenon_status status = replay->replay(error.get());
  if (status != TENON_OK) fail(status, device, nullptr);
  if (turn == exec::Replay::Turn::replay) {  // a recording has counted its copies
    const auto count = [&](const Copy& copy) {
      if (copy.size > 0) device.tally->add_copy(TENON_COPY_DEVICE_TO_DEVICE, copy.size);
    };
    for (const std::vector<Copy>& copies : before) std::for_each(copies.begin(), copies.end(), count);
    std::for_each(after.begin(), after.end(), count);
  }
  return true;
}

/// All of a run on one device, given to a stream that records it.
void Program::State::give_parts(std::uint64_t epoch, tenon_stream* stream) {
  DeviceState& device = *devices.front();
  const auto give = [&](const Copy& copy) {
    device.copy(TENON_COPY_DEVICE_TO_DEVICE, slots[copy.destination], slots[copy.source], copy.size, nullptr, stream);
  };
  for (std::size_t p = 0; p < parts.size(); ++p) {
    std::for_each(before[p].begin(), before[p].end(), give);
    const tenon_bindings bindings = bind(parts[p], epoch);
    const tenon_status status = exec::fenced("plan_execute", error, [&] {
      return device.table.plan_execute(parts[p].plan, &bindings, parts[p].workspace, stream, error.get());
    });
    if (status != TENON_OK) fail(status, device, &parts[p]);
  }
  std::for_each(after.begin(), after.end(), give);
}

/// What keeps runs from being recorded on devices that could; empty: nothing.
std::string Program::State::why_not_replayed(Capture wanted) const {
  if (wanted == Capture::off) return "capture is off";
  if (sync_debug) return "sync_debug waits for each node";
  if (check != CheckNumerics::off) return "check_numerics looks at results";
  const DevicePointer& device = devices.front();
  const auto crosses = [&](const Copy& copy) { return copy.from != device || copy.to != device; };
  const auto any_crosses = [&](const std::vector<Copy>& copies) { return std::any_of(copies.begin(), copies.end(), crosses); };
  if (devices.size() > 1 || any_crosses(after) || std::any_of(before.begin(), before.end(), any_crosses))
    return "it runs on several devices";
  if (report.kernels + after.size() < 2) return "it is one launch already";
  const loader::Backend& backend = *device->loaded->backend;
  const std::span list(backend.info().capabilities, backend.info().capability_count);
  for (const NodeInfo& node : graph.nodes()) {
    const std::uint32_t version = exec::spoken_version(backend, node);
    const auto safe = [&](const tenon_capability& c) {
      return c.op == node.op && c.version == version && (c.features & TENON_FEATURE_CAPTURE_SAFE) != 0;
    };
    if (std::none_of(list.begin(), list.end(), safe)) return fmt::format("{} '{}' cannot be recorded", op_name(node.op), node.name);
  }
  return {};
}

void Program::State::fail(tenon_status status, const DeviceState& device, const Part* part) const {
  std::string where = fmt::format("device '{}'", device.info.name);
  std::string advice;
  if (part == nullptr) {  // found out when waited for: of one of the plans that ran there
    std::size_t count = 0;
    for (std::size_t p = 0; p < sent; ++p) {
      if (parts[p].device.get() != &device) continue;
      part = &parts[p];
      ++count;
    }
    if (count != 1) part = nullptr;
    if (count > 1) where += fmt::format(", one of {} plans", count);
    advice = "; with sync_debug: true each node is waited for, and the one that fails is named";
  }
  if (part != nullptr && part->nodes.size() == 1) {
    const NodeInfo& node = graph.nodes()[part->nodes[0]];
    where += fmt::format(", node '{}' ({})", node.name, op_name(node.op));
    advice.clear();
  } else if (part != nullptr && error.node() < part->nodes.size()) {
    const NodeInfo& node = graph.nodes()[part->nodes[error.node()]];
    where += fmt::format(", node '{}' ({})", node.name, op_name(node.op));
    advice.clear();
  }
  const std::string text = error.text()[0] != '\0' ? error.text() : name_of(static_cast<Status>(status));
  throw Error(static_cast<Status>(status), fmt::format("{}: {}{}", where, text, advice));
}

void Program::State::wait_for(const DeviceState& device, const Part* part) {
  if (device.inline_streams()) return;
  const exec::TraceScope scope(*trace, "wait");
  const tenon_status status = device.table.stream_synchronize(device.stream, error.get());
  if (status != TENON_OK) fail(status, device, part);
}

void Program::State::check_results() {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    // Watched values come after the visible ones, in the order of their nodes: the first bad one is the culprit.
    const std::size_t at = outputs.size() == visible ? i : (i + visible) % outputs.size();
    const auto bad = exec::find_non_finite(own_outputs[at]);
    if (!bad) continue;
    std::string name = graph.outputs()[at].name;
    if (name.starts_with(watch_prefix)) name.erase(0, watch_prefix.size());
    throw Error(Status::internal,
                fmt::format("check_numerics: '{}' has {} at index {} of {}", name, bad->value, bad->index, own_outputs[at].str()));
  }
}

Program::Program(const Context& context, const Graph& graph, const ProgramOptions& options) : state_(std::make_unique<State>()) {
  state_->graph = graph;
  state_->parameters = options.parameters != nullptr && !options.freeze ? options.parameters : std::make_shared<ParameterStore>();
  state_->compile(context, options);
}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

const std::vector<Tensor>& Program::run(std::span<const Tensor> inputs) {
  if (state_->results.size() != state_->visible) state_->make_outputs(0);
  state_->bind_inputs(inputs);
  state_->execute();
  if (state_->check != CheckNumerics::off) state_->check_results();
  return state_->results;
}

void Program::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  State& s = *state_;
  if (outputs.size() != s.visible) throw Error(fmt::format("program: {} outputs wanted, got {}", s.visible, outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool fits =
        outputs[i].dtype() == s.outputs[i].dtype && outputs[i].shape() == s.outputs[i].shape && outputs[i].is_dense() &&
        (outputs[i].storage()->device == s.outputs[i].device || (s.outputs[i].device->host_addressable() && outputs[i].on_host()));
    if (!fits) {
      throw Error(fmt::format("output '{}': wanted a dense {}{} on {}, got {}", s.graph.outputs()[i].name, name_of(s.outputs[i].dtype),
                              s.outputs[i].shape.str(), s.outputs[i].device->info.name, outputs[i].str()));
    }
  }
  s.bind_inputs(inputs);
  std::vector<Tensor> mine(s.own_outputs.begin(), s.own_outputs.begin() + static_cast<std::ptrdiff_t>(s.visible));
  const auto put = [&](std::span<Tensor> tensors) {
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      s.own_outputs[i] = tensors[i];
      s.slots[s.outputs[i].slot] = tensors[i].defined() ? tensors[i].address() : 0;
    }
  };
  put(outputs);
  try {
    s.execute();
    if (s.check != CheckNumerics::off) s.check_results();
  } catch (...) {
    put(mine);
    throw;
  }
  put(mine);
}

const PlacementReport& Program::placement() const {
  State& s = *state_;
  s.name_kernels();
  if (s.replay != nullptr) {
    s.report.records = s.replay->records();
    s.report.replays = s.replay->replays();
    if (!s.replay->stopped().empty()) s.report.replay = "no longer: " + s.replay->stopped();
  }
  return s.report;
}
const Graph& Program::graph() const {
  return state_->prelude != nullptr ? state_->complete : state_->graph;
}
const std::shared_ptr<ParameterStore>& Program::parameters() const {
  return state_->parameters;
}
std::size_t Program::input_count() const {
  return state_->inputs.size();
}
std::size_t Program::output_count() const {
  return state_->visible;
}

Tensor Program::make_output(std::size_t i) const {
  const State::Output& output = state_->outputs[i];
  return Device(output.device).empty(output.dtype, output.shape);
}

// ---------------------------------------------------------------- kernels and their times

void Program::State::set_profile(bool enabled) {
  for (Part& part : parts) {
    const tenon_profile_table* table = part.device->table.profile;
    if (table == nullptr) continue;
    exec::check(table->enable(part.plan, enabled ? 1 : 0, error.get()), error, fmt::format("device '{}': profile", part.device->info.name));
  }
  profile_on = enabled;
}

std::vector<tenon_profile_record> Program::State::read_profile(const Part& part) {
  const tenon_profile_table* table = part.device->table.profile;
  if (table == nullptr) return {};
  const auto read = [&](std::vector<tenon_profile_record>& records) {
    std::uint32_t count = 0;
    exec::check(table->read(part.plan, records.data(), static_cast<std::uint32_t>(records.size()), &count, error.get()), error,
                fmt::format("device '{}': profile", part.device->info.name));
    return count;
  };
  std::vector<tenon_profile_record> records;
  records.resize(read(records));
  records.resize(std::min<std::size_t>(records.size(), read(records)));
  return records;
}

std::vector<Program::KernelTime> Program::State::kernels_of(const Part& part, std::span<const tenon_profile_record> records) const {
  const std::vector<std::vector<NodeId>> nodes = exec::kernel_nodes(graph, part.nodes, records);
  std::vector<KernelTime> kernels(records.size());
  for (std::size_t r = 0; r < records.size(); ++r) {
    KernelTime& kernel = kernels[r];
    kernel.device = part.device->info.name;
    kernel.algorithm = records[r].algorithm;
    kernel.duration_ns = records[r].duration_ns;
    kernel.begin_ns = records[r].begin_ns;
    if (records[r].node < part.nodes.size()) {
      const NodeInfo& node = graph.nodes()[part.nodes[records[r].node]];
      kernel.node = node.name;
      kernel.op = op_name(node.op);
    }
    for (const NodeId n : nodes[r]) kernel.nodes.push_back(graph.nodes()[n].name);
    const exec::Cost cost = exec::cost_of(graph, nodes[r]);
    kernel.flops = cost.flops;
    kernel.size_bytes = cost.size_bytes;
  }
  return kernels;
}

/// Tells the report which kernels there are. A backend that does not know before the first run is asked again the next time.
void Program::State::name_kernels() {
  if (kernels_named) return;
  kernels_named = true;
  const bool before_it_was_on = profile_on;
  if (!profile_on) set_profile(true);
  for (const Part& part : parts) {
    const std::vector<tenon_profile_record> records = read_profile(part);
    if (records.empty() && part.device->table.profile != nullptr) kernels_named = false;
    for (const tenon_profile_record& record : records) {
      if (record.node >= part.nodes.size()) continue;
      std::string& algorithm = report.nodes[part.nodes[record.node]].algorithm;
      if (algorithm.empty()) algorithm = record.algorithm;
    }
  }
  if (!before_it_was_on) set_profile(false);
}

/// The plan that has just run, and its kernels, as events.
void Program::State::record(Part& part, std::uint64_t begin_ns) {
  const std::uint64_t duration_ns = exec::TraceRecorder::now_ns() - begin_ns;
  std::vector<tenon_profile_record> records = read_profile(part);
  if (records.empty() && part.nodes.size() == 1) {  // a backend without times per kernel: the plan's are its only node's
    tenon_profile_record whole{};
    whole.fused_count = 1;
    whole.duration_ns = duration_ns;
    records.push_back(whole);
  }
  if (part.trace_generation != trace->generation() || part.traced_kernels.size() != records.size()) {
    part.trace_generation = trace->generation();
    part.traced_kernels.clear();
    const std::vector<KernelTime> kernels = kernels_of(part, records);
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      const KernelTime& kernel = kernels[k];
      const std::uint64_t id = records[k].node < part.nodes.size() ? graph.nodes()[part.nodes[records[k].node]].id : 0;
      part.traced_kernels.push_back(trace->kernel({kernel.node, kernel.op, kernel.device, kernel.algorithm, id, kernel.flops,
                                                   kernel.size_bytes, static_cast<std::uint32_t>(kernel.nodes.size())}));
    }
  }
  exec::TraceEvent event;
  event.kind = exec::TraceEvent::Kind::plan;
  event.name = trace->label("plan on " + part.device->info.name);
  event.device = trace->label(part.device->info.name);
  event.begin_ns = begin_ns;
  event.duration_ns = duration_ns;
  event.correlation = trace->next_correlation();
  event.value = records.size();
  trace->add(event);
  event.kind = exec::TraceEvent::Kind::kernel;
  for (std::size_t k = 0; k < records.size(); ++k) {
    event.name = part.traced_kernels[k];
    event.begin_ns = begin_ns + records[k].begin_ns;
    event.duration_ns = records[k].duration_ns;
    trace->add(event);
  }
}

void Program::enable_profile(bool enabled) {
  state_->profile_wanted = enabled;
  if (state_->profile_on != enabled) state_->set_profile(enabled);
}

std::vector<Program::KernelTime> Program::profile() const {
  std::vector<KernelTime> times;
  for (const State::Part& part : state_->parts) {
    for (KernelTime& time : state_->kernels_of(part, state_->read_profile(part))) times.push_back(std::move(time));
  }
  return times;
}

}  // namespace tenon
