// SPDX-License-Identifier: Apache-2.0
#include <tenon/program.h>

#include <fmt/core.h>

#include <atomic>

#include "exec/program_state.h"

namespace tenon {
namespace {

/// Marks a program as running. Without it, a second thread would overwrite the addresses of the first, and both get wrong results.
class Running {
 public:
  explicit Running(std::atomic<bool>& running) : running_(running) {
    if (running_.exchange(true, std::memory_order_acquire))
      throw Error("program: it is running on another thread, and runs once at a time; use one Program per thread, or a lock");
  }
  ~Running() { running_.store(false, std::memory_order_release); }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

 private:
  std::atomic<bool>& running_;
};

}  // namespace

Program::Program(const Context& context, const Graph& graph, const ProgramOptions& options) : state_(std::make_unique<State>()) {
  state_->graph = graph;
  state_->parameters = options.parameters != nullptr && !options.freeze ? options.parameters : std::make_shared<ParameterStore>();
  state_->compile(context, options);
}
Program::~Program() = default;
Program::Program(Program&&) noexcept = default;
Program& Program::operator=(Program&&) noexcept = default;

const std::vector<Tensor>& Program::run(std::span<const Tensor> inputs) {
  State& s = state_of(state_);
  const Running running(s.running);
  if (s.results.size() != s.visible) s.make_outputs(0);
  s.bind_inputs(inputs);
  s.execute();
  if (s.check != CheckNumerics::off) s.check_results();
  return s.results;
}

void Program::run(std::span<const Tensor> inputs, std::span<Tensor> outputs) {
  State& s = state_of(state_);
  const Running running(s.running);
  if (outputs.size() != s.visible) throw Error(fmt::format("program: expected {} outputs, got {}", s.visible, outputs.size()));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const bool fits =
        outputs[i].dtype() == s.outputs[i].dtype && outputs[i].shape() == s.outputs[i].shape && outputs[i].is_dense() &&
        (outputs[i].storage()->device == s.outputs[i].device || (s.outputs[i].device->host_addressable() && outputs[i].on_host()));
    if (!fits) {
      throw Error(fmt::format("output '{}': expected a dense {}{} on {}, got {}", s.graph.outputs()[i].name, name_of(s.outputs[i].dtype),
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
  State& s = state_of(state_);
  s.name_kernels();
  if (s.replay != nullptr) {
    s.report.records = s.replay->records();
    s.report.replays = s.replay->replays();
    if (!s.replay->stopped().empty()) s.report.replay = "no longer: " + s.replay->stopped();
  }
  return s.report;
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

Tensor Program::make_output(std::size_t i) const {
  const State& s = state_of(state_);
  if (i >= s.visible) throw Error(fmt::format("program: output {}: expected an index below {}, the number of outputs", i, s.visible));
  const State::Output& output = s.outputs[i];
  return Device(output.device).empty(output.dtype, output.shape);
}

}  // namespace tenon
