// SPDX-License-Identifier: Apache-2.0
// train/program/programs.h - the programs of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include <tenon/data.h>
#include <tenon/program.h>

#include "exec/program_cache.h"
#include "layers/decoding.h"
#include "train/program/loss_scale.h"
#include "train/program/model_setup.h"
#include "train/program/objective.h"
#include "train/program/parallel.h"
#include "train/program/parameters.h"

namespace tenon::train {

/// The purpose of a program of a model.
enum class Phase { train, backward_first, backward_more, evaluate, predict, forward_train, classes, probabilities };

/// The tensors of a batch.
struct BatchTensors {
  std::span<const Tensor> inputs;        ///< as in ModelSetup::interface
  std::span<const Tensor> targets = {};  ///< as ModelSetup::losses; none in phases without targets
  Tensor sample_weights = {};            ///< may be undefined
  layers::BatchShare share = {};         ///< as in BatchType
};

/// A rank's part of a whole batch, without copies.
class RankBatch {
 public:
  RankBatch(const BatchTensors& whole, const BatchPart& part);
  BatchTensors tensors() const { return {inputs_, targets_, weights_, share_}; }

 private:
  std::vector<Tensor> inputs_, targets_;
  Tensor weights_;
  layers::BatchShare share_;
};

/// The dtypes and shapes of a batch.
struct BatchType {
  /// Of one of its tensors.
  struct Part {
    DType dtype = DType::none;
    Shape shape = {};
  };
  std::vector<Part> inputs, targets;
  Part weights = {};  ///< none: without sample weights
  /// The samples are those of one rank, of a batch of `whole`; 0: they are the batch.
  layers::BatchShare share = {};

  std::int64_t size() const { return inputs.at(0).shape[0]; }
  /// Takes the types of the tensors. Its memory is used again.
  void assign(const BatchTensors& batch);
  /// The part of this batch that the rank of the setup computes.
  BatchType part_of(const ModelSetup& setup) const;
  /// A batch of `size` samples without targets.
  static BatchType of(std::span<const SampleType> inputs, std::int64_t size);
  /// The same with targets as the losses take them for these outputs.
  static BatchType of(const ModelSetup& setup, std::span<const SampleType> inputs, std::span<const SampleType> outputs, std::int64_t size);
};

/// Builds the graphs of a model, and caches their programs by phase and batch. A program of a training step creates the optimizer state or
/// the gradients that it needs.
class Programs {
 public:
  Programs(const ModelSetup& setup, Parameters& parameters) : setup_(setup), parameters_(parameters) {}

  /// Forgets all programs.
  void clear() {
    cache_ = exec::ProgramCache({});
    rate_dtype_.reset();
    communicator_ = nullptr;
    if (setup_.group != nullptr) {
      communicator_ = std::make_shared<exec::LocalCommunicator>(setup_.group, setup_.device_index);
    } else if (setup_.processes != nullptr) {
      communicator_ = setup_.processes->communicator();
    }
  }
  /// The program, valid until the next call. `run`: of its compilation, if it is new.
  Program& get(Phase phase, const BatchType& batch, const RunOptions& run = {});
  /// The same for these tensors. Finding one that there is allocates nothing.
  Program& get(Phase phase, const BatchTensors& batch, const RunOptions& run = {}) {
    type_.assign(batch);
    return get(phase, type_, run);
  }
  /// The memory of that program for a whole batch on all devices of this process, without making it or what it needs.
  std::vector<MemoryPlan> plan_memory(Phase phase, const BatchType& batch) const;
  /// How many programs there are, and how often one was found.
  const ProgramCounts& counts() const { return cache_.counts(); }
  /// The sums over the ranks.
  CommunicationCounts communication() const { return communicator_ == nullptr ? CommunicationCounts() : communicator_->counts(); }
  /// The dtype of the learning rate in a step: f64, or f32 if a device with weights does not compute with f64.
  DType rate_dtype() const;
  /// The optimizer step with the mean of the accumulated gradients.
  Program& apply(const RunOptions& run);
  /// The graph of a prediction: input x, output `output`; of several inputs and outputs `inputs/NAME` and the name of the output.
  Graph prediction(const BatchType& batch) const { return graph_of(Phase::predict, batch); }
  /// The graph of a phase. `out_fixed`: becomes ProgramOptions::fixed of its program.
  Graph graph_of(Phase phase, const BatchType& batch, std::set<std::string>* out_fixed = nullptr) const;
  /// A prediction with the current parameters as constants.
  Program frozen(const BatchType& batch) const;
  /// The next `steps` steps of one sequence: inputs x i64(1, steps) and the indices of the steps i64(steps), output the scores of the last
  /// step (classes). Weights are constants; what the layers keep lives in `states` and is named by `out_states`.
  /// Errors  a model that cannot be continued step by step.
  Program decoding(std::int64_t steps, std::int64_t capacity, const std::shared_ptr<ParameterStore>& states,
                   std::vector<layers::DecodingState>& out_states) const;

 private:
  ProgramOptions options(const RunOptions& run = {}) const;
  NamedValues add_inputs(Graph& graph, const BatchType& batch) const;
  /// One for each loss.
  std::vector<Value> add_targets(Graph& graph, const BatchType& batch) const;
  Forward add_forward(Graph& graph, const BatchType& batch, bool for_training, bool sync_batch_norm = false) const;
  std::uint64_t bucket_size_bytes() const;
  /// Appends forward pass and gradients, the optimizer step or the accumulation, then loss, metrics and weight as outputs. Returns
  /// ProgramOptions::fixed of the program.
  std::set<std::string> add_training(Graph& graph, Phase phase, const BatchType& batch) const;
  /// Appends the optimizer's step, whose learning rate and index are inputs, and the updates of running statistics. Returns the outcome of
  /// guard_step; absent without loss scaling.
  Value add_step(Graph& graph, const Forward& forward, const std::vector<Value>& gradients, const LossScale& scale) const;
  /// Writes running statistics back; with loss scaling, not those that overflowed.
  void update_finite_states(Graph& graph, const Forward& forward) const;
  /// The loss scale as graph parameters; absent without loss scaling.
  LossScale loss_scale(Graph& graph) const;

  const ModelSetup& setup_;
  Parameters& parameters_;
  std::shared_ptr<Communicator> communicator_;  ///< with the other ranks; null: there are none
  exec::ProgramCache cache_{{}};
  exec::ProgramKey key_;  ///< of the last call, its memory used again
  BatchType type_;        ///< likewise
  mutable std::optional<DType> rate_dtype_;
};

}  // namespace tenon::train
