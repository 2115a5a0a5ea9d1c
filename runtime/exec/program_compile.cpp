// SPDX-License-Identifier: Apache-2.0
// Compiles a graph to a program: passes, placement, then the steps of program_compiler.h.
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/log.h"
#include "exec/oracle.h"
#include "exec/placement.h"
#include "exec/program_compiler.h"
#include "graph/collectives.h"
#include "graph/passes.h"

namespace tenon {

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
  const std::shared_ptr<exec::DeviceState> main_device = state.open_found(fallback);
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

  if (std::ranges::any_of(devices, [](const std::shared_ptr<exec::DeviceState>& device) { return device->records(); })) {
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
