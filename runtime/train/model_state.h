// train/model_state.h - what a Model holds.
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

/// What a program of a model is for.
enum class Phase { train, backward_first, backward_more, evaluate, predict, forward_train, classes };
inline constexpr std::size_t phase_count = 7;

struct Model::State {
  ModelDefinition definition;
  std::optional<Context> context;
  CompileOptions compiled;
  std::shared_ptr<ParameterStore> parameters;
  std::optional<Shape> sample;  ///< known once parameters exist
  std::vector<train::ParameterSpec> specs;
  std::vector<train::ParameterSpec> layer_states;  ///< running statistics and the like
  std::vector<LayerSummary> layers;
  std::set<std::string> optimizer_state;  ///< parameters of that kind that have had their first values
  bool training = false;

  // Programs by phase and batch shape. The usual case is the shape of the last time, found without making a key.
  struct Recent {
    Program* program = nullptr;
    Shape x, y;
    DType x_dtype = DType::none, y_dtype = DType::none;
  };
  static constexpr std::size_t most_programs = 24;
  exec::ProgramCache programs{most_programs};
  std::array<Recent, phase_count> recent;

  // What training has come to.
  std::int64_t step = 0;
  std::int64_t epochs_done = 0;
  std::int64_t batches_done = 0;       ///< of the epoch after those, whole steps only
  std::int64_t batches_per_epoch = 0;  ///< that this count is out of
  train::RunningMeans means;           ///< over them
  std::int64_t waiting = 0;            ///< backward calls since the last apply
  std::optional<double> rate;          ///< in place of the optimizer's own
  double rate_scale = 1;
  std::int64_t fit_steps = 0, fit_epochs = 0;  ///< how long the running fit is; 0 outside
  bool resumed = false;                        ///< callback_states come from a checkpoint and wait for the next fit

  // The fit that runs, or the last one.
  std::vector<Callback*> callbacks;  ///< attached now
  std::map<std::string, CallbackState> callback_states;
  bool stop_wanted = false;
  FitEnd end = FitEnd::finished;
  std::string stop_reason;

  Logs batch_logs;  ///< of the last batch: loss, then metrics
  double batch_weight = 0;
  train::StepOutcome outcome = train::StepOutcome::taken;   ///< of the last step
  std::vector<double> batch_means;                          ///< the same before what metrics make of means
  train::FeedBuffers training_buffers, evaluation_buffers;  ///< two, since callbacks may evaluate in the middle of an epoch
  // What changes each step, as inputs of the program: a captured plan may be replayed unchanged.
  Tensor key = Tensor::zeros(DType::u64, {2});
  Tensor learning_rate = Tensor::zeros(DType::f64, {});
  Tensor step_number = Tensor::zeros(DType::i64, {});

  const Context& need_context() const;
  const Shape& need_sample() const;
  train::Forward forward(Graph& graph, const Shape& x_shape, DType x_dtype, bool for_training) const;
  /// For what names no device: the first of those that share the batches; empty: the context's default.
  std::string main_device() const { return compiled.parallel_devices.empty() ? std::string() : compiled.parallel_devices[0]; }
  Device home_of(const train::ParameterSpec& spec) const;
  void make_optimizer_state();
  void make_gradients();
  void make_loss_scale(bool anew = false);
  /// f16 alone has too few exponents for gradients as they are.
  bool scales_loss() const { return context->config().precision == Precision::mixed_float16; }
  /// Parameters of the graph, or absent.
  train::LossScale loss_scale(Graph& graph);
  void update_finite_states(Graph& graph, const train::Forward& f);
  /// True of a batch whose loss need not be finite, because its step was skipped or is still to come.
  bool forgives() const { return scales_loss() && (waiting > 0 || outcome != train::StepOutcome::taken); }

  /// y: null for the phases that take none.
  Program& program(Phase phase, const Tensor& x, const Tensor* y);
  Program& program(Phase phase, const Shape& x, DType x_dtype, const Shape& y, DType y_dtype);
  void output_objective(Graph& graph, const train::Objective& objective) const;
  /// Step or accumulation, then loss, metrics and weight as outputs.
  void finish_training(Graph& graph, Phase phase, const train::Gradients& made, const train::LossScale& scale, std::int64_t batch);
  Graph graph_of(Phase phase, const Shape& x, DType x_dtype, const Shape& y, DType y_dtype);
  Program& apply_program();
  void set_step_inputs();
  /// Reads a program's loss, metrics and weight into the batch_ fields.
  const Logs& read(std::span<const Tensor> results, std::int64_t samples);
  /// Counts a step, and notes what became of it: its program's last result, where the loss is scaled.
  /// Errors  no scale is left to try: the step, the remedy.
  void finish_step(const std::vector<Tensor>& results);

  double next_rate() const;
  /// From means to what is shown.
  void finish(const std::vector<double>& from, Logs& out_logs) const;
  /// One per attached callback: its name, numbered where several share it.
  std::vector<std::string> callback_keys() const;
  /// Of the attached callbacks; outside fit those of the last one, or of the checkpoint.
  std::map<std::string, CallbackState> callback_states_now() const;
};

}  // namespace tenon
