// SPDX-License-Identifier: Apache-2.0
// train/pipeline.h - training with the layers divided among devices, through which the parts of a batch follow each other.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <tenon/program.h>

#include "train/checkpoint/running_means.h"
#include "train/program/model_setup.h"
#include "train/program/parameters.h"
#include "train/program/programs.h"
#include "train/rank_threads.h"
#include "train/replicas.h"

namespace tenon::train {

/// The stages of a pipeline, each a device with a thread, programs for its forward and backward pass, and a store that shares the memory of
/// the model's parameters of its layers. Micro-batches run in the order that is known as 1F1B: as many forward passes as there are stages
/// after it, then a backward pass after each forward pass, so that a stage keeps the values of no more micro-batches than there are stages.
/// Threads  one call at a time.
class Pipeline {
 public:
  /// Keeps references to its arguments. setup.staged is not null.
  Pipeline(const ModelSetup& setup, Parameters& parameters, Programs& programs);
  ~Pipeline();
  Pipeline(const Pipeline&) = delete;
  Pipeline& operator=(const Pipeline&) = delete;

  /// Adds the gradients of a batch to the accumulated ones; `first`: they begin with it. The means of the batch replace `out_means`.
  /// Errors  that of the stage that failed first, with its number and device; gradients are undefined then. A stop request takes effect
  /// only before the first micro-batch.
  void run(const BatchTensors& batch, bool first, const StepInputs& inputs, const RunOptions& options, RunningMeans& out_means);
  /// The placement of the programs for a micro-batch of a batch of this type. Names of nodes begin with "stage_<n>/forward/" or
  /// "stage_<n>/backward/"; those of the last stage's only program with "stage_<n>/".
  PlacementReport explain(const BatchType& batch);

 private:
  struct Stage;
  struct Compiled;
  struct Run;
  /// The programs for micro-batches of this type.
  Compiled& get(const BatchType& type, const RunOptions& options);
  std::unique_ptr<Compiled> compile(const BatchType& type, const RunOptions& options);
  /// Gives a store the parameters that the program of a stage uses.
  void share(Stage& stage, const Graph& graph);
  /// Stores see what has changed in the model's.
  void follow();
  void run_stage(std::size_t stage, Run& run);
  void run_piece(std::size_t piece, std::int64_t micro_batch, Run& run);

  const ModelSetup& setup_;
  Parameters& parameters_;
  Programs& programs_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::vector<Device> devices_;  ///< of the stages
  std::unique_ptr<RankThreads> threads_;
  std::map<std::string, std::unique_ptr<Compiled>> compiled_;  ///< by the type of a micro-batch
  std::uint64_t followed_ = 0;                                 ///< epoch of the model's store that the stages have seen
};

}  // namespace tenon::train
