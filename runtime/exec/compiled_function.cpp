// SPDX-License-Identifier: Apache-2.0
#include <tenon/compiled_function.h>

#include <fmt/core.h>

#include <atomic>
#include <utility>

#include "core/state_of.h"
#include "exec/program_cache.h"
#include "exec/running.h"

namespace tenon {

struct CompiledFunction::State {
  static constexpr const char* owner = "compiled function";  ///< for state_of

  Context context;
  Build build;
  ProgramOptions options;
  exec::ProgramCache programs;
  exec::ProgramKey key;           ///< of the call, its memory used again
  std::vector<TensorType> types;  ///< of the call, likewise
  std::atomic<bool> running = false;

  State(const Context& c, Build b, const ProgramOptions& o, const ProgramLimits& limits)
      : context(c), build(std::move(b)), options(o), programs(limits) {
    if (!build) throw Error("compiled function: expected a function that makes a graph, got none");
    if (limits.programs == 0) throw Error("compiled function: limits.programs is 0, expected at least 1, the program that runs");
    if (options.parameters == nullptr) options.parameters = std::make_shared<ParameterStore>();
  }
  Program& find(std::span<const TensorType> wanted) {
    key.clear();
    for (const TensorType& type : wanted) key.add(type.dtype, type.shape);
    return programs.get(key.bytes(), [&] { return Program(context, build(wanted), options); });
  }
};

CompiledFunction::CompiledFunction(const Context& context, Build build, const ProgramOptions& options, const ProgramLimits& limits)
    : state_(std::make_unique<State>(context, std::move(build), options, limits)) {}
CompiledFunction::~CompiledFunction() = default;
CompiledFunction::CompiledFunction(CompiledFunction&&) noexcept = default;
CompiledFunction& CompiledFunction::operator=(CompiledFunction&&) noexcept = default;

const std::vector<Tensor>& CompiledFunction::run(std::span<const Tensor> inputs) {
  State& s = state_of(state_);
  const exec::Running running(s.running, "compiled function", "CompiledFunction");
  s.types.clear();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].defined()) throw Error(fmt::format("compiled function: input {}: expected a tensor, got an undefined one", i));
    s.types.push_back({inputs[i].dtype(), inputs[i].shape()});
  }
  return s.find(s.types).run(inputs);
}

Program& CompiledFunction::program(std::span<const TensorType> types) {
  State& s = state_of(state_);
  const exec::Running running(s.running, "compiled function", "CompiledFunction");
  return s.find(types);
}

const std::shared_ptr<ParameterStore>& CompiledFunction::parameters() const {
  return state_of(state_).options.parameters;
}
const ProgramCounts& CompiledFunction::counts() const {
  return state_of(state_).programs.counts();
}

}  // namespace tenon
