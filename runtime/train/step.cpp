// SPDX-License-Identifier: Apache-2.0
// Model: training and evaluation on one batch.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "core/element.h"
#include "exec/device_state.h"
#include "text/counted.h"
#include "train/binding.h"
#include "train/checkpoint/running_means.h"
#include "train/model_state.h"
#include "train/random_key.h"

namespace tenon {
namespace {

/// The value of a scalar tensor, without a copy if it is in host memory.
double scalar_of(const Tensor& t) {
  return t.on_host() ? t.item() : t.to_host().item();
}

/// The inputs of a program, without those that are undefined: a batch may have no sample weights. They are kept in memory that is used
/// again, until this object ends.
class Arguments {
 public:
  explicit Arguments(std::vector<Tensor>& memory) : all_(memory) { all_.clear(); }
  ~Arguments() { all_.clear(); }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  Arguments& add(std::span<const Tensor> tensors) {
    all_.insert(all_.end(), tensors.begin(), tensors.end());
    return *this;
  }
  Arguments& add(const Tensor& tensor) { return tensor.defined() ? add({&tensor, 1}) : *this; }
  operator std::span<const Tensor>() const { return all_; }

 private:
  std::vector<Tensor>& all_;
};

/// Reads a program's first results: loss and metrics, then the weight of the batch if it is not the number of samples.
void read_means(const train::ModelSetup& setup, std::span<const Tensor> results, std::int64_t samples, train::BatchMeans& out_means) {
  const std::size_t count = setup.logged.size();
  out_means.values.resize(count);
  for (std::size_t i = 0; i < count; ++i) out_means.values[i] = scalar_of(results[i]);
  out_means.weight = results.size() > count ? scalar_of(results.back()) : static_cast<double>(samples);
}

/// Of all ranks.
std::int64_t samples_of(const train::BatchTensors& batch) {
  return batch.share.whole > 0 ? batch.share.whole : batch.inputs[0].shape()[0];
}

using BatchCall = void (Model::State::*)(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run);

BatchResult result_of(Model::State& s, BatchCall call, const char* name, const train::BatchTensors& batch, const RunOptions& run = {}) {
  s.build_for(batch.inputs, name);
  if (call != &Model::State::test_batch) s.setup.expect_micro_batches(batch.inputs[0].shape()[0]);
  train::BatchMeans means;
  (s.*call)(batch, means, run);
  BatchResult result{.logs = s.setup.empty_logs(), .weight = means.weight, .step_taken = means.step_taken};
  s.setup.write_logs(means.values, result.logs);
  return result;
}

/// The same for a model with one input and one output.
BatchResult result_of(Model::State& s, BatchCall call, const char* name, const Tensor& x, const Tensor& y, const Tensor& sample_weights,
                      const RunOptions& run = {}) {
  s.setup.expect_one_of_each(name);
  return result_of(s, call, name, {{&x, 1}, {&y, 1}, sample_weights}, run);
}

/// The same by name.
BatchResult result_of(Model::State& s, BatchCall call, const char* name, const NamedTensors& inputs, const NamedTensors& targets,
                      const Tensor& sample_weights, const RunOptions& run = {}) {
  s.setup.need_context();
  const std::vector<Tensor> x = train::inputs_in_order(s.setup, inputs, name), y = train::targets_in_order(s.setup, targets, name);
  return result_of(s, call, name, {x, y, sample_weights}, run);
}

}  // namespace

void Model::State::build_for(std::span<const Tensor> inputs, const char* call) {
  setup.need_context();
  if (parameters.built()) return;
  std::vector<Shape> samples;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].shape().rank() == 0)
      throw Error(
          fmt::format("{}: {} expects a batch axis, got a scalar", call, inputs.size() == 1 ? "x" : setup.interface.inputs[i].name));
    samples.emplace_back(inputs[i].shape().dims().subspan(1));
  }
  parameters.build(samples);
}

void Model::State::set_step_inputs() {
  const std::int64_t next = progress.saved().step + 1;
  const auto random = train::random_key(setup.context->config().seed, static_cast<std::uint64_t>(next),
                                        static_cast<std::uint64_t>(progress.accumulated()), static_cast<std::uint64_t>(setup.rank()));
  std::copy(random.begin(), random.end(), key.data<std::uint64_t>());
  rate = next_rate();
  if (learning_rate.dtype() != programs.rate_dtype()) learning_rate = Tensor::zeros(programs.rate_dtype(), {});
  write_element(learning_rate.raw(), learning_rate.dtype(), rate, "learning_rate");
  *step_number.data<std::int64_t>() = next;
}

train::StepMemory* Model::State::memory_of_steps() {
  if (!step_memory_chosen) {
    const std::optional<Device> device = setup.processes != nullptr ? std::nullopt : setup.batch_device();
    if (device && !device->state()->host_addressable())
      step_memory.emplace(*device, programs.rate_dtype(), setup.logged.size() + 2);  // weight and outcome
    step_memory_chosen = true;
  }
  return step_memory ? &*step_memory : nullptr;
}

