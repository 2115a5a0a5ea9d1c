// SPDX-License-Identifier: Apache-2.0
// train/model_state.h - the state of a Model.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <set>
#include <span>

#include <tenon/model.h>

#include "exec/context_state.h"
#include "train/builder.h"
#include "train/feed.h"
#include "train/loss_scale.h"
#include "train/objective.h"
#include "train/parallel.h"
#include "train/running_means.h"

namespace tenon {

/// The purpose of a program of a model.
enum class Phase { train, backward_first, backward_more, evaluate, predict, forward_train, classes };
inline constexpr std::size_t phase_count = 7;

struct Model::State {
  ModelDefinition definition;
  std::optional<Context> context;
  CompileOptions compiled;
  std::shared_ptr<ParameterStore> parameters;
  std::optional<Shape> sample;  ///< known once parameters exist
  std::vector<train::ParameterSpec> specs;
  std::vector<train::ParameterSpec> layer_states;  ///< non-trainable state such as running statistics
  std::vector<LayerSummary> layers;
  std::set<std::string> optimizer_state;  ///< names of the optimizer state that has been initialised
  bool training = false;

  // Programs by phase and batch shape. `recent` finds the program of the last shape without building a key.
  struct Recent {
    Program* program = nullptr;
    Shape x, y;
    DType x_dtype = DType::none, y_dtype = DType::none;
  };
  static constexpr std::size_t max_programs = 24;
  exec::ProgramCache programs{max_programs};
  std::array<Recent, phase_count> recent;

  // Progress of training.
  std::int64_t step = 0;
  std::int64_t epochs_done = 0;
  std::int64_t batches_done = 0;         ///< batches of the current epoch, complete steps only
  std::int64_t batches_per_epoch = 0;    ///< batches in that epoch
  train::RunningMeans means;             ///< over these batches
  std::int64_t accumulated_batches = 0;  ///< backward calls since the last apply
  std::optional<double> rate;            ///< overrides the optimizer's learning rate
  double rate_scale = 1;
  std::int64_t fit_steps = 0, fit_epochs = 0;  ///< length of the current fit; 0 outside
  bool resumed = false;                        ///< callback_states come from a checkpoint; the next fit restores them

  // The current or last fit.
  std::vector<Callback*> callbacks;  ///< currently attached
  std::map<std::string, CallbackState> callback_states;
  bool stop_requested = false;
  FitEnd end = FitEnd::finished;
  std::string stop_reason;

  Logs batch_logs;  ///< last batch: loss, then metrics
  double batch_weight = 0;
  train::StepOutcome outcome = train::StepOutcome::taken;   ///< last step
  std::vector<double> batch_means;                          ///< batch_logs before MetricRule::finish
  train::FeedBuffers training_buffers, evaluation_buffers;  ///< separate, since callbacks may evaluate during an epoch
  // Values that change each step are inputs of the program, so that a captured plan can be replayed.
  Tensor key = Tensor::zeros(DType::u64, {2});
  Tensor learning_rate = Tensor::zeros(DType::f64, {});
  Tensor step_number = Tensor::zeros(DType::i64, {});

  const Context& need_context() const;
  const Shape& need_sample() const;
  train::Forward forward(Graph& graph, const Shape& x_shape, DType x_dtype, bool for_training) const;
  /// The device of everything without one of its own: the first of parallel_devices; empty: the context's default.
  std::string main_device() const { return compiled.parallel_devices.empty() ? std::string() : compiled.parallel_devices[0]; }
  Device home_of(const train::ParameterSpec& spec) const;
  void make_optimizer_state();
  void make_gradients();
  void make_loss_scale(bool reset = false);
  /// Only f16 has too small an exponent range for unscaled gradients.
  bool scales_loss() const { return context->config().precision == Precision::mixed_float16; }
  /// The loss scale as graph parameters; absent without loss scaling.
  train::LossScale loss_scale(Graph& graph);
  void update_finite_states(Graph& graph, const train::Forward& f);
  /// True if the loss of the last batch may be non-finite: its step was skipped or has not been taken yet.
  bool allows_nonfinite_loss() const { return scales_loss() && (accumulated_batches > 0 || outcome != train::StepOutcome::taken); }

  /// y: null for phases without targets.
  Program& program(Phase phase, const Tensor& x, const Tensor* y);
  Program& program(Phase phase, const Shape& x, DType x_dtype, const Shape& y, DType y_dtype);
  void output_objective(Graph& graph, const train::Objective& objective) const;
  /// Appends the optimizer step or the gradient accumulation, then loss, metrics and weight as outputs.
  void finish_training(Graph& graph, Phase phase, const train::Gradients& result, const train::LossScale& scale, std::int64_t batch);
  Graph graph_of(Phase phase, const Shape& x, DType x_dtype, const Shape& y, DType y_dtype);
  Program& apply_program();
  void set_step_inputs();
  /// Reads a program's loss, metrics and weight into the batch_ members.
  const Logs& read(std::span<const Tensor> results, std::int64_t samples);
  /// Counts a step and, with loss scaling, reads its outcome, the program's last result.
  /// Errors  gradients are not finite at the smallest loss scale.
  void finish_step(const std::vector<Tensor>& results);

  double next_rate() const;
  /// Applies MetricRule::finish to the means.
  void finish(const std::vector<double>& from, Logs& out_logs) const;
  /// The name of each attached callback, with a suffix if several share it.
  std::vector<std::string> callback_keys() const;
  /// States of the attached callbacks; outside fit, those of the last fit or checkpoint.
  std::map<std::string, CallbackState> callback_states_now() const;
};

}  // namespace tenon
