// SPDX-License-Identifier: Apache-2.0
#include "train/checkpoint/training_progress.h"

#include <random>

#include <fmt/core.h>

#include <tenon/error.h>

#include "core/log.h"

namespace tenon::train {

TrainingProgress::TrainingProgress() {
  std::random_device random;  // not of the run's seed: two runs of one seed are two runs
  saved_.run = fmt::format("{:08x}{:08x}", random(), random());
}

void TrainingProgress::resume(SavedProgress saved) {
  if (saved.step < 0 || saved.step >= max_steps) {
    throw Error(fmt::format("the checkpoint's step is {}, expected 0 to {}; the file is damaged", saved.step, max_steps - 1));
  }
  saved_ = std::move(saved);
  accumulated_ = 0;
  resumed_ = true;
}

void TrainingProgress::set_batches(std::int64_t batches) {
  if (saved_.batch > 0 && saved_.batches != batches) {
    log::warning("fit: epoch {} was interrupted after {} of {} batches but now has {}: the epoch restarts", saved_.epoch + 1, saved_.batch,
                 saved_.batches, batches);
    saved_.batch = 0;
  }
  saved_.batches = batches;
}

double TrainingProgress::learning_rate(const OptimizerDefinition& optimizer, const FitLength& length) const {
  const Schedule& schedule = optimizer.schedule;
  const double initial = saved_.rate.value_or(*optimizer.learning_rate);
  const bool by_epoch = schedule.per == Schedule::Per::epoch;
  return schedule.at(initial, by_epoch ? saved_.epoch : saved_.step, by_epoch ? length.epochs : length.steps) * saved_.rate_scale;
}

}  // namespace tenon::train