void Model::State::count_step() {
  progress.finish_step();
  gathered_state.clear();  // it is of an earlier step now
  loaded_state.reset();
}

bool Model::State::was_taken(std::span<const Tensor> results, std::int64_t step, double rate_of_step) const {
  if (!setup.scales_loss()) return true;
  const auto outcome = static_cast<train::StepOutcome>(static_cast<int>(scalar_of(results.back())));
  if (outcome != train::StepOutcome::exhausted) return outcome == train::StepOutcome::taken;
  throw Error(Status::internal,
              fmt::format("step {}: gradients are not finite even with the smallest loss scale, {}; the weights are those of the last step "
                          "that was taken; use precision: mixed_bfloat16 or float32, try a smaller learning rate than {}, or find the "
                          "first op with check_numerics: all",
                          step, train::min_loss_scale, rate_of_step));
}

train::StepInputs Model::State::step_inputs() const {
  return {.seed = setup.context->config().seed,
          .step = static_cast<std::uint64_t>(progress.saved().step + 1),
          .batch = static_cast<std::uint64_t>(progress.accumulated()),
          .learning_rate = learning_rate,
          .step_number = step_number};
}

const std::vector<Tensor>& Model::State::run_step(train::Phase phase, const train::BatchTensors& batch, const RunOptions& run) {
  if (setup.processes != nullptr && batch.share.whole == 0) {  // a whole batch, of which this process computes its part
    const train::RankBatch part(batch, setup.part_of_process(batch.inputs[0].shape()[0]));
    return run_step(phase, part.tensors(), run);
  }
  if (replicas != nullptr) {
    set_step_inputs();
    return replicas->run(phase, batch, step_inputs(), run);
  }
  Program& program = programs.get(phase, batch, run);
  set_step_inputs();
  Arguments inputs(arguments);
  inputs.add(batch.inputs).add(key).add(batch.targets).add(batch.sample_weights);
  if (phase == train::Phase::train) inputs.add(learning_rate).add(step_number);
  return program.run(inputs, run);
}

void Model::State::run_pipeline(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run) {
  set_step_inputs();
  train::RunningMeans means;
  try {
    pipeline->run(batch, progress.accumulated() == 0, step_inputs(), run, means);
  } catch (...) {
    if (progress.accumulated() > 0) progress.drop_accumulated();  // the gradients of a part of the batch are in their sums
    throw;
  }
  means.write(out_means.values);
  out_means.weight = means.weight;
}

void Model::State::backward(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run) {
  if (pipeline != nullptr) {
    run_pipeline(batch, out_means, run);
    progress.add_accumulated();
    out_means.step_taken = false;
    return;
  }
  const train::Phase phase = progress.accumulated() == 0 ? train::Phase::backward_first : train::Phase::backward_more;
  const std::vector<Tensor>& results = run_step(phase, batch, run);
  progress.add_accumulated();
  read_means(setup, results, samples_of(batch), out_means);
  out_means.step_taken = false;
}

bool Model::State::apply(const RunOptions& run) {
  if (progress.accumulated() == 0) throw Error("apply: there are no gradients; call backward() first");
  if (replicas != nullptr) {
    set_step_inputs();
    return finish_step(replicas->apply(step_inputs(), run));
  }
  Program& program = programs.apply(run);
  set_step_inputs();
  const std::array<Tensor, 2> inputs{learning_rate, step_number};
  return finish_step(program.run(inputs, run));
}

void Model::State::train_batch(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run) {
  if (progress.accumulated() != 0)
    throw Error(fmt::format("train_batch: gradients of {} are accumulated; call apply() first",
                            counted(progress.accumulated(), "batch", "batches")));
  if (pipeline != nullptr) {
    run_pipeline(batch, out_means, run);
    Program& program = programs.apply(run);
    const std::array<Tensor, 2> inputs{learning_rate, step_number};
    out_means.step_taken = finish_step(program.run(inputs, {.threads = run.threads, .priority = run.priority}));
    return;
  }
  submit_step(batch, run);
  finish_submitted(out_means);
}

bool Model::State::submit_step(const train::BatchTensors& batch, const RunOptions& run) {
  submitted.reserve(train::StepMemory::max_in_flight);  // nothing fails once the step is counted
  train::SubmittedStep step{.samples = samples_of(batch)};
  bool goes_on = false;
  train::StepMemory* const memory = memory_of_steps();
  Program* const program = memory == nullptr ? nullptr : &programs.get(train::Phase::train, batch, run);
  if (program != nullptr && memory->choose_outputs(*program)) {
    set_step_inputs();
    step.in_flight = program;
    step.slot = next_slot++ % train::StepMemory::max_in_flight;
    try {
      memory->upload(step.slot, key, learning_rate, step_number);
      Arguments inputs(arguments);
      inputs.add(batch.inputs).add(memory->key()).add(batch.targets).add(batch.sample_weights);
      inputs.add(memory->learning_rate()).add(memory->step_number());
      goes_on = program->submit(inputs, memory->outputs(), run);
    } catch (...) {
      wait_for_submitted();
      memory->finish();  // the slot is used again
      throw;
    }
    try {
      memory->download(step.slot);
    } catch (...) {
      step.unread = std::current_exception();
      wait_for_submitted();
      memory->finish();
      step.in_flight = nullptr;
      goes_on = false;
    }
    step.results = memory->results(step.slot);
  } else {
    step.results = run_step(train::Phase::train, batch, run);
  }
  count_step();
  step.step = progress.saved().step;
  step.rate = last_rate();
  submitted.push_back(step);
  return goes_on;
}

