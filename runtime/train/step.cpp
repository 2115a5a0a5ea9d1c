// SPDX-License-Identifier: Apache-2.0
// Model: training and evaluation on one batch.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>

#include "core/element.h"
#include "train/model_state.h"
#include "train/random_key.h"

namespace tenon {
namespace {

/// The value of a scalar tensor, without a copy if it is in host memory.
double scalar_of(const Tensor& t) {
  return t.on_host() ? t.item() : t.to_host().item();
}

/// The inputs of a program, without those that are undefined: a batch may have no sample weights.
class Inputs {
 public:
  Inputs(std::initializer_list<const Tensor*> tensors) {
    for (const Tensor* tensor : tensors) {
      if (tensor->defined()) all_[count_++] = *tensor;
    }
  }
  operator std::span<const Tensor>() const { return std::span(all_).first(count_); }

 private:
  std::array<Tensor, 6> all_;
  std::size_t count_ = 0;
};

/// Reads a program's first results: loss and metrics, then the weight of the batch if it is not the number of samples.
void read_means(const train::ModelSetup& setup, std::span<const Tensor> results, std::int64_t samples, train::BatchMeans& out_means) {
  const std::size_t count = 1 + setup.options.metrics.size();
  out_means.values.resize(count);
  for (std::size_t i = 0; i < count; ++i) out_means.values[i] = scalar_of(results[i]);
  out_means.weight = results.size() > count ? scalar_of(results.back()) : static_cast<double>(samples);
}

/// Builds the model for the samples of x if it has no parameters yet.
void build_for(Model& model, Model::State& s, const Tensor& x, const char* call) {
  s.setup.need_context();
  if (s.parameters.built()) return;
  if (x.shape().rank() == 0) throw Error(fmt::format("{}: x expects a batch axis, got a scalar", call));
  model.build(Shape(x.shape().dims().subspan(1)));
}

using BatchCall = void (Model::State::*)(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run);

BatchResult result_of(Model& model, Model::State& s, BatchCall call, const char* name, const train::BatchTensors& batch,
                      const RunOptions& run = {}) {
  build_for(model, s, batch.x, name);
  train::BatchMeans means;
  (s.*call)(batch, means, run);
  BatchResult result{.logs = s.setup.empty_logs(), .weight = means.weight, .step_taken = means.step_taken};
  s.setup.write_logs(means.values, result.logs);
  return result;
}

}  // namespace

void Model::State::set_step_inputs() {
  const std::int64_t next = progress.saved().step + 1;
  const auto random =
      train::random_key(setup.context->config().seed, static_cast<std::uint64_t>(next), static_cast<std::uint64_t>(progress.accumulated()));
  std::copy(random.begin(), random.end(), key.data<std::uint64_t>());
  rate = next_rate();
  if (learning_rate.dtype() != programs.rate_dtype()) learning_rate = Tensor::zeros(programs.rate_dtype(), {});
  write_element(learning_rate.raw(), learning_rate.dtype(), rate, "learning_rate");
  *step_number.data<std::int64_t>() = next;
}

bool Model::State::finish_step(const std::vector<Tensor>& results) {
  progress.finish_step();
  if (!setup.scales_loss()) return true;
  const auto outcome = static_cast<train::StepOutcome>(static_cast<int>(scalar_of(results.back())));
  if (outcome != train::StepOutcome::exhausted) return outcome == train::StepOutcome::taken;
  throw Error(Status::internal,
              fmt::format("step {}: gradients are not finite even with the smallest loss scale, {}; the weights are those of the last step "
                          "that was taken; use precision: mixed_bfloat16 or float32, try a smaller learning rate than {}, or find the "
                          "first op with check_numerics: all",
                          progress.saved().step, train::min_loss_scale, last_rate()));
}

void Model::State::backward(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run) {
  const train::Phase phase = progress.accumulated() == 0 ? train::Phase::backward_first : train::Phase::backward_more;
  Program& program = programs.get(phase, train::BatchType::of(batch), run);
  set_step_inputs();
  const std::vector<Tensor>& results = program.run(Inputs{&batch.x, &key, &batch.y, &batch.sample_weights}, run);
  progress.add_accumulated();
  read_means(setup, results, batch.x.shape()[0], out_means);
  out_means.step_taken = false;
}

bool Model::State::apply(const RunOptions& run) {
  if (progress.accumulated() == 0) throw Error("apply: there are no gradients; call backward() first");
  Program& program = programs.apply(run);
  set_step_inputs();
  const std::array<Tensor, 2> inputs{learning_rate, step_number};
  return finish_step(program.run(inputs, run));
}

void Model::State::train_batch(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run) {
  if (progress.accumulated() != 0)
    throw Error(fmt::format("train_batch: gradients of {} batches are accumulated; call apply() first", progress.accumulated()));
  Program& program = programs.get(train::Phase::train, train::BatchType::of(batch), run);
  set_step_inputs();
  const std::vector<Tensor>& results =
      program.run(Inputs{&batch.x, &key, &batch.y, &batch.sample_weights, &learning_rate, &step_number}, run);
  out_means.step_taken = finish_step(results);
  read_means(setup, std::span(results).first(results.size() - (setup.scales_loss() ? 1 : 0)), batch.x.shape()[0], out_means);
}

void Model::State::test_batch(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run) {
  Program& program = programs.get(train::Phase::evaluate, train::BatchType::of(batch), run);
  read_means(setup, program.run(Inputs{&batch.x, &batch.y, &batch.sample_weights}, run), batch.x.shape()[0], out_means);
  out_means.step_taken = false;
}

Tensor Model::forward(const Tensor& x) {
  State& s = state_of(state_);
  build_for(*this, s, x, "forward");
  if (!s.training) {
    const std::array<Tensor, 1> inputs{x};
    return s.programs.get(train::Phase::predict, train::BatchType::of(x)).run(inputs).front().to_host();
  }
  s.set_step_inputs();
  const std::array<Tensor, 2> inputs{x, s.key};
  return s.programs.get(train::Phase::forward_train, train::BatchType::of(x)).run(inputs).front().to_host();
}

BatchResult Model::backward(const Tensor& x, const Tensor& y, const Tensor& sample_weights) {
  return result_of(*this, state_of(state_), &State::backward, "backward", {x, y, sample_weights});
}

bool Model::apply() {
  return state_of(state_).apply({});
}

BatchResult Model::train_batch(const Tensor& x, const Tensor& y, const Tensor& sample_weights, const RunOptions& run) {
  return result_of(*this, state_of(state_), &State::train_batch, "train_batch", {x, y, sample_weights}, run);
}

BatchResult Model::test_batch(const Tensor& x, const Tensor& y, const Tensor& sample_weights) {
  return result_of(*this, state_of(state_), &State::test_batch, "test_batch", {x, y, sample_weights});
}

Tensor Model::gradient(const std::string& parameter) const {
  if (state_of(state_).progress.accumulated() == 0) throw Error("gradient: there are no gradients; call backward() first");
  return state_of(state_).parameters.mean_gradient(parameter);
}

}  // namespace tenon
