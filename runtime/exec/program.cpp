// SPDX-License-Identifier: Apache-2.0
#include <tenon/program.h>

#include <fmt/core.h>

#include "exec/program_state.h"
#include "exec/running.h"

namespace tenon {

std::unique_ptr<Program::State> Program::State::compiled(const Context& context, const Graph& graph, const ProgramOptions& options,
                                                         exec::ProgramMemory::Mode mode) {
  auto state = std::make_unique<State>(mode);
  state->graph = graph;
  state->parameters = options.parameters != nullptr && !options.freeze ? options.parameters : std::make_shared<ParameterStore>();
  state->compile(context, options);
  return state;
}

Program::Program(const Context& context, const Graph& graph, const ProgramOptions& options)
    : state_(State::compiled(context, graph, options, exec::ProgramMemory::Mode::allocate)) {}

std::vector<MemoryPlan> Program::plan_memory(const Context& context, const Graph& graph, const ProgramOptions& options) {
  return State::compiled(context, graph, options, exec::ProgramMemory::Mode::count)->memory.plans();
}

Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

const std::vector<Tensor>& Program::run(std::span<const Tensor> inputs, const RunOptions& options) {
  State& s = state_of(state_);
  const exec::Running running(s.running, "program", "Program");
  return s.run(inputs, options);
}

void Program::run(std::span<const Tensor> inputs, std::span<Tensor> outputs, const RunOptions& options) {
  State& s = state_of(state_);
  const exec::Running running(s.running, "program", "Program");
  s.run_into(inputs, outputs, options, State::Return::at_the_end);
}

bool Program::submit(std::span<const Tensor> inputs, std::span<Tensor> outputs, const RunOptions& options) {
  State& s = state_of(state_);
  const exec::Running running(s.running, "program", "Program");
  return s.run_into(inputs, outputs, options, State::Return::when_submitted);
}

void Program::wait_for(const Event& event) {
  State& s = state_of(state_);
  const exec::Running running(s.running, "program", "Program");
  s.wait_for(event);
}

const PlacementReport& Program::placement() const {
  State& s = state_of(state_);
  s.name_kernels();
  if (s.replay != nullptr) {
    s.report.records = s.replay->records();
    s.report.replays = s.replay->replays();
    if (!s.replay->stopped().empty()) s.report.replay = "no longer: " + s.replay->stopped();
  }
  return s.report;
}
const std::vector<MemoryPlan>& Program::memory() const {
  return state_of(state_).memory.plans();
}
const Graph& Program::graph() const {
  const State& s = state_of(state_);
  return s.prologue != nullptr ? s.complete : s.graph;
}
const std::shared_ptr<ParameterStore>& Program::parameters() const {
  return state_of(state_).parameters;
}
std::size_t Program::input_count() const {
  return state_of(state_).inputs.size();
}
std::size_t Program::output_count() const {
  return state_of(state_).visible;
}

bool Program::accepts_output(std::size_t i, const Tensor& tensor) const {
  const State& s = state_of(state_);
  return i < s.visible && tensor.defined() && s.why_not_output(i, tensor).empty();
}

std::string Program::State::why_not_output(std::size_t i, const Tensor& given) const {
  const Output& output = outputs[i];
  const bool fits = given.dtype() == output.dtype && given.shape() == output.shape && given.is_dense() &&
                    (given.storage()->device == output.device || (output.device->host_addressable() && given.on_host()));
  if (!fits) {
    return fmt::format("output '{}': expected a dense {}{} on {}, got {}", graph.outputs()[i].name, name_of(output.dtype),
                       output.shape.str(), output.device->info.name, given.str());
  }
  const std::uint64_t alignment = output.device->alignment_of(given.dtype());
  if (given.address() % alignment == 0 || given.count() == 0) return {};
  return fmt::format(
      "output '{}': expected memory at a multiple of {} bytes, as {} needs it, got address {:#x}; "
      "Program::make_output allocates it",
      graph.outputs()[i].name, alignment, output.device->info.name, given.address());
}

Tensor Program::make_output(std::size_t i) const {
  const State& s = state_of(state_);
  if (i >= s.visible) throw Error(fmt::format("program: output {}: expected an index below {}, the number of outputs", i, s.visible));
  const State::Output& output = s.outputs[i];
  return Device(output.device).empty(output.dtype, output.shape);
}

}  // namespace tenon