void Model::State::wait_for_submitted() noexcept {
  for (train::SubmittedStep& step : submitted) {
    if (step.in_flight == nullptr) continue;
    try {
      step.in_flight->wait_for(step_memory->done(step.slot));
    } catch (...) {
      step.failure = std::current_exception();
    }
    step.in_flight = nullptr;
  }
}

void Model::State::finish_submitted(train::BatchMeans& out_means) {
  const train::SubmittedStep step = submitted.front();
  try {
    if (step.failure) std::rethrow_exception(step.failure);
    if (step.in_flight != nullptr) step.in_flight->wait_for(step_memory->done(step.slot));
  } catch (...) {
    step_memory->finish();
    submitted.clear();
    progress.drop_steps_after(step.step - 1);
    throw;
  }
  submitted.erase(submitted.begin());
  if (step.unread) std::rethrow_exception(step.unread);
  out_means.step_taken = was_taken(step.results, step.step, step.rate);
  read_means(setup, step.results.first(step.results.size() - (setup.scales_loss() ? 1 : 0)), step.samples, out_means);
}

void Model::State::test_batch(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run) {
  Program& program = programs.get(train::Phase::evaluate, batch, run);
  Arguments inputs(arguments);
  inputs.add(batch.inputs).add(batch.targets).add(batch.sample_weights);
  read_means(setup, program.run(inputs, run), batch.inputs[0].shape()[0], out_means);
  out_means.step_taken = false;
}

std::vector<Tensor> Model::State::forward(std::span<const Tensor> inputs) {
  build_for(inputs, "forward");
  Program& program = programs.get(training ? train::Phase::forward_train : train::Phase::predict, train::BatchTensors{inputs});
  Arguments of_program(arguments);
  of_program.add(inputs);
  if (training) {
    set_step_inputs();
    of_program.add(key);
  }
  std::vector<Tensor> outputs;
  for (const Tensor& result : program.run(of_program)) outputs.push_back(result.to_host());
  outputs.resize(setup.interface.outputs.size());
  return outputs;
}

Tensor Model::forward(const Tensor& x) {
  State& s = state_of(state_);
  s.setup.expect_one_of_each("forward");
  return s.forward({&x, 1}).front();
}

NamedTensors Model::forward(const NamedTensors& inputs) {
  State& s = state_of(state_);
  return s.with_names(s.forward(train::inputs_in_order(s.setup, inputs, "forward")));
}

BatchResult Model::backward(const Tensor& x, const Tensor& y, const Tensor& sample_weights) {
  return result_of(state_of(state_), &State::backward, "backward", x, y, sample_weights);
}
BatchResult Model::backward(const NamedTensors& inputs, const NamedTensors& targets, const Tensor& sample_weights) {
  return result_of(state_of(state_), &State::backward, "backward", inputs, targets, sample_weights);
}

bool Model::apply() {
  return state_of(state_).apply({});
}

BatchResult Model::train_batch(const Tensor& x, const Tensor& y, const Tensor& sample_weights, const RunOptions& run) {
  return result_of(state_of(state_), &State::train_batch, "train_batch", x, y, sample_weights, run);
}
BatchResult Model::train_batch(const NamedTensors& inputs, const NamedTensors& targets, const Tensor& sample_weights,
                               const RunOptions& run) {
  return result_of(state_of(state_), &State::train_batch, "train_batch", inputs, targets, sample_weights, run);
}

BatchResult Model::test_batch(const Tensor& x, const Tensor& y, const Tensor& sample_weights) {
  return result_of(state_of(state_), &State::test_batch, "test_batch", x, y, sample_weights);
}
BatchResult Model::test_batch(const NamedTensors& inputs, const NamedTensors& targets, const Tensor& sample_weights) {
  return result_of(state_of(state_), &State::test_batch, "test_batch", inputs, targets, sample_weights);
}

Tensor Model::gradient(const std::string& parameter) const {
  const State& s = state_of(state_);
  if (s.progress.accumulated() == 0) throw Error("gradient: there are no gradients; call backward() first");
  if (s.setup.processes != nullptr) throw Error("gradient: with a transport each process has the gradients of its part of the batch alone");
  return s.parameters.mean_gradient(parameter, s.replicas == nullptr ? std::vector<const train::Parameters*>() : s.replicas->others());
}

}  // namespace tenon
