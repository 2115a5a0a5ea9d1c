// SPDX-License-Identifier: Apache-2.0
// train/replicas.h - training on several devices of the process at the same time.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <tenon/program.h>

#include "train/program/model_setup.h"
#include "train/program/parameters.h"
#include "train/program/programs.h"
#include "train/rank_threads.h"

namespace tenon::train {

/// What changes from step to step besides the batch.
struct StepInputs {
  std::uint64_t seed = 0, step = 0, batch = 0;  ///< as in random_key
  Tensor learning_rate;                         ///< of the dtype that Programs::rate_dtype says
  Tensor step_number;                           ///< `step` as the programs read it
};

/// Adds a report of nodes and copies whose names get the prefix; of collectives, all ranks have the same.
void add_report(PlacementReport& all, const PlacementReport& one, const std::string& prefix);

/// The parallel devices of a model. The first one has the model's own parameters and programs; each other one has copies of them, and a
/// thread. Copies follow the model's parameters when these have changed otherwise than by a step. Threads  one call at a time.
class Replicas {
 public:
  /// Keeps references to its arguments. setup.group is not null.
  Replicas(const ModelSetup& setup, Parameters& parameters, Programs& programs);
  ~Replicas();
  Replicas(const Replicas&) = delete;
  Replicas& operator=(const Replicas&) = delete;

  /// Runs a phase with gradients, each device with its part of the batch. Returns the results of the first, valid until its program runs
  /// again. Errors  that of the device that failed first; the parameters of the model are as after an error of one device.
  const std::vector<Tensor>& run(Phase phase, const BatchTensors& batch, const StepInputs& inputs, const RunOptions& options);
  /// The optimizer step with the accumulated gradients.
  const std::vector<Tensor>& apply(const StepInputs& inputs, const RunOptions& options);
  /// The placement of a phase's programs on all devices, for a batch. Names of nodes begin with "replica_<rank>/".
  PlacementReport explain(Phase phase, const BatchType& batch);
  /// The parameters of the other devices, after the last step.
  std::vector<const Parameters*> others() const;
  /// Parameters::give_optimizer_state of the other devices.
  void give_optimizer_state(const std::map<std::string, Tensor>& values);
  /// The parameters of the other devices become those of the model if these have changed.
  void follow();

 private:
  struct Rank;
  /// Runs body(rank) for every rank at the same time.
  void run_all(const std::function<void(int rank)>& body);
  const std::vector<Tensor>& run_programs(const RunOptions& options);
  /// For each rank, how many threads its kernels may use.
  RunOptions options_of(std::size_t rank, const RunOptions& options) const;

  const ModelSetup& setup_;
  Parameters& parameters_;
  Programs& programs_;
  std::vector<std::unique_ptr<Rank>> ranks_;  ///< the first one stands for the model
  std::vector<Device> devices_;               ///< of the ranks
  std::unique_ptr<RankThreads> threads_;
  std::uint64_t followed_ = 0;  ///< epoch of the model's parameters after the last step; 0: copies are out of date
};

}  // namespace tenon::train
