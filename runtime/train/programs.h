// SPDX-License-Identifier: Apache-2.0
// train/programs.h - the programs of a model.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <tenon/program.h>

#include "exec/program_cache.h"
#include "layers/decoding.h"
#include "train/loss_scale.h"
#include "train/model_setup.h"
#include "train/objective.h"
#include "train/parallel.h"
#include "train/parameters.h"

namespace tenon::train {

/// The purpose of a program of a model.
enum class Phase { train, backward_first, backward_more, evaluate, predict, forward_train, classes, probabilities };

/// The tensors of a batch.
struct BatchTensors {
  const Tensor& x;
  const Tensor& y;
  const Tensor& sample_weights;  ///< may be undefined
};

/// The dtypes and shapes of a batch. y is absent in phases without targets.
struct BatchType {
  Shape x;
  DType x_dtype = DType::none;
  Shape y = {};
  DType y_dtype = DType::none;
  Shape weights = {};
  DType weights_dtype = DType::none;  ///< none: without sample weights

  static BatchType of(const Tensor& x) { return {x.shape(), x.dtype()}; }
  static BatchType of(const Tensor& x, const Tensor& y) { return {x.shape(), x.dtype(), y.shape(), y.dtype()}; }
  static BatchType of(const BatchTensors& batch) {
    BatchType type = of(batch.x, batch.y);
    type.weights = batch.sample_weights.shape();
    type.weights_dtype = batch.sample_weights.dtype();
    return type;
  }
  /// A batch of `size` samples with targets as the loss takes them. `output` is the shape of the last layer, without the batch axis.
  static BatchType of(const ModelSetup& setup, const Shape& sample, const Shape& output, std::int64_t size);
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
  }
  /// The program, valid until the next call. `run`: of its compilation, if it is new.
  Program& get(Phase phase, const BatchType& batch, const RunOptions& run = {});
  /// The memory of that program, without making it or what it needs.
  std::vector<MemoryPlan> plan_memory(Phase phase, const BatchType& batch) const;
  /// How many programs there are, and how often one was found.
  const ProgramCounts& counts() const { return cache_.counts(); }
  /// The dtype of the learning rate in a step: f64, or f32 if a device with weights does not compute with f64.
  DType rate_dtype() const;
  /// The optimizer step with the mean of the accumulated gradients.
  Program& apply(const RunOptions& run);
  /// The graph of a prediction: input x, output `output`.
  Graph prediction(const BatchType& batch) const { return graph_of(Phase::predict, batch); }
  /// A prediction with the current parameters as constants.
  Program frozen(const BatchType& batch) const;
  /// The next `steps` steps of one sequence: inputs x i64(1, steps) and the indices of the steps i64(steps), output the scores of the last
  /// step (classes). Weights are constants; what the layers keep lives in `states` and is named by `out_states`.
  /// Errors  a model that cannot be continued step by step.
  Program decoding(std::int64_t steps, std::int64_t capacity, const std::shared_ptr<ParameterStore>& states,
                   std::vector<layers::DecodingState>& out_states) const;

 private:
  /// `out_fixed`: becomes ProgramOptions::fixed of its program.
  Graph graph_of(Phase phase, const BatchType& batch, std::set<std::string>* out_fixed = nullptr) const;
  ProgramOptions options(const RunOptions& run = {}) const;
  Forward add_forward(Graph& graph, const BatchType& batch, bool for_training) const;
  /// Appends forward pass and gradients, the optimizer step or the accumulation, then loss, metrics and weight as outputs. Returns
  /// ProgramOptions::fixed of the program.
  std::set<std::string> add_training(Graph& graph, Phase phase, const BatchType& batch) const;
  /// Writes running statistics back; with loss scaling, not those that overflowed.
  void update_finite_states(Graph& graph, const Forward& forward) const;
  /// The loss scale as graph parameters; absent without loss scaling.
  LossScale loss_scale(Graph& graph) const;

  const ModelSetup& setup_;
  Parameters& parameters_;
  exec::ProgramCache cache_{{}};
  exec::ProgramKey key_;  ///< of the last call, its memory used again
  mutable std::optional<DType> rate_dtype_;
};

}  // namespace tenon::train
