// SPDX-License-Identifier: Apache-2.0
// train/checkpoint/training_progress.h - how far the training of a model has come.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <tenon/model.h>

#include "train/checkpoint/running_means.h"

namespace tenon::train {

/// Length of a fit, for schedules; 0 outside.
struct FitLength {
  std::int64_t epochs = 0, steps = 0;
};

/// The largest number of steps: counts up to it are exact as doubles, which schedules and optimizers use.
inline constexpr std::int64_t max_steps = std::int64_t{1} << 53;

/// What a checkpoint keeps of a training in addition to the tensors of the model.
struct SavedProgress {
  std::string run;                                 ///< the identity of the run (ADR 29)
  std::int64_t step = 0;                           ///< steps since the parameters were created
  std::int64_t epoch = 0;                          ///< complete epochs
  std::int64_t batch = 0;                          ///< batches of the current epoch, complete steps only
  std::int64_t batches = 0;                        ///< all batches of that epoch
  RunningMeans means;                              ///< over the batches so far
  std::optional<double> rate;                      ///< overrides the optimizer's learning rate
  double rate_scale = 1;                           ///< multiplies all rates
  std::map<std::string, CallbackState> callbacks;  ///< states at the end of the last fit
};

/// The position of a training. It moves from step to step, or to that of a checkpoint.
class TrainingProgress {
 public:
  /// The beginning of a new run.
  TrainingProgress();
  const SavedProgress& saved() const { return saved_; }
  /// Goes on from a checkpoint. Errors  a step beyond max_steps.
  void resume(SavedProgress saved);
  /// The callback states of a checkpoint that was resumed from, on the first call after that; else none.
  std::map<std::string, CallbackState> take_resumed_callbacks() {
    return std::exchange(resumed_, false) ? saved_.callbacks : std::map<std::string, CallbackState>();
  }
  void keep_callbacks(std::map<std::string, CallbackState> states) { saved_.callbacks = std::move(states); }

  /// Batches whose gradients have been accumulated since the last step.
  std::int64_t accumulated() const { return accumulated_; }
  void add_accumulated() { ++accumulated_; }
  void drop_accumulated() { accumulated_ = 0; }
  /// Counts a step, which uses the accumulated gradients up.
  void finish_step() { ++saved_.step, accumulated_ = 0; }
  /// Takes back the steps after the first `step`, which have failed.
  void drop_steps_after(std::int64_t step) { saved_.step = step; }
  /// Counts the first `batch` batches of the epoch as trained on. `means`: over these.
  void finish_batch(std::int64_t batch) { saved_.batch = batch; }
  void finish_batch(std::int64_t batch, const RunningMeans& means) { saved_.batch = batch, saved_.means = means; }
  void finish_epoch() { ++saved_.epoch, saved_.batch = 0; }
  /// Sets the number of batches in an epoch. One that was interrupted with another number restarts, with a warning.
  void set_batches(std::int64_t batches);
  /// The means over the epoch's batches so far, of `count` values.
  const RunningMeans& begin_means(std::size_t count) {
    if (saved_.batch == 0 || saved_.means.sums.size() != count) saved_.means.reset(count);
    return saved_.means;
  }

  /// The rate of the next step of an optimizer whose fields are all set. Errors  those of Schedule::at.
  double learning_rate(const OptimizerDefinition& optimizer, const FitLength& length) const;
  void set_rate(double rate) { saved_.rate = rate; }
  void set_rate_scale(double scale) { saved_.rate_scale = scale; }

 private:
  SavedProgress saved_;
  std::int64_t accumulated_ = 0;
  bool resumed_ = false;  ///< the callback states are those of a checkpoint and have not been taken yet
};

}  // namespace tenon::train
