// SPDX-License-Identifier: Apache-2.0
// train/model_state.h - the state of a Model, in parts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <tenon/model.h>

#include "core/state_of.h"
#include "layers/definition.h"
#include "train/checkpoint/checkpoint_file.h"
#include "train/checkpoint/training_progress.h"
#include "train/datasets/feed.h"
#include "train/fit_session.h"
#include "train/pipeline.h"
#include "train/program/model_setup.h"
#include "train/program/optimizers.h"
#include "train/program/parameters.h"
#include "train/program/programs.h"
#include "train/replicas.h"
#include "train/step_memory.h"

namespace tenon {
namespace train {

/// What a batch adds to means over batches.
struct BatchMeans {
  std::vector<double> values;  ///< loss, then metrics before MetricRule::finish
  double weight = 0;
  bool step_taken = false;
};

/// A training step whose results have not been read yet.
struct SubmittedStep {
  std::int64_t step = 0, samples = 0;  ///< its index, and the size of its batch on all ranks
  double rate = 0;                     ///< its learning rate
  Program* in_flight = nullptr;        ///< null: it has ended
  std::exception_ptr failure = {};     ///< of one that has ended and was not taken
  std::exception_ptr unread = {};      ///< why the results of one that was taken cannot be read
  std::size_t slot = 0;                ///< of a step in flight: in StepMemory
  std::span<const Tensor> results = {};
};

}  // namespace train

struct Model::State {
  static constexpr const char* owner = "model";  ///< for state_of
  explicit State(ModelDefinition definition) : setup(std::move(definition)) {}

  train::ModelSetup setup;
  train::Parameters parameters{setup};
  train::Programs programs{setup, parameters};
  std::unique_ptr<train::Replicas> replicas;  ///< null: no data parallelism within the process
  std::unique_ptr<train::Pipeline> pipeline;  ///< null: layers are not divided into stages
  train::TrainingProgress progress;
  train::FitSession session;
  /// Sharded optimizer state of all ranks, on the host, as it was after `gathered_step`: of several processes, which a checkpoint of one
  /// of them needs.
  std::map<std::string, Tensor> gathered_state;
  std::int64_t gathered_step = -1;
  /// The checkpoint that has the state of all ranks, while no step has followed: each process has read that of its own.
  std::optional<train::CheckpointFile> loaded_state;
  bool training = false;  ///< the mode of forward
  // Values that change each step are inputs of the programs, so that a captured plan can be replayed.
  Tensor key = Tensor::zeros(DType::u64, {2});
  Tensor learning_rate;
  Tensor step_number = Tensor::zeros(DType::i64, {});
  double rate = 0;                               ///< learning_rate before it is rounded to the dtype of the program
  std::vector<Tensor> arguments;                 ///< of a program while it runs; its memory is used again
  bool step_memory_chosen = false;               ///< whether it was decided if there is one
  std::optional<train::StepMemory> step_memory;  ///< made by the first step on a device with memory of its own
  std::size_t next_slot = 0;                     ///< in step_memory
  std::vector<train::SubmittedStep> submitted;   ///< oldest first

  // One batch. The storage of `out_means` is reused, so that a step allocates nothing.
  void backward(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run);
  bool apply(const RunOptions& run);
  void train_batch(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run);
  void test_batch(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run);
  /// The first half of train_batch, without a pipeline: counts the step, whose results finish_submitted reads. True: it may be in flight,
  /// and one more may be submitted before that; nothing else may be done with the model, but by what is in order on the stream of its
  /// programs.
  /// Errors  those of a step that could be found by now; it then counts as not taken, and none of its work is in flight.
  bool submit_step(const train::BatchTensors& batch, const RunOptions& run);
  /// Waits for all submitted steps; finish_submitted throws their errors.
  void wait_for_submitted() noexcept;
  /// The second half: waits for the oldest of the submitted steps.
  /// Errors  those of the device: it and all that were submitted after it have ended and count as not taken; gradients that are not finite
  ///         at the smallest loss scale; results that could not be copied, of a step that counts.
  void finish_submitted(train::BatchMeans& out_means);
  /// Means over the data.
  Logs evaluate(const std::shared_ptr<const Dataset>& data, std::int64_t batch_size, bool pinned, const RunOptions& run);
  Logs evaluate(BatchSource& source, const RunOptions& run);
  Logs evaluate(const Dataset& types, train::EpochBatches& batches, const RunOptions& run);

  /// The results of a phase without targets, for all samples of the inputs, which are in the order of the model.
  std::vector<Tensor> predict(train::Phase phase, std::span<const Tensor> inputs, std::int64_t batch_size, const RunOptions& run);
  /// The same by name.
  NamedTensors predict(train::Phase phase, const NamedTensors& inputs, std::int64_t batch_size, const RunOptions& run);
  /// The outputs in the current mode.
  std::vector<Tensor> forward(std::span<const Tensor> inputs);
  NamedTensors with_names(std::vector<Tensor> outputs) const;
  /// Builds the model for the samples of these inputs.
  void build_for(std::span<const Tensor> inputs, const char* call);

  /// Follows from a new setup: programs of the former one are dropped. `optimizer_state`: what it had on all ranks, if it was sharded.
  void start_compiled(std::map<std::string, Tensor> optimizer_state);
  /// The optimizer state of all ranks, on the host, if it is sharded and there is some. All processes call it.
  std::map<std::string, Tensor> gather_optimizer_state();
  /// The same for a checkpoint, which one process may write: what several processes have gathered. Errors  not after the last step.
  std::map<std::string, Tensor> optimizer_state_to_save();
  /// Gathers the state among processes, if it is sharded, and keeps it on process 0. All processes call it.
  void keep_gathered_state();
  /// These values of sharded state, of the current step, become those of the ranks of this process.
  void give_optimizer_state(std::map<std::string, Tensor> values);
  /// A training step; without a loss, a prediction.
  train::Phase phase_of_step() const { return setup.losses.empty() ? train::Phase::predict : train::Phase::train; }
  /// The type of a batch of that size. Errors  the sample shape is not known yet.
  train::BatchType batch_type(std::int64_t batch_size) const;
  double next_rate() const { return progress.learning_rate(setup.options.optimizer, session.length()); }
  /// The rate of the last step.
  double last_rate() const { return rate; }
  void set_step_inputs();
  /// Runs a phase with gradients on all of the model's devices.
  const std::vector<Tensor>& run_step(train::Phase phase, const train::BatchTensors& batch, const RunOptions& run);
  train::StepInputs step_inputs() const;
  /// Adds the gradients of a batch to those that are accumulated, by the stages of the pipeline.
  void run_pipeline(const train::BatchTensors& batch, train::BatchMeans& out_means, const RunOptions& run);
  /// The memory for the scalars of a step; null: the device works in the host's memory, or there are several.
  train::StepMemory* memory_of_steps();
  /// Counts a step.
  void count_step();
  /// Whether step `step` was taken: with loss scaling, by the outcome that is the program's last result.
  /// Errors  gradients are not finite at the smallest loss scale.
  bool was_taken(std::span<const Tensor> results, std::int64_t step, double rate_of_step) const;
  /// Counts a step and returns whether it was taken.
  bool finish_step(std::span<const Tensor> results) {
    count_step();
    return was_taken(results, progress.saved().step, last_rate());
  }
  /// States of the attached callbacks; outside fit, those of the last fit or checkpoint.
  std::map<std::string, CallbackState> callback_states() const;
};

}  // namespace tenon
